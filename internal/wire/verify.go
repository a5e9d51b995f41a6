package wire

import (
	"errors"
	"net/http"

	"tailscale.com/tailcfg"

	"github.com/fairlead-mesh/fairlead/internal/control"
)

// maxVerifyBody has room for one key and one address.
const maxVerifyBody = 4 << 10

// verify tells a relay whether a client may use it.
func (s *Server) verify(w http.ResponseWriter, r *http.Request) {
	if s.mustRefuse(r.Context()) {
		refuseClosed(w)
		return
	}
	var in tailcfg.DERPAdmitClientRequest
	r.Body = http.MaxBytesReader(w, r.Body, maxVerifyBody)
	if !decode(w, r, &in) {
		return
	}
	err := s.config.Clients.AdmitToRelay(r.Context(), in.NodePublic)
	var refusal *control.Refusal
	if err != nil && !errors.As(err, &refusal) {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, tailcfg.DERPAdmitClientResponse{Allow: err == nil})
}

// bootstrapDNS responds to clients that cannot resolve names by other means. It always returns an empty result:
// relays have an address, or a name that the client resolves itself.
func bootstrapDNS(w http.ResponseWriter, _ *http.Request) { writeJSON(w, struct{}{}) }
