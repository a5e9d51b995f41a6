//go:build !race

package wire_test

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"tailscale.com/ipn/ipnstate"

	"github.com/fairlead-mesh/fairlead/internal/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// forClients runs a test with a real client of the oldest and of the newest
// version, against a service with a relay that nobody needs to reach.
func forClients(t *testing.T, test func(context.Context, *service, *clienttest.Daemon)) {
	for _, version := range []string{clienttest.Oldest, clienttest.Newest} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s, _ := open(t, options{})
			s.user("alice")
			s.commit(mesh.SettingPut{Setting: &mesh.Setting{ID: 1, Key: mesh.SettingRelays, Value: `{"Regions":{"1":{"RegionID":1,"RegionCode":"here","RegionName":"Here",` +
				`"Nodes":[{"Name":"1a","RegionID":1,"HostName":"127.0.0.1","IPv4":"127.0.0.1","DERPPort":9,"STUNPort":-1}]}}}`, Source: "config"}})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			test(ctx, s, clienttest.Start(t, clienttest.Options{Version: version}))
		})
	}
}

// up runs "tailscale up" and returns what a person sees, and the exit code.
func up(ctx context.Context, s *service, d *clienttest.Daemon, args ...string) (string, int) {
	stdout, stderr, code := d.CLI(ctx, append([]string{"up", "--login-server=" + s.url, "--timeout=60s"}, args...)...)
	return stdout + stderr, code
}

func mustUp(ctx context.Context, t testing.TB, s *service, d *clienttest.Daemon, args ...string) {
	t.Helper()
	if text, code := up(ctx, s, d, args...); code != 0 {
		t.Fatalf("up %v: %d %s", args, code, text)
	}
	if err := d.WaitState(ctx, "Running"); err != nil {
		t.Fatal(err)
	}
}

// Conformance item 1, with real clients.
func TestRealClientShowsWhyItsKeyIsRefused(t *testing.T) {
	forClients(t, func(ctx context.Context, s *service, d *clienttest.Daemon) {
		t := s.t
		text, code := up(ctx, s, d, "--auth-key=flp_AAAAAAAAAAAA_"+strings.Repeat("a", 43))
		if code == 0 || !strings.Contains(text, badKey+"(the key is unknown; ask your administrator for a new one)") {
			t.Errorf("exit code %d: %s", code, text)
		}
		mustUp(ctx, t, s, d, "--auth-key="+s.key(control.NewPreAuthKey{User: "alice"}))
		if n := s.only(); n.Host == "" || n.OS != "linux" || n.CapVersion < 106 {
			t.Errorf("%+v", n)
		}
	})
}

// Conformance item 2, with real clients.
func TestRealClientIsApproved(t *testing.T) {
	forClients(t, func(ctx context.Context, s *service, d *clienttest.Daemon) {
		t := s.t
		var text string
		var code int
		var asking sync.WaitGroup
		asking.Go(func() { text, code = up(ctx, s, d) })
		var waiting control.WaitingLogin
		until(t, "the client waits", func() bool {
			for _, waiting = range s.WaitingLogins() {
				return true
			}
			return false
		})
		if _, _, err := s.ApproveLogin(ctx, admin, "alice", waiting.Code); err != nil {
			t.Fatal(err)
		}
		asking.Wait()
		if code != 0 || !regexp.MustCompile(regexp.QuoteMeta(s.url)+`/auth/[A-Za-z0-9_-]+\s`).MatchString(text) {
			t.Errorf("exit code %d: %s", code, text)
		}
		if err := d.WaitState(ctx, "Running"); err != nil {
			t.Fatal(err)
		}
		if n := s.only(); n.Method != mesh.RegisterApproved || n.NodeKey != waiting.NodeKey {
			t.Errorf("%+v", n)
		}
	})
}

// Conformance item 2, with real clients.
func TestRealClientShowsWhyItIsRejected(t *testing.T) {
	forClients(t, func(ctx context.Context, s *service, d *clienttest.Daemon) {
		var text string
		var code int
		var asking sync.WaitGroup
		asking.Go(func() { text, code = up(ctx, s, d) })
		until(s.t, "the client waits", func() bool { return len(s.WaitingLogins()) > 0 })
		if _, err := s.RejectLogin(ctx, admin, s.WaitingLogins()[0].Code, "ask in the office"); err != nil {
			s.t.Fatal(err)
		}
		asking.Wait()
		if code == 0 || !strings.Contains(text, "Node registration rejected: ask in the office") {
			s.t.Errorf("exit code %d: %s", code, text)
		}
	})
}

// Conformance item 3, with real clients.
func TestRealClientKeepsItsPlaceThroughItsLife(t *testing.T) {
	forClients(t, func(ctx context.Context, s *service, d *clienttest.Daemon) {
		t := s.t
		once := "--auth-key=" + s.key(control.NewPreAuthKey{User: "alice"})
		mustUp(ctx, t, s, d, once)
		born := *s.only()
		same := func(what string, rekeyed bool) {
			t.Helper()
			n := s.only()
			if n.ID != born.ID || n.IPv4 != born.IPv4 || n.Name != born.Name || n.Lapsed || (n.NodeKey != born.NodeKey) != rekeyed {
				t.Errorf("%s: %+v, was %+v", what, n, born)
			}
			born.NodeKey = n.NodeKey
		}
		if err := d.Restart(); err != nil {
			t.Fatal(err)
		}
		if err := d.WaitState(ctx, "Running"); err != nil {
			t.Fatal(err)
		}
		same("restart", false)
		mustUp(ctx, t, s, d, once) // used up long ago
		same("up with the same key", false)
		if _, stderr, code := d.CLI(ctx, "down"); code != 0 {
			t.Fatal(stderr)
		}
		mustUp(ctx, t, s, d)
		same("down and up", false)
		again := "--auth-key=" + s.key(control.NewPreAuthKey{User: "alice", Reusable: true})
		mustUp(ctx, t, s, d, "--force-reauth", again)
		same("--force-reauth", true)
		if _, stderr, code := d.CLI(ctx, "logout"); code != 0 {
			t.Fatal(stderr)
		}
		if n := s.only(); !n.Lapsed {
			t.Errorf("logout: %+v", n)
		}
		if err := d.Wait(ctx, func(st *ipnstate.Status) bool { return st.BackendState == "NeedsLogin" }); err != nil {
			t.Fatal(err)
		}
		mustUp(ctx, t, s, d, again)
		same("logout and login", true)
	})
}
