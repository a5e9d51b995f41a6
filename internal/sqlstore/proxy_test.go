package sqlstore_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

// verdict is what the proxy does with a message of the client.
type verdict int

const (
	forward verdict = iota
	cut             // the server never receives the message
	swallow         // the server responds, but the client never receives the response
	silence         // no more data in either direction, and neither side is notified
)

// proxy sits between client and server. It applies its rule to each message that a client
// sends after the handshake; kind is the message's type byte.
type proxy struct {
	target string
	listen net.Listener
	wg     sync.WaitGroup
	ended  chan struct{}

	mu    sync.Mutex
	rule  func(kind byte, body []byte) verdict
	links map[net.Conn]bool
}

func newProxy(t *testing.T, server *pgtest.Server) *proxy {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{
		target: net.JoinHostPort(server.Host, strconv.Itoa(server.Port)),
		listen: l, ended: make(chan struct{}), links: map[net.Conn]bool{},
	}
	p.obey(nil)
	p.wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		close(p.ended)
		l.Close()
		p.hangUp()
		p.wg.Wait()
	})
	return p
}

// obey makes the proxy follow a rule; nil forwards everything.
func (p *proxy) obey(rule func(kind byte, body []byte) verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = rule
}

// hangUp closes all connections, including silenced ones.
func (p *proxy) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.links {
		c.Close()
	}
}

func (p *proxy) ask(kind byte, body []byte) verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rule == nil {
		return forward
	}
	return p.rule(kind, body)
}

// config routes a store through the proxy.
func (p *proxy) config(c sqlstore.PostgresConfig) sqlstore.PostgresConfig {
	c.Port = p.listen.Addr().(*net.TCPAddr).Port
	return c
}

func (p *proxy) serve(client net.Conn) {
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.target)
	if err != nil {
		client.Close()
		return
	}
	link := &link{client: client, server: server}
	p.mu.Lock()
	p.links[client], p.links[server] = true, true
	p.mu.Unlock()
	p.wg.Go(func() { link.answers(p.ended) })
	link.requests(p)
	link.end()
}

type link struct {
	client, server net.Conn

	mu   sync.Mutex
	last verdict
}

func (l *link) end() {
	l.client.Close()
	l.server.Close()
}

func (l *link) decide(v verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = v
}

func (l *link) decided() verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// requests forwards the client's messages, one by one.
func (l *link) requests(p *proxy) {
	in := bufio.NewReader(l.client)
	start := make([]byte, 4)
	if _, err := io.ReadFull(in, start); err != nil {
		return
	}
	rest := make([]byte, binary.BigEndian.Uint32(start)-4)
	if _, err := io.ReadFull(in, rest); err != nil {
		return
	}
	if _, err := l.server.Write(append(start, rest...)); err != nil {
		return
	}
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(in, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		v := p.ask(head[0], body)
		l.decide(v)
		if v == silence {
			<-p.ended
		}
		if v == cut || v == silence {
			return
		}
		if _, err := l.server.Write(append(head, body...)); err != nil {
			return
		}
	}
}

// answers forwards the server's messages.
func (l *link) answers(ended <-chan struct{}) {
	defer l.end()
	buf := make([]byte, 1<<16)
	for {
		n, err := l.server.Read(buf)
		if err != nil {
			return
		}
		v := l.decided()
		if v == silence {
			<-ended
		}
		if v == swallow || v == silence {
			return
		}
		if _, err := l.client.Write(buf[:n]); err != nil {
			return
		}
	}
}
