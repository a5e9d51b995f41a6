package wire

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/oidc"
)

const (
	logoutPath = signInPath + "backchannel-logout"
	maxLogout  = 16 << 10
	// maxLogouts is how many logout tokens are verified at the same time. They all come from the provider, so there is
	// no limit for one network. Others wait for logoutWait, because few providers try again.
	maxLogouts = 16
	logoutWait = 2 * time.Second
)

// logout ends the sessions of a person whom the provider has signed out, and makes the server ask the provider about the
// person at once (OpenID Connect Back-Channel Logout 1.0). Anyone can send a request, but only a provider can sign one.
func (s *signIn) logout(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if s.mustRefuse(r.Context()) {
		tryLater(w, http.StatusServiceUnavailable, "try again later")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxLogout)
	token := r.PostFormValue("logout_token")
	issuer := oidc.IssuerOf(token)
	i := slices.IndexFunc(s.providers, func(p *oidc.Provider) bool { return p.Issuer() == issuer })
	if i < 0 {
		s.refuseLogout(w, r, "", "the request contains no logout token of a known provider")
		return
	}
	p := s.providers[i]
	out, err := s.verifyLogout(r.Context(), p, token)
	switch {
	case errors.Is(err, errManyLogouts) || errors.Is(err, oidc.ErrNoKeys) || errors.Is(err, oidc.ErrUnreachable):
		if addr := s.addr(r); s.refusals.Admit(addr) {
			s.config.Log.Warn("back-channel logout not verified", "addr", addr, "issuer", issuer, "reason", err.Error())
		}
		tryLater(w, http.StatusServiceUnavailable, "try again later")
		return
	case err != nil:
		s.refuseLogout(w, r, issuer, err.Error())
		return
	case out.Subject != "" && s.looksLikeAnother(p, out.Issuer, out.Subject):
		s.refuseLogout(w, r, issuer, "the account could be confused with one of another provider")
		return
	}
	err = s.config.Rechecks.LoggedOut(r.Context(), s.actor(r), control.Person{Issuer: out.Issuer, Subject: out.Subject, Session: control.ProviderSession(out.Issuer, out.Session)}, out.ID)
	refusal := new(control.Refusal)
	switch {
	case errors.As(err, &refusal):
		s.refuseLogout(w, r, issuer, refusal.Text)
	case err != nil:
		if !errors.Is(err, context.Canceled) {
			s.config.Log.Error("back-channel logout failed", "error", err)
		}
		tryLater(w, http.StatusServiceUnavailable, "try again later")
	}
}

var errManyLogouts = errors.New("too many people are being signed out")

// verifyLogout verifies a token when it is its turn.
func (s *signIn) verifyLogout(ctx context.Context, p *oidc.Provider, token string) (oidc.Logout, error) {
	wait := time.NewTimer(logoutWait)
	defer wait.Stop()
	select {
	case s.logouts <- struct{}{}:
		defer func() { <-s.logouts }()
		return p.VerifyLogout(ctx, token)
	case <-wait.C:
		return oidc.Logout{}, errManyLogouts
	case <-ctx.Done():
		return oidc.Logout{}, errManyLogouts
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
