package main_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

// bridge forwards connections to PostgreSQL until it is frozen. Then no data passes and
// neither side is notified, as behind a firewall that has dropped its state.
type bridge struct {
	net.Listener
	target string
	gate   sync.RWMutex // held while frozen
	wg     sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn // guarded by mu
}

func newBridge(t *testing.T, server *pgtest.Server) *bridge {
	t.Helper()
	b := &bridge{
		Listener: listen(t, "tcp", "127.0.0.1:0"),
		target:   net.JoinHostPort(server.Host, strconv.Itoa(server.Port)),
	}
	b.wg.Go(func() {
		for {
			near, err := b.Accept()
			if err != nil {
				return
			}
			far, err := new(net.Dialer).DialContext(context.Background(), "tcp", b.target)
			if err != nil {
				near.Close()
				continue
			}
			b.mu.Lock()
			b.conns = append(b.conns, near, far)
			b.mu.Unlock()
			b.wg.Go(func() { b.carry(near, far) })
			b.wg.Go(func() { b.carry(far, near) })
		}
	})
	t.Cleanup(func() {
		b.Close()
		b.mu.Lock()
		for _, c := range b.conns {
			c.Close()
		}
		b.mu.Unlock()
		b.wg.Wait()
	})
	return b
}

func (b *bridge) carry(from, to net.Conn) {
	defer to.Close()
	for buffer := make([]byte, 32<<10); ; {
		n, err := from.Read(buffer)
		b.gate.RLock()
		b.gate.RUnlock() //nolint:staticcheck // it only waits for the gate to open
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil {
			return
		}
	}
}

func TestServiceOutlivesFrozenPostgres(t *testing.T) {
	t.Parallel()
	b := newBridge(t, pg)
	o := beforeOutage(t, onPostgres(t, pg).with("database.postgres.port", fmt.Sprint(b.Addr().(*net.TCPAddr).Port)))

	b.gate.Lock()
	thaw := sync.OnceFunc(b.gate.Unlock)
	t.Cleanup(thaw)
	waiting := make(chan error, 1)
	go func() {
		status, body, err := o.client.do("POST", "/api/v1/user", `{"name": "patient"}`)
		if err == nil && status != 200 && status != 503 {
			err = fmt.Errorf("status %d: %s", status, body)
		}
		waiting <- err
	}()
	eventually(t, func() error {
		if status, body, err := o.client.do("GET", "/health", ""); err != nil || status != 503 {
			return fmt.Errorf("health: %d %s (%w)", status, body, err)
		}
		return nil
	})
	for end := time.Now().Add(quiet); time.Now().Before(end); <-time.After(pollTime) {
		says(t, o.client.must(t, 200, "GET", "/api/v1/user", ""), "alice")
	}
	thaw()
	o.after(t)
	if err := <-waiting; err != nil {
		t.Errorf("a write that met the frozen database: %v", err)
	}
}
