//go:build !race

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"tailscale.com/ipn/ipnstate"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

// startPair starts a network of two clients that see each other.
func startPair(ctx context.Context, t *testing.T, version string) (n network, subject, viewer *clienttest.Daemon) {
	t.Helper()
	n = startNetwork(t, meshtest.Config{})
	key := n.key("--reusable")
	subject = n.join(ctx, clienttest.Options{Version: version}, key, "subject")
	viewer = n.join(ctx, clienttest.Options{Version: version}, key, "viewer")
	await(ctx, t, viewer, seesOnline("subject"))
	await(ctx, t, subject, seesOnline("viewer"))
	return n, subject, viewer
}

// change sends a request to the API that changes a node.
func (n network) change(ctx context.Context, method, path, body string) {
	n.t.Helper()
	if _, err := n.API(ctx, method, "/api/v1/node/"+path, body); err != nil {
		n.t.Fatal(err)
	}
}

func TestExpiredNodeIsBackWhenItIsExtended(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, patience)
		n, subject, viewer := startPair(ctx, t, version)
		before := n.nodes(ctx)["subject"].NodeKey
		for _, extension := range []string{`{"disableExpiry": true}`, fmt.Sprintf(`{"expiry": %q}`, time.Now().Add(time.Hour).Format(time.RFC3339))} {
			n.change(ctx, http.MethodPost, "subject/expire", "")
			awaitState(ctx, t, subject, "NeedsLogin")
			await(ctx, t, viewer, func(s *ipnstate.Status) bool { return peer(s, "subject").Expired })

			n.change(ctx, http.MethodPost, "subject/expire", extension)
			awaitState(ctx, t, subject, "Running")
			await(ctx, t, viewer, func(s *ipnstate.Status) bool { return !peer(s, "subject").Expired && peer(s, "subject").Online })
			ping(ctx, t, viewer, "subject", "pong from subject")
		}
		if after := n.nodes(ctx)["subject"].NodeKey; after != before {
			t.Errorf("the client has registered again: its key was %s and is %s", before, after)
		}
	})
}

func TestDeletedNodeIsPushedOutAndForgotten(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, patience)
		n, subject, viewer := startPair(ctx, t, version)
		other := n.join(ctx, clienttest.Options{Version: version}, n.key(), "other")
		await(ctx, t, viewer, seesOnline("subject", "other"))
		for name, d := range map[string]*clienttest.Daemon{"subject": subject, "other": other} { // one of them is the last peer of the viewer
			n.change(ctx, http.MethodDelete, name, "")
			await(ctx, t, viewer, func(s *ipnstate.Status) bool { return peer(s, name) == nil })
			awaitState(ctx, t, d, "NeedsLogin")
		}
		await(ctx, t, viewer, func(s *ipnstate.Status) bool { return len(s.Peer) == 0 && s.BackendState == "Running" })
		n.up(ctx, subject, n.key(), "subject") // as a new node
		await(ctx, t, viewer, seesOnline("subject"))
	})
}

func TestRenamedNodeAnswersToItsNewName(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, patience)
		n, subject, viewer := startPair(ctx, t, version)
		here, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		serveEcho(t, here)
		port := here.Addr().(*net.TCPAddr).Port
		checkEcho(t, dial(ctx, t, viewer.Dial, fmt.Sprintf("subject.%s:%d", baseDomain, port)), "by the old name")

		n.change(ctx, http.MethodPost, "subject/rename/renamed", "")
		await(ctx, t, viewer, func(s *ipnstate.Status) bool { return peer(s, "renamed") != nil && peer(s, "subject") == nil })
		await(ctx, t, subject, func(s *ipnstate.Status) bool { return s.Self.DNSName == "renamed."+baseDomain+"." })
		checkEcho(t, dial(ctx, t, viewer.Dial, fmt.Sprintf("renamed.%s:%d", baseDomain, port)), "by the new name")
		if conn, err := viewer.Dial(ctx, fmt.Sprintf("subject.%s:%d", baseDomain, port)); err == nil {
			conn.Close()
			t.Error("the node still answers to its old name")
		}
	})
}

func TestReservedAddressReachesTheNodeAndItsPeers(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, patience)
		n, subject, viewer := startPair(ctx, t, version)
		const reserved = "100.64.7.1"
		n.change(ctx, http.MethodPut, "subject/addresses", `{"ipv4": "`+reserved+`"}`)
		has := func(p *ipnstate.PeerStatus) bool { return p.TailscaleIPs[0].String() == reserved }
		await(ctx, t, viewer, func(s *ipnstate.Status) bool { return has(peer(s, "subject")) })
		await(ctx, t, subject, func(s *ipnstate.Status) bool { return has(s.Self) })
		ping(ctx, t, viewer, reserved, "pong from subject")
		ping(ctx, t, subject, "viewer", "pong from viewer")
	})
}

func TestFrozenClientIsShownOffline(t *testing.T) {
	t.Parallel()
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, patience)
		_, subject, viewer := startPair(ctx, t, version)
		if err := subject.Process().Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = subject.Process().Signal(syscall.SIGCONT) }) // otherwise the daemon could not exit
		await(ctx, t, viewer, func(s *ipnstate.Status) bool { return !peer(s, "subject").Online })
		if err := subject.Process().Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		await(ctx, t, viewer, seesOnline("subject"))
	})
}
