//go:build !race

package consoletest

import (
	"context"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
)

// seclusion is a network namespace only for browsers. Chromium aborts its requests whenever its
// machine gains or loses an address, which happens each time a client or a container starts.
type seclusion struct {
	network *clienttest.Namespace
	browser string // program that starts Chromium in the namespace
}

func newSeclusion(t testing.TB) *seclusion {
	t.Helper()
	s := &seclusion{network: clienttest.NewLab(t).Add("browsers"), browser: filepath.Join(t.TempDir(), "chromium")}
	start := s.network.Command(t.Context(), "/usr/bin/chromium-headless-shell")
	if err := os.WriteFile(s.browser, []byte("#!/bin/sh\nexec "+strings.Join(start.Args, " ")+` "$@"`+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

// bring makes a URL on this machine's loopback reachable for browsers, at the same address, until
// the test ends.
func (s *seclusion) bring(t testing.TB, base string) {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l, err := s.network.Listen(ctx, "tcp", u.Host)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wait.Go(func() { join(ctx, conn, u.Host) })
		}
	})
	t.Cleanup(func() {
		cancel()
		l.Close()
		wait.Wait()
	})
}

// join connects to addr and copies data in both directions until one side closes.
func join(ctx context.Context, here net.Conn, addr string) {
	defer here.Close()
	there, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() {
		here.Close()
		there.Close()
	})
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{here, there}, {there, here}} {
		both.Go(func() {
			defer cancel()
			_, _ = io.Copy(way[0], way[1]) // the other side sees the end
		})
	}
	both.Wait()
}
