//go:build !race

package consoletest

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

var (
	demo     = flag.Bool("demo", false, "run TestDemo until it is interrupted")
	nodes    = flag.Int("nodes", 200, "devices of the demo; 0 for a server that nobody has used yet")
	port     = flag.Int("port", 3000, "port of the console")
	postgres = flag.Bool("postgres", false, "whether the demo has PostgreSQL instead of SQLite")
)

// TestDemo keeps a console running for manual inspection until it is interrupted.
func TestDemo(t *testing.T) {
	if !*demo {
		t.Skip("this is make console-demo")
	}
	began := time.Now()
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	fairlead, binary := build(t, t.TempDir())
	var pg *pgtest.Server
	if *postgres {
		server, err := pgtest.Start(pgtest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Stop(); err != nil {
				t.Error(err)
			}
		})
		pg = server
	}
	s := newStage(t, fairlead, pg, *nodes, "", nil)
	c := startConsole(t, binary, s.URL, net.JoinHostPort("127.0.0.1", strconv.Itoa(*port)))
	reader := s.CLI("apikeys", "create", "--role", "read")
	operator := s.CLI("apikeys", "create", "--role", "operator")
	fmt.Printf("\nconsole   %s\nadmin     %s\noperator  %s\nread      %s\nserver    %s (socket %s)\n\n", c.URL, s.admin, operator, reader, s.URL, s.Socket)
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() { s.live(ctx) })
	waittest.Eventually(t, 10*patience, time.Second, func() error {
		if now := s.connected(); now < s.online()*9/10 && ctx.Err() == nil {
			return fmt.Errorf("%d of %d nodes are online", now, s.online())
		}
		return nil
	})
	if ctx.Err() == nil {
		fmt.Printf("%d of %d nodes are online after %v. Ctrl-C ends it and removes everything.\n", s.connected(), len(s.devices), time.Since(began).Round(time.Second))
	}
	<-ctx.Done()
}

// connected returns how many nodes the server shows as online.
func (s *stage) connected() (count int) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	text, err := s.API(ctx, "GET", "/api/v1/node", "")
	var answer struct{ Nodes []struct{ Online bool } }
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err != nil {
		s.t.Error(err)
	}
	for _, n := range answer.Nodes {
		if n.Online {
			count++
		}
	}
	return count
}
