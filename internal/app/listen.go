package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-mesh/fairlead/internal/acme"
	"github.com/fairlead-mesh/fairlead/internal/config"
	"github.com/fairlead-mesh/fairlead/internal/guard"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// listeners are the sockets of the server. redirect is nil unless a certificate authority checks the hostname on port 80.
type listeners struct{ api, metrics, socket, redirect net.Listener }

func (ls *listeners) close() {
	for _, l := range []net.Listener{ls.api, ls.metrics, ls.socket, ls.redirect} {
		if l != nil {
			_ = l.Close() // usually already closed by the servers
		}
	}
}

func (ls *listeners) addrs() Addrs {
	return Addrs{API: ls.api.Addr().String(), Metrics: ls.metrics.Addr().String(), Socket: ls.socket.Addr().String()}
}

// listen opens all three listeners or none.
func (s *service) listen() (_ *listeners, err error) {
	ls := &listeners{}
	defer func() {
		if err != nil {
			ls.close()
		}
	}()
	if ls.api, err = listenTCP("listen_addr", s.Config.ListenAddr); err != nil {
		return nil, err
	}
	ls.api = s.guard.Listener(ls.api)
	if s.certificate, err = s.openCertificate(); err != nil {
		return nil, err
	}
	if s.certificate != nil {
		ls.api = tls.NewListener(ls.api, s.certificate.config())
	}
	if a := s.Config.ACME; a.Hostname != "" && a.Challenge == config.ChallengeHTTP {
		if ls.redirect, err = listenTCP("tls_letsencrypt_listen", a.Listen); err != nil {
			return nil, err
		}
		ls.redirect = s.guard.Listener(ls.redirect)
	}
	if ls.metrics, err = listenTCP("metrics_listen_addr", s.Config.MetricsListenAddr); err != nil {
		return nil, err
	}
	if ls.socket, err = listenUnix(s.Config.UnixSocket); err != nil {
		return nil, err
	}
	ls.metrics, ls.socket = s.guard.Watch(ls.metrics), s.guard.Watch(ls.socket)
	return ls, nil
}

// openCertificate returns nil if a proxy terminates TLS.
func (s *service) openCertificate() (certificate, error) {
	switch c := s.Config; {
	case c.TLSCertPath != "":
		return openCertificate(c.TLSCertPath, c.TLSKeyPath, s.log)
	case c.ACME.Hostname != "":
		return newIssued(acme.New(acme.Config{
			Directory: c.ACME.URL, Email: c.ACME.Email, Host: c.ACME.Hostname, Dir: c.ACME.CacheDir,
			HTTP: c.ACME.Challenge == config.ChallengeHTTP, UserAgent: "fairlead/" + s.Build.Version,
		}), s.log), nil
	}
	return nil, nil
}

func listenTCP(key, addr string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("address already in use: %s %s: stop the process that listens there, or choose another port", key, addr)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s %s: permission denied: ports below 1024 require the capability CAP_NET_BIND_SERVICE", key, addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s %s: this machine does not have this address; use 0.0.0.0 for all addresses", key, addr)
	case err != nil:
		return nil, fmt.Errorf("%s %s: %w", key, addr, err)
	}
	return l, nil
}

// listenUnix opens a socket for its owner and group. A socket on which nobody listens is left over from a crash
// and is replaced; any other file is not touched.
func listenUnix(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("unix_socket %s: %w: make the directory writable for the user that runs the server, or set unix_socket to another path", path, err)
	}
	if info, err := os.Stat(path); err == nil {
		if info.Mode().Type() != os.ModeSocket {
			return nil, fmt.Errorf("unix_socket %s: not a socket: remove the file, or set unix_socket to another path", path)
		}
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "unix", path)
		if err == nil {
			_ = c.Close()
			return nil, fmt.Errorf("address already in use: unix_socket %s: another fairlead is running", path)
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(path) // if it fails, Listen returns the reason
		}
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("unix_socket %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o770); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("unix_socket %s: %w", path, err)
	}
	return l, nil
}

type connKey struct{}

const (
	// requestTimeout is how long reading a request may take, and also how long writing its response may take. A
	// handler that needs longer sets deadlines through http.ResponseController.
	requestTimeout = 30 * time.Second
	// unreadTimeout is how long the rest of an unwanted body may still be sent: a client that is cut off
	// while it sends may never see the response.
	unreadTimeout = time.Second
	// lastWrites is how long a shutdown waits for clients that do not read.
	lastWrites = 5 * time.Second
)

func newServer(h http.Handler, log *slog.Logger) *http.Server {
	cs := &connections{open: map[net.Conn]struct{}{}}
	server := &http.Server{
		Handler:           closeAfterUnreadBody(h),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      2 * requestTimeout, // counts from the end of the headers
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10, // applies to strangers too: guard.Limits relies on it
		HTTP2:             &http.HTTP2Config{WriteByteTimeout: requestTimeout},
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ConnState:         cs.track,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return guard.WithConn(context.WithValue(ctx, connKey{}, c), c)
		},
	}
	server.RegisterOnShutdown(cs.limitWrites)
	return server
}

// connections tracks the open connections of a server.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]struct{} // guarded by mu
}

func (cs *connections) track(c net.Conn, state http.ConnState) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	switch state {
	case http.StateNew:
		cs.open[c] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(cs.open, c)
	case http.StateActive, http.StateIdle:
	}
}

// limitWrites sets a deadline for the writes that are blocked now. A response that starts later sets its own
// deadline.
func (cs *connections) limitWrites() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c := range cs.open {
		_ = c.SetWriteDeadline(time.Now().Add(lastWrites)) // fails only if it is closed already
	}
}

// closeAfterUnreadBody keeps a response from waiting for a body that the handler did not read: the connection is
// closed after the response instead.
func closeAfterUnreadBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		b := &requestBody{ReadCloser: r.Body, answer: w.Header()}
		b.answer.Set("Connection", "close")
		r = r.WithContext(r.Context())
		r.Body = b
		next.ServeHTTP(w, r)
		if !b.ended {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unreadTimeout))
		}
	})
}

// requestBody keeps the connection open if all of it was read.
type requestBody struct {
	io.ReadCloser
	answer http.Header
	ended  bool
}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) && !b.ended {
		b.ended = true
		b.answer.Del("Connection")
	}
	return n, err
}

// peer returns the user of the process at the other end of the local socket.
func peer(ctx context.Context) mesh.Actor {
	a := mesh.Actor{Kind: mesh.ActorLocal}
	c, ok := ctx.Value(connKey{}).(*net.UnixConn)
	if !ok {
		return a
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return a
	}
	var cred *unix.Ucred
	if err := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil || cred == nil {
		return a
	}
	a.ID = strconv.FormatUint(uint64(cred.Uid), 10)
	if u, err := user.LookupId(a.ID); err == nil {
		a.Name = u.Username
	}
	return a
}

// notify sends a state to systemd, if systemd expects notifications.
func notify(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	c, err := (&net.Dialer{}).DialContext(context.Background(), "unixgram", path)
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = c.Write([]byte(state)) // systemd then reports a timeout
}
