package relay_test

import (
	"context"
	"fmt"
	"testing"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/relay"
)

const unproven = "mesh_unauthenticated_connections"

// counted waits until this number of connections counts as unauthenticated.
func (r *running) counted(t *testing.T, want float64) {
	t.Helper()
	eventually(t, func() error {
		if n := (&running{metrics: r.guard}).value(t, unproven); n != want {
			return fmt.Errorf("%v connections count as those of strangers, want %v", n, want)
		}
		return nil
	})
}

func TestClientIsAStrangerUntilItHasShownItsKey(t *testing.T) {
	known := key.NewNode()
	asked := make(chan struct{}, 1)
	r := start(t, relay.ServerConfig{Verify: func(_ context.Context, k key.NodePublic) bool {
		asked <- struct{}{}
		return k == known.Public()
	}})
	frame := clientInfo(known.Public(), known.SealTo(r.key.Public(), []byte(`{"version":2}`)))
	conn, _ := upgrade(t, r, "")
	if _, err := conn.Write(frame[:50]); err != nil { // a node's key is public; the proof is in the rest
		t.Fatal(err)
	}
	<-asked
	for range 100 { // the key alone would have been accepted by now
		r.counted(t, 1)
	}
	if _, err := conn.Write(frame[50:]); err != nil {
		t.Fatal(err)
	}
	r.counted(t, 0)
}

func TestRelayForAllTellsNodesFromStrangers(t *testing.T) {
	known := key.NewNode()
	r := start(t, relay.ServerConfig{ServeAll: true, Verify: func(_ context.Context, k key.NodePublic) bool { return k == known.Public() }})
	stranger := connected(t, r.url, key.NewNode())
	connected(t, r.url, known)
	r.counted(t, 1)
	if err := stranger.Send(known.Public(), []byte("x")); err != nil {
		t.Error(err)
	}
}

func TestNodeHasAFewConnections(t *testing.T) {
	one, other := key.NewNode(), key.NewNode()
	r := start(t, relay.ServerConfig{Verify: func(context.Context, key.NodePublic) bool { return true }})
	stays := connected(t, r.url, other)
	first := connected(t, r.url, one)
	for range 15 {
		connected(t, r.url, one)
	}
	if n := r.value(t, "mesh_derp_connections_active"); n != 17 {
		t.Errorf("%v connections", n)
	}
	connected(t, r.url, one)
	for {
		if _, err := first.Recv(); err != nil { // the connection was closed
			break
		}
	}
	if err := stays.Send(other.Public(), []byte("still here")); err != nil {
		t.Fatal(err)
	}
	if got := packet(t, stays); string(got.Data) != "still here" {
		t.Errorf("%q", got.Data)
	}
}
