//go:build !race

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// relayHost is a relay that runs as a process of its own on its own host.
type relayHost struct {
	place *clienttest.Namespace
	args  []string
	log   waittest.Transcript
	cmd   *exec.Cmd
}

// addRelay creates a relay of the region ams, and starts it.
func (l *lab) addRelay(t *testing.T, place *clienttest.Namespace) *relayHost {
	t.Helper()
	key := strings.TrimSpace(l.CLI("relays", "create", place.Name, "--region", "ams"))
	addr := netip.AddrPortFrom(place.Addr, 8080).String()
	r := &relayHost{place: place, args: []string{
		"relay", "--join", key, "--server", l.URL, "--url", "http://" + addr, "--listen", addr, "--stun-listen", netip.AddrPortFrom(place.Addr, 3478).String(),
		"--state-dir", filepath.Join(t.TempDir(), "state"),
	}}
	r.start(t)
	t.Cleanup(func() {
		r.kill()
		if t.Failed() {
			t.Logf("the log of %s:\n%s", place.Name, r.log.String())
		}
	})
	return r
}

func (r *relayHost) start(t *testing.T) {
	t.Helper()
	r.cmd = r.place.Command(context.Background(), fairlead, r.args...)
	r.cmd.Stdout, r.cmd.Stderr = &r.log, &r.log
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

func (r *relayHost) kill() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait() // it was killed
}

// relayClients returns the number of clients of each relay, by name.
func (l *lab) relayClients(t *testing.T) map[string]int {
	t.Helper()
	var list []struct {
		Name    string
		Clients int
	}
	if err := json.Unmarshal([]byte(l.CLI("relays", "list", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	clients := map[string]int{}
	for _, r := range list {
		clients[r.Name] = r.Clients
	}
	return clients
}

func TestTrafficContinuesWhenARelayOrTheServerIsKilled(t *testing.T) {
	ctx := within(t, 3*patience)
	l := newLab(t)
	places := []*clienttest.Namespace{l.Add("relay1"), l.Add("relay2")}
	l.serve(t, meshtest.Config{Set: map[string]string{"derp.server.enabled": "false"}})
	first, second := l.addRelay(t, places[0]), l.addRelay(t, places[1])
	// The first client can only use the second relay. Both have no direct path.
	if out, err := l.hosts[0].Command(ctx, "iptables", "-I", "OUTPUT", "-d", places[0].Addr.String(), "-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	l.BlockUDP(l.hosts[0], l.hosts[1])
	l.joinBoth(ctx, versions()[0])
	ping(ctx, t, l.daemons[0], "second", "via DERP(ams)")
	conn := l.echo(ctx, t)
	checkEcho(t, conn, someBytes("through two relays"))
	eventually(ctx, t, func() error {
		if c := l.relayClients(t); c["relay1"] != 1 || c["relay2"] != 1 {
			return fmt.Errorf("the relays have %v clients, want one each", c)
		}
		return nil
	})

	first.kill()
	killed := time.Now()
	checkEcho(t, conn, "after the relay was killed")
	t.Logf("the stream resumed %v after a relay was killed", time.Since(killed).Round(time.Millisecond))
	checkEcho(t, conn, someBytes("through the other relay"))

	// Without the server, a relay that restarts admits the nodes it knows.
	l.Kill()
	second.kill()
	second.start(t)
	killed = time.Now()
	checkEcho(t, conn, "after the other relay restarted without the server")
	t.Logf("the stream resumed %v after the other relay restarted without the server", time.Since(killed).Round(time.Millisecond))
	l.Resume()
	eventually(ctx, t, func() error {
		if !strings.Contains(l.CLI("relays", "show", "relay2"), "active") {
			return errors.New("the relay has not reported yet")
		}
		return nil
	})
	checkEcho(t, conn, someBytes("with the server again"))
}
