//go:build !race

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

// controlMap is a map as the control client of v1.104.4 prints it.
type controlMap struct {
	Version int
	Self    controlNode
	Peers   []controlNode
	Relays  int
}

type controlNode struct {
	Name      string
	Addresses []string
	Online    *bool
	Expired   bool
}

func (m controlMap) peer(name string) *controlNode {
	for i := range m.Peers {
		if m.Peers[i].Name == name+"."+baseDomain+"." {
			return &m.Peers[i]
		}
	}
	return nil
}

// control104 is a running control client of v1.104.4, without a data plane. It is used because the
// daemon of that version cannot be built everywhere.
type control104 struct {
	mu   sync.Mutex
	last controlMap // guarded by mu
}

func startControl104(t *testing.T, args ...string) *control104 {
	t.Helper()
	program := buildModule(t, "testdata/control104", []string{"GOTOOLCHAIN=go1.27.3"})
	c := new(control104)
	cmd := exec.CommandContext(context.Background(), program, args...)
	var log bytes.Buffer
	cmd.Stderr = &log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() { c.read(bufio.NewScanner(stdout)) })
	t.Cleanup(func() {
		stdin.Close() // makes the client exit
		wait.Wait()
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("the control client ended: %v\n%s", err, log.Bytes())
		}
	})
	return c
}

func (c *control104) read(lines *bufio.Scanner) {
	for lines.Scan() {
		var m controlMap
		if json.Unmarshal(lines.Bytes(), &m) == nil {
			c.mu.Lock()
			c.last = m
			c.mu.Unlock()
		}
	}
}

func (c *control104) await(ctx context.Context, t *testing.T, wanted func(controlMap) bool) {
	t.Helper()
	eventually(ctx, t, func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !wanted(c.last) {
			return fmt.Errorf("the map is not as wanted: %+v", c.last)
		}
		return nil
	})
}

func TestControlClientOfTheNextVersionFollowsTheMesh(t *testing.T) {
	if *clients != "all" {
		t.Skip("this is make e2e-matrix: it needs another version of Go, and compiles the whole standard library with it")
	}
	n := startNetwork(t, meshtest.Config{})
	key := n.key("--reusable")
	c := startControl104(t, n.URL, key, "next")
	ctx := within(t, patience)
	c.await(ctx, t, func(m controlMap) bool {
		return m.Version == 148 && m.Self.Name == "next."+baseDomain+"." && len(m.Self.Addresses) == 2 && m.Relays == 1
	})

	d := n.join(ctx, clienttest.Options{}, key, "peer")
	await(ctx, t, d, seesOnline("next"))
	online := func(p *controlNode) bool { return p != nil && p.Online != nil && *p.Online }
	c.await(ctx, t, func(m controlMap) bool { return online(m.peer("peer")) })

	n.change(ctx, http.MethodPost, "peer/rename/renamed", "")
	c.await(ctx, t, func(m controlMap) bool { return online(m.peer("renamed")) && m.peer("peer") == nil })
	n.change(ctx, http.MethodPost, "next/expire", "")
	c.await(ctx, t, func(m controlMap) bool { return m.Self.Expired })
	n.change(ctx, http.MethodPost, "next/expire", `{"disableExpiry": true}`)
	c.await(ctx, t, func(m controlMap) bool { return !m.Self.Expired })
	n.change(ctx, http.MethodDelete, "renamed", "")
	c.await(ctx, t, func(m controlMap) bool { return len(m.Peers) == 0 && strings.HasPrefix(m.Self.Name, "next.") })
}
