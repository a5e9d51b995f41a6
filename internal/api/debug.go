package api

import (
	"net/http"
	"runtime/pprof"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
)

// diagnostics handles the operations for debugging a replica.
type diagnostics struct {
	*core
	cluster *ledger.Cluster
}

// DebugProfile implements GET /api/v1/debug/profile.
func (s *diagnostics) DebugProfile(w http.ResponseWriter, _ *http.Request) {
	reply(w, s.ledger.World().Snapshot, openapi.Profiles{Goroutines: profile("goroutine"), Heap: profile("heap")})
}

// profile returns one of the runtime's profiles as text. It contains no values of variables.
func profile(name string) string {
	var b strings.Builder
	if err := pprof.Lookup(name).WriteTo(&b, 1); err != nil {
		return err.Error()
	}
	return b.String()
}

// DebugDigest implements GET /api/v1/debug/digest.
func (s *diagnostics) DebugDigest(w http.ResponseWriter, _ *http.Request) {
	snap := s.ledger.World().Snapshot
	out := openapi.Digest{
		Replica: string(s.cluster.Self().ID), Revision: revision(snap.Rev), Digest: snap.Digest(), Replicas: []openapi.ReplicaDigest{},
	}
	for _, r := range s.cluster.Replicas() {
		out.Replicas = append(out.Replicas, openapi.ReplicaDigest{
			ID: string(r.ID), Version: r.Version, Revision: revision(r.Rev),
			DigestRevision: revision(r.DigestRev), Digest: r.Digest, AgeMillis: int(r.Age.Milliseconds()),
		})
	}
	reply(w, snap, out)
}
