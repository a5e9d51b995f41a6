package api_test

import (
	"encoding/binary"
	"net/http"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// A caller that sends more idempotency keys than can be stored is told to wait. Recent
// keys are not dropped, so a retry of a recent request is not executed a second time.
func TestNewRequestsDoNotEvictYoungOnes(t *testing.T) {
	s := sqlite(t).listen()
	s.call("POST", "/api/v1/user", `{"name": "ada"}`, "Idempotency-Key: first").ok()
	var owner string
	for m := range s.ledger.World().Receipts.All() {
		owner = m.Owner
	}
	_, err := s.ledger.Commit(t.Context(), mesh.Actor{Kind: mesh.ActorServer}, func(_ *policy.World, now mesh.Time) (evs []mesh.Event, _ error) {
		for id := mesh.ReceiptID(2); id <= mesh.MaxOwnerReceipts; id++ {
			m := &mesh.Receipt{ID: id, Owner: owner, Until: now.Add(mesh.ReceiptLifetime)}
			binary.BigEndian.PutUint64(m.Key[:], uint64(id))
			evs = append(evs, mesh.ReceiptPut{Receipt: m})
		}
		return evs, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	full := s.call("POST", "/api/v1/user", `{"name": "bob"}`, "Idempotency-Key: one too many")
	if full.status != http.StatusTooManyRequests || full.header.Get("Retry-After") == "" {
		t.Errorf("got %d with Retry-After %q", full.status, full.header.Get("Retry-After"))
	}
	if repeat := s.call("POST", "/api/v1/user", `{"name": "ada"}`, "Idempotency-Key: first"); repeat.header.Get("Idempotency-Replayed") != "true" {
		t.Error("the first request was forgotten")
	}
	s.call("POST", "/api/v1/user", `{"name": "carol"}`).ok() // without a key, nothing needs to be stored
}
