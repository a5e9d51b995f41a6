package api

import (
	"net/http"
	"runtime/pprof"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
)

// DebugProfile implements GET /api/v1/debug/profile.
func (s *Server) DebugProfile(w http.ResponseWriter, _ *http.Request) {
	reply(w, s.ledger.World().Snapshot, openapi.Profiles{Goroutines: profile("goroutine"), Heap: profile("heap")})
}

// profile is one of the runtime's profiles as text, which has no values of
// variables.
func profile(name string) string {
	var b strings.Builder
	if err := pprof.Lookup(name).WriteTo(&b, 1); err != nil {
		return err.Error()
	}
	return b.String()
}
