package waittest

import "net"

// Caller returns a connection to a server, and a listener that accepts its other end and nothing else. Both
// are in memory, so that a test can wait for them with its own clock.
func Caller() (net.Conn, net.Listener) {
	near, far := net.Pipe()
	l := listener{make(chan net.Conn, 1), make(chan struct{})}
	l.conns <- far
	return near, l
}

type listener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l listener) Close() error   { close(l.closed); return nil }
func (l listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
