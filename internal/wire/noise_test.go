package wire_test

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
)

// streams opens a map stream and waits for the first map.
func (c *client) streams() io.Closer {
	c.s.t.Helper()
	res, err := c.ask(c.s.t.Context(), "POST", "/machine/map", strings.NewReader(c.mapRequest(nil)))
	if err != nil {
		c.s.t.Fatal(err)
	}
	next(c.s.t, res.Body)
	return res.Body
}

func TestBothKeysAreAcceptedDuringARotation(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	text := s.key(control.NewPreAuthKey{User: "alice", Reusable: true})
	stays := s.client()
	stays.joins(withKey(text))

	ctx, cancel := context.WithCancel(t.Context())
	var loop sync.WaitGroup
	loop.Go(func() { _ = s.wire.Run(ctx) })
	defer loop.Wait()
	defer cancel()

	old, next := identity.NoiseKey{Number: 1, Private: s.noise}, identity.NoiseKey{Number: 2, Private: key.NewMachine()}
	s.keys.Replace(next, old)
	if _, _, text := s.outside("GET", "/key?v=142", ""); !strings.Contains(text, next.Private.Public().String()) {
		t.Errorf("/key is %s", text)
	}
	late := s.client() // still with the old key
	late.joins(withKey(text))
	defer late.streams().Close()
	s.noise = next.Private
	restarted := s.client()
	restarted.joins(withKey(text))
	defer restarted.streams().Close()
	for c, want := range map[*client]int{late: 1, restarted: 2} {
		n, _ := s.ledger.World().Nodes.ByKey(c.node.Public())
		until(t, "the key of the connection is recorded", func() bool { return s.Observations.Facts(n.ID).NoiseKey == want })
	}

	s.keys.Replace(next)
	until(t, "connections with the retired key are closed", func() bool { return !late.http.CanTakeNewRequest() && !stays.http.CanTakeNewRequest() })
	if !restarted.http.CanTakeNewRequest() {
		t.Error("a connection with the new key was closed")
	}
	s.noise = old.Private
	init, _ := s.initiation(key.NewMachine())
	if _, status := s.handshake(base64.StdEncoding.EncodeToString(init)); status != http.StatusBadRequest {
		t.Errorf("the retired key is accepted: %d", status)
	}
}
