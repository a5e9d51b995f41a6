package bff

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

const (
	accountPath = adminPath + "account"
	// maxOwnSessions is how many sessions the account page shows. The server keeps at most 50 of a person.
	maxOwnSessions = 50
	timeLayout     = "2 Jan 2006 15:04 MST"

	textNoSuchSession = "This session has already ended."
)

// accountSession is a row of the account page.
type accountSession struct {
	ID, Name, Client, Used, From, Expires string
	Current                               bool
}

// account handles the page on which people see and end their sessions. It has no script, so that it is the same
// for people whose role gives no access to the other pages.
func (s *Server) account(w http.ResponseWriter, r *http.Request) {
	v, now := s.visitor(r), s.now()
	held, ok, why := s.heldSession(r, v, now)
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
		notAllowed(w, "GET, HEAD, POST")
	case !ok:
		s.loginPage(w, r, v, http.StatusOK, accountPath, why.text())
	case !held.Person: // API keys have no sessions
		http.Redirect(w, r, adminPath, http.StatusSeeOther)
	case r.Method == http.MethodPost:
		s.revokeOwn(w, r, v, held)
	default:
		s.renew(w, v, held, now)
		s.accountPage(w, r, v, held, http.StatusOK, "")
	}
}

// revokeOwn ends another session of the person.
func (s *Server) revokeOwn(w http.ResponseWriter, r *http.Request, v visitor, held session) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLoginBody)
	if r.ParseForm() != nil || !fromHere(r) || !s.seals.isCSRFToken(held.ID, r.PostForm.Get("csrf")) {
		w.Header().Set("Referrer-Policy", "same-origin") // needed because the page has a form
		s.plainPage(w, r, http.StatusForbidden, "stay", plainPage{Token: s.seals.csrfToken(held.ID)})
		return
	}
	id := r.PostForm.Get("session")
	if !number.MatchString(id) {
		s.accountPage(w, r, v, held, http.StatusBadRequest, textNoSuchSession)
		return
	}
	switch err := s.upstream.revoke(r.Context(), held.Key, id, forwarded(v, requestID(w))); {
	case errors.Is(err, errNoSession):
		s.accountPage(w, r, v, held, http.StatusNotFound, textNoSuchSession)
	case err != nil:
		s.log.Warn("cannot revoke a session", "user", held.Prefix, "err", err)
		s.accountPage(w, r, v, held, http.StatusBadGateway, s.textAway())
	default:
		s.log.Info("session revoked by its owner", "user", held.Prefix, "session", id, "addr", v.addr.String())
		http.Redirect(w, r, accountPath, http.StatusSeeOther)
	}
}

// accountPage shows the sessions of a person.
func (s *Server) accountPage(w http.ResponseWriter, r *http.Request, v visitor, held session, status int, message string) {
	p := plainPage{Token: s.seals.csrfToken(held.ID), Person: held.Prefix, Message: message}
	edit := forwarded(v, requestID(w))
	found := s.checkKey(r.Context(), held, v, requestID(w))
	sessions, err := s.upstream.sessions(r.Context(), held.Key, edit)
	switch {
	case errors.Is(err, errEnded), errors.Is(found.err, errEnded):
		s.endSession(w, v, held)
		s.loginPage(w, r, v, http.StatusOK, accountPath, held.revokedBy().text())
		return
	case err != nil:
		s.log.Warn("cannot list the sessions of a person", "user", held.Prefix, "err", err)
		p.Message = cmp.Or(message, s.textAway())
	}
	p.Restricted = found.caller != nil && !mayUse(found.caller)
	for _, each := range sessions {
		p.Sessions = append(p.Sessions, accountSession{
			ID: each.ID, Name: cmp.Or(each.Description, string(each.Client)), Client: clientName(each.Client), Used: lastUsed(each), From: each.LastUsedFrom,
			Expires: each.Expiration.UTC().Format(timeLayout), Current: each.Current,
		})
	}
	w.Header().Set("Referrer-Policy", "same-origin") // needed because the page has forms
	s.plainPage(w, r, status, "account", p)
}

func clientName(c apiclient.SessionClient) string {
	if c == apiclient.SessionCLI {
		return "Command line"
	}
	return "Console"
}

func lastUsed(v apiclient.Session) string {
	at := v.CreatedAt
	if v.LastSeen != nil {
		at = *v.LastSeen
	}
	return at.UTC().Truncate(time.Minute).Format(timeLayout)
}
