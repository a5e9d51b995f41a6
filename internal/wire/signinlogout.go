package wire

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/oidc"
)

const (
	logoutPath = signInPath + "backchannel-logout"
	maxLogout  = 16 << 10
)

// logout ends the sessions of a person whom the provider has signed out, and makes the server ask the provider about the
// person at once (OpenID Connect Back-Channel Logout 1.0). Anyone can send a request, but only a provider can sign one.
func (s *signIn) logout(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	network := identity.Network(s.addr(r))
	if s.mustRefuse(r.Context()) || !s.exchanges.enter(network) {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "try again later", http.StatusServiceUnavailable)
		return
	}
	defer s.exchanges.leave(network)
	r.Body = http.MaxBytesReader(w, r.Body, maxLogout)
	token := r.PostFormValue("logout_token")
	issuer := oidc.IssuerOf(token)
	i := slices.IndexFunc(s.providers, func(p *oidc.Provider) bool { return p.Issuer() == issuer })
	if i < 0 {
		s.refuseLogout(w, r, "", "the request contains no logout token of a known provider")
		return
	}
	out, err := s.providers[i].VerifyLogout(r.Context(), token)
	if err != nil {
		s.refuseLogout(w, r, issuer, err.Error())
		return
	}
	err = s.config.Rechecks.LoggedOut(r.Context(), s.actor(r), control.Person{Issuer: out.Issuer, Subject: out.Subject}, out.ID)
	refusal := new(control.Refusal)
	switch {
	case errors.As(err, &refusal):
		s.refuseLogout(w, r, issuer, refusal.Text)
	case err != nil:
		if !errors.Is(err, context.Canceled) {
			s.config.Log.Error("back-channel logout failed", "error", err)
		}
		w.Header().Set("Retry-After", "5")
		http.Error(w, "try again later", http.StatusServiceUnavailable)
	}
}

func (s *signIn) refuseLogout(w http.ResponseWriter, r *http.Request, issuer, reason string) {
	if addr := s.addr(r); s.refusals.Admit(addr) {
		s.config.Log.Warn("back-channel logout refused", "addr", addr, "issuer", issuer, "reason", reason)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_request", "error_description": reason})
}
