// Package porttest chooses ports for servers that tests start, and for tests that need a port on which nobody listens.
//
// A test that listens on port 0 and closes the listener gets a port from the range of outgoing connections. Until the test uses it,
// any program can get the same port.
package porttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The ports are below Linux's range for outgoing connections.
const first, count = 10_000, 22_000

// Addr returns a loopback address with a port as returned by Port.
func Addr(t testing.TB) string {
	t.Helper()
	return "127.0.0.1:" + Port(t)
}

// Port returns a port that is free for TCP and UDP on all addresses. Until the test ends, no outgoing connection uses it, and no
// other test on this machine gets it.
func Port(t testing.TB) string {
	t.Helper()
	port, release, err := Reserve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return strconv.Itoa(port)
}

// Reserve is like Port, but the port is reserved until release is called.
func Reserve(ctx context.Context) (port int, release func(), err error) {
	for range 100 {
		port = first + rand.IntN(count)
		var name net.Listener
		// The name of an abstract socket reserves the port, because only one process can listen on it.
		if name, err = new(net.ListenConfig).Listen(ctx, "unix", fmt.Sprintf("@fairlead-test-port-%d", port)); err != nil {
			continue
		}
		if err = free(ctx, fmt.Sprintf(":%d", port)); err == nil {
			return port, func() { _ = name.Close() }, nil
		}
		_ = name.Close()
	}
	return 0, nil, fmt.Errorf("no free port: %w", err)
}

func free(ctx context.Context, addr string) error {
	var c net.ListenConfig
	tcp, err := c.Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	udp, err := c.ListenPacket(ctx, "udp", addr)
	if err != nil {
		return errors.Join(err, tcp.Close())
	}
	return errors.Join(tcp.Close(), udp.Close())
}
