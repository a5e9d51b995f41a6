//go:build !race

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"tailscale.com/ipn/ipnstate"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

// A device waits until it is approved, without a command on it, and loses access when the approval is
// withdrawn.
func TestNodeWaitsForItsApproval(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, patience)
		n := startNetwork(t, meshtest.Config{Set: map[string]string{"node.approval_required": "true"}})
		viewer := n.join(ctx, clienttest.Options{Version: version}, n.key("--pre-approved"), "viewer")
		awaitState(ctx, t, viewer, "Running")
		here, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		serveEcho(t, here)

		subject := clienttest.Start(t, clienttest.Options{Version: version})
		up := make(chan error, 1)
		go func() { up <- subject.Up(ctx, n.URL, n.key(), "--hostname=subject") }()
		awaitState(ctx, t, subject, "NeedsMachineAuth")
		if stdout, _, code := subject.CLI(ctx, "status"); code == 0 || !strings.Contains(stdout, "not yet approved") {
			t.Errorf("tailscale status ends with code %d and says: %s", code, stdout)
		}
		await(ctx, t, subject, func(s *ipnstate.Status) bool { return len(s.Peer) == 0 && tells(s, "must approve this device") })
		await(ctx, t, viewer, func(s *ipnstate.Status) bool { return len(s.Peer) == 0 })
		target := fmt.Sprintf("%s:%d", n.nodes(ctx)["subject"].IPAddresses[0], here.Addr().(*net.TCPAddr).Port)
		if conn, err := viewer.Dial(ctx, target); err == nil {
			conn.Close()
			t.Error("a node that waits for approval is reachable")
		}

		began := time.Now()
		n.CLI("nodes", "approve", "subject")
		await(ctx, t, subject, func(s *ipnstate.Status) bool { return seesOnline("viewer")(s) && !tells(s, "must approve this device") })
		await(ctx, t, viewer, seesOnline("subject"))
		conn := dial(ctx, t, viewer.Dial, target)
		checkEcho(t, conn, "approved")
		t.Logf("reachable %v after the approval", time.Since(began))
		if err := <-up; err != nil {
			t.Errorf("tailscale up: %v", err)
		}

		n.change(ctx, http.MethodPut, "subject/approval", `{"approved": false}`)
		awaitState(ctx, t, subject, "NeedsMachineAuth")
		await(ctx, t, viewer, func(s *ipnstate.Status) bool { return len(s.Peer) == 0 })
	})
}

// tells reports whether the health messages of a client contain a text.
func tells(s *ipnstate.Status, text string) bool {
	return slices.ContainsFunc(s.Health, func(message string) bool { return strings.Contains(message, text) })
}

// The client of a suspended person says why it is cut off.
func TestClientTellsThatTheAccountIsSuspended(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, patience)
		n := startNetwork(t, meshtest.Config{})
		d := n.join(ctx, clienttest.Options{Version: version}, n.key(), "laptop")
		awaitState(ctx, t, d, "Running")
		n.CLI("users", "suspend", "alice", "--force")
		await(ctx, t, d, func(s *ipnstate.Status) bool { return s.BackendState == "NeedsLogin" && tells(s, "owner is suspended") })
		n.CLI("users", "restore", "alice")
		await(ctx, t, d, func(s *ipnstate.Status) bool { return s.BackendState == "Running" && !tells(s, "owner is suspended") })
	})
}

// A client says that the sign-in of its device expires soon, until the expiry changes.
func TestClientAnnouncesTheExpiryOfItsSignIn(t *testing.T) {
	t.Parallel()
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, patience)
		n := startNetwork(t, meshtest.Config{Set: map[string]string{"node_update_check_interval": "1s"}})
		subject := n.join(ctx, clienttest.Options{Version: version}, n.key(), "subject")
		awaitState(ctx, t, subject, "Running")
		// The server tells the device only if the change is more than three days before the expiry, so a slow
		// machine needs another attempt.
		told := false
		for lead := 5 * time.Second; !told && ctx.Err() == nil; lead *= 2 {
			soon := time.Now().Add(3*24*time.Hour + lead).UTC()
			n.CLI("nodes", "expire", "subject", "--at", soon.Format(time.RFC3339))
			soonEnough, cancel := context.WithTimeout(ctx, 2*lead)
			told = subject.Wait(soonEnough, func(s *ipnstate.Status) bool { return tells(s, soon.Format("expires on 2 January 2006")) }) == nil
			cancel()
		}
		if !told {
			t.Fatal("the client does not say that its sign-in expires")
		}
		n.CLI("nodes", "expire", "subject", "--never")
		await(ctx, t, subject, func(s *ipnstate.Status) bool { return !tells(s, "expires on") })
	})
}
