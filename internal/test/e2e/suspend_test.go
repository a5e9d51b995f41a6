//go:build !race

package e2e

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"tailscale.com/ipn/ipnstate"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

// TestSuspendedPersonIsCutOffAndComesBackByThemselves also restarts the device during a suspension: clients
// register again when they start.
func TestSuspendedPersonIsCutOffAndComesBackByThemselves(t *testing.T) {
	t.Parallel()
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, 2*patience)
		n := startNetwork(t, meshtest.Config{})
		n.CLI("users", "create", "bob")
		subject := n.join(ctx, clienttest.Options{Version: version}, n.PreAuthKey("bob"), "subject")
		viewer := n.join(ctx, clienttest.Options{Version: version}, n.key(), "viewer")
		await(ctx, t, viewer, seesOnline("subject"))
		here, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		serveEcho(t, here)
		pair := &trial{n, viewer, fmt.Sprintf("subject.%s:%d", baseDomain, here.Addr().(*net.TCPAddr).Port)}
		pair.awaitTraffic(ctx, t)
		before := n.nodes(ctx)["subject"].NodeKey

		suspend := func() {
			t.Helper()
			began := time.Now()
			n.CLI("users", "suspend", "bob")
			pair.awaitSilence(ctx, t)
			silent := time.Since(began)
			awaitState(ctx, t, subject, "NeedsLogin")
			await(ctx, t, viewer, func(s *ipnstate.Status) bool { return peer(s, "subject") == nil })
			t.Logf("no traffic %v after the suspension, everyone knows after %v", silent.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
		}
		restore := func() {
			t.Helper()
			began := time.Now()
			n.CLI("users", "restore", "bob")
			pair.awaitTraffic(ctx, t)
			t.Logf("traffic %v after the restoration", time.Since(began).Round(time.Millisecond))
			awaitState(ctx, t, subject, "Running")
		}
		suspend()
		stdout, stderr, _ := subject.CLI(ctx, "status")
		t.Logf("status of the device: %s%s", stdout, stderr)
		other := clienttest.Start(t, clienttest.Options{Version: version})
		if err := other.Up(ctx, n.URL, n.key(), "--hostname=other"); err != nil {
			t.Errorf("another person: %v", err)
		}
		restore()

		suspend()
		if err := subject.Restart(); err != nil {
			t.Fatal(err)
		}
		eventually(ctx, t, func() error {
			stdout, stderr, _ := subject.CLI(ctx, "status")
			if text := stdout + stderr; !strings.Contains(text, "suspended") {
				return errors.New("the device does not say why it has no access: " + text)
			}
			return nil
		})
		restore()
		if after := n.nodes(ctx)["subject"].NodeKey; after != before {
			t.Errorf("the client has registered again: its key was %s and is %s", before, after)
		}
	})
}
