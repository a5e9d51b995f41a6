package meshtest

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// Balancer forwards each TCP connection to the next backend that accepts it. It does not inspect the
// connections. With Check it skips backends that fail their health check.
type Balancer struct {
	Addr string
	URL  string

	listener net.Listener
	wait     sync.WaitGroup

	mu       sync.Mutex
	backends []string           // guarded by mu; the next one first
	open     map[*gate]struct{} // guarded by mu; nil after it is closed
	frozen   bool               // guarded by mu
	down     map[string]bool    // guarded by mu; backends that failed their last check
}

// checkEvery and checkLimit are those of an impatient load balancer.
const (
	checkEvery = 100 * time.Millisecond
	checkLimit = 2 * time.Second
)

// Check requests a path from each backend periodically until the test ends, and forwards connections only to
// those that respond with 200.
func (b *Balancer) Check(t testing.TB, path string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	client := &http.Client{Timeout: checkLimit, Transport: &http.Transport{DisableKeepAlives: true}}
	b.wait.Go(func() {
		tick := time.NewTicker(checkEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			b.mu.Lock()
			backends := slices.Clone(b.backends)
			b.mu.Unlock()
			down := map[string]bool{}
			for _, addr := range backends {
				_, err := fetch(ctx, client, http.MethodGet, "http://"+addr+path, "")
				down[addr] = err != nil
			}
			b.mu.Lock()
			b.down = down
			b.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
}

// NewBalancer starts a balancer on loopback.
func NewBalancer(t testing.TB, backends ...string) *Balancer {
	t.Helper()
	l := listen(t)
	b := &Balancer{Addr: l.Addr().String(), URL: "http://" + l.Addr().String(), listener: l, backends: backends, open: map[*gate]struct{}{}}
	b.wait.Go(func() { b.accept(l) })
	t.Cleanup(b.close)
	return b
}

// Add adds a backend.
func (b *Balancer) Add(addr string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = append(b.backends, addr)
}

// Remove stops new connections to a backend. Existing ones stay.
func (b *Balancer) Remove(addr string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = slices.DeleteFunc(b.backends, func(a string) bool { return a == addr })
}

// Freeze stops forwarding data until Thaw is called, as if the network in between were down. It does not
// forward the end of connections either.
func (b *Balancer) Freeze() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.frozen = true
	for g := range b.open {
		g.freeze()
	}
}

// Thaw undoes Freeze.
func (b *Balancer) Thaw() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.frozen = false
	for g := range b.open {
		g.thaw()
	}
}

// Sever closes all connections. New ones are accepted.
func (b *Balancer) Sever() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for g := range b.open {
		g.Close()
	}
}

// Stop closes all connections and stops listening until Resume is called.
func (b *Balancer) Stop() {
	b.listener.Close()
	b.Sever()
}

// Resume listens again at the same address.
func (b *Balancer) Resume(t testing.TB) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", b.Addr)
	if err != nil {
		t.Fatal(err)
	}
	b.listener = l
	b.wait.Go(func() { b.accept(l) })
}

// turn returns the backends in the order in which they are tried.
func (b *Balancer) turn() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	order := slices.Clone(b.backends)
	if len(order) > 1 {
		b.backends = append(b.backends[1:], b.backends[0])
	}
	return slices.DeleteFunc(order, func(addr string) bool { return b.down[addr] })
}

func (b *Balancer) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		order := b.turn()
		b.wait.Go(func() { b.serve(conn, order) })
	}
}

func (b *Balancer) serve(client net.Conn, backends []string) {
	defer client.Close()
	for _, addr := range backends {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", addr)
		if err != nil {
			continue
		}
		here, there := &gate{Conn: client}, &gate{Conn: conn}
		defer there.Close()
		if !b.hold(here, there) {
			return
		}
		defer b.release(here, there)
		b.wait.Go(func() { pass(there, here) })
		pass(here, there)
		return
	}
}

// pass copies until one side is closed, and then closes both.
func pass(to, from *gate) {
	_, _ = io.Copy(to, from)
	to.Close()
	from.Close()
}

// hold records connections to close later; it returns false if the balancer is closed already.
func (b *Balancer) hold(conns ...*gate) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		return false
	}
	for _, c := range conns {
		b.open[c] = struct{}{}
		if b.frozen {
			c.freeze()
		}
	}
	return true
}

func (b *Balancer) release(conns ...*gate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range conns {
		delete(b.open, c)
	}
}

func (b *Balancer) close() {
	b.listener.Close()
	b.mu.Lock()
	open := b.open
	b.open = nil
	b.mu.Unlock()
	for c := range open {
		c.Close()
	}
	b.wait.Wait()
}
