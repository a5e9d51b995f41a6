package bff

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

// People sign in with the server's identity provider in three steps: a link on the login page leads to startSignIn, which sends
// the browser to the server. The server sends it back to finishSignIn with a one-time code, for which the console gets a session
// token. From then on, the token takes the place of an API key.

const (
	signInPath   = adminPath + "signin"
	callbackPath = signInPath + "/callback"
	signInName   = "fairlead_signin"
	hostPrefix   = "__Host-"
	signInTime   = 15 * time.Minute // how long a person may take; the server allows ten minutes at the provider
	maxCode      = 4096
	// currentSession stands for the session of a request in the server's API.
	currentSession = "current"

	textNoFlow   = "This sign-in was not started in this browser, took too long, or has already been used. Sign in again."
	textBadCode  = "The server did not accept this sign-in: it has expired or was already used. Sign in again."
	textProvider = "This sign-in option is not available any more. Choose another one."
)

// errBadCode means that the server does not give a session for a one-time code.
var errBadCode = errors.New("the server rejects the one-time code")

// signInFlow is a sign-in in progress. It is sealed into a cookie, so that only the browser that started the sign-in can finish
// it: a link with a code of somebody else does nothing.
type signInFlow struct {
	State    string    `json:"state"`
	Verifier string    `json:"verifier"`
	Return   string    `json:"return"`
	Path     string    `json:"path"` // of the page to open
	Made     time.Time `json:"made"`
}

// signInCookie returns the cookie for a sign-in. Unlike the other cookies, it gets the prefix __Host- over TLS. Otherwise, a host
// with the same parent domain could plant the cookie of its own sign-in, and sign the browser in as somebody else.
func signInCookie(v visitor, text string, lifetime time.Duration) *http.Cookie {
	c := &http.Cookie{
		Name: signInName, Value: text, Path: adminPath, MaxAge: int(lifetime.Seconds()), HttpOnly: true, Secure: v.secure, SameSite: http.SameSiteLaxMode,
	}
	if v.secure {
		c.Name, c.Path = hostPrefix+signInName, "/" // browsers demand this path
	}
	return c
}

// returnURL is where the server sends the browser back. The server accepts only the addresses in oidc.console_urls.
func returnURL(r *http.Request, v visitor) string {
	scheme := "http"
	if v.secure {
		scheme = "https"
	}
	return scheme + "://" + strings.ToLower(r.Host) + callbackPath
}

// startSignIn sends the browser to the server. Like the login form, the link works only in the browser for which it was made.
func (s *Server) startSignIn(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		notAllowed(w, http.MethodGet)
		return
	}
	v, now, q := s.visitor(r), s.now(), r.URL.Query()
	path, ok := s.openForm(r, v, q.Get("token"), now)
	if site := r.Header.Get("Sec-Fetch-Site"); !ok || site != "" && site != "same-origin" && site != "none" {
		s.loginPage(w, r, v, http.StatusForbidden, adminPath, textOldForm)
		return
	}
	choices := s.upstream.known(r.Context()).signIn
	target, err := url.Parse(choices.URL)
	offered := slices.ContainsFunc(choices.Providers, func(p apiclient.SignInProvider) bool { return p.ID == q.Get("provider") })
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" || !offered {
		s.loginPage(w, r, v, http.StatusNotFound, path, textProvider)
		return
	}
	flow := signInFlow{State: rand.Text(), Verifier: rand.Text() + rand.Text(), Return: returnURL(r, v), Path: path, Made: now}
	cookie := signInCookie(v, "", signInTime)
	if cookie.Value, err = s.seals.seal(cookie.Name, flow); err != nil {
		s.log.Error("cannot start sign-in", "err", err)
		s.loginPage(w, r, v, http.StatusInternalServerError, path, textInternal)
		return
	}
	http.SetCookie(w, cookie)
	challenge := sha256.Sum256([]byte(flow.Verifier))
	target.RawQuery = url.Values{
		"return_url": {flow.Return}, "state": {flow.State}, "provider": {q.Get("provider")}, "description": {browserName(r.UserAgent())},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}, "code_challenge_method": {"S256"},
	}.Encode()
	http.Redirect(w, r, target.String(), http.StatusSeeOther)
}

// finishSignIn exchanges the code that the browser brings back for a session of the person.
func (s *Server) finishSignIn(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet { // not HEAD either: a code works once
		notAllowed(w, http.MethodGet)
		return
	}
	v, now, q := s.visitor(r), s.now(), r.URL.Query()
	flow, ok := s.heldFlow(r, v, q.Get("state"), now)
	code := q.Get("code")
	if !ok || code == "" || len(code) > maxCode {
		if _, in, _ := s.heldSession(r, v, now); in { // somebody went back in the history
			http.Redirect(w, r, adminPath, http.StatusSeeOther)
			return
		}
		s.log.Warn("sign-in rejected: not started in this browser", "addr", v.addr.String())
		s.loginPage(w, r, v, http.StatusForbidden, adminPath, textNoFlow)
		return
	}
	http.SetCookie(w, signInCookie(v, "", -time.Second))
	from := s.sourceOf(r, v, now)
	if wait := s.throttle.admit(from, now); wait > 0 {
		s.log.Warn("sign-in throttled", "addr", v.addr.String(), "seconds", seconds(wait))
		w.Header().Set("Retry-After", strconv.Itoa(seconds(wait)))
		s.loginPage(w, r, v, http.StatusTooManyRequests, flow.Path, tooMany(wait))
		return
	}
	held, err := s.exchange(r.Context(), flow, code, forwarded(v, requestID(w)), now)
	switch {
	case errors.Is(err, errBadCode):
		s.log.Warn("sign-in rejected", "addr", v.addr.String())
		s.loginPage(w, r, v, http.StatusForbidden, flow.Path, textBadCode)
		return
	case err != nil:
		s.throttle.undo(from)
		s.log.Warn("sign-in failed: server not responding", "addr", v.addr.String(), "err", err)
		s.loginPage(w, r, v, http.StatusServiceUnavailable, flow.Path, s.textAway())
		return
	}
	s.throttle.success(from)
	s.admit(w, r, v, held, flow.Path, now)
}

// heldFlow returns the sign-in of this browser that has this state.
func (s *Server) heldFlow(r *http.Request, v visitor, state string, now time.Time) (flow signInFlow, ok bool) {
	name := signInCookie(v, "", 0).Name
	cookie, err := r.Cookie(name)
	if err != nil || s.seals.open(name, cookie.Value, &flow) != nil {
		return signInFlow{}, false
	}
	same := subtle.ConstantTimeCompare([]byte(state), []byte(flow.State)) == 1
	return flow, same && flow.State != "" && now.Sub(flow.Made) < signInTime
}

// exchange gets the session of a person from the server.
func (s *Server) exchange(ctx context.Context, flow signInFlow, code string, edit apiclient.RequestEditorFn, now time.Time) (session, error) {
	token, err := s.upstream.exchange(ctx, apiclient.SessionExchange{Code: code, Verifier: flow.Verifier, ReturnURL: flow.Return}, edit)
	if err != nil {
		return session{}, err
	}
	caller, err := s.upstream.whoami(ctx, token, edit)
	if errors.Is(err, errEnded) { // revoked in this instant
		err = errBadCode
	}
	if err != nil {
		return session{}, err
	}
	held := newSession(token, caller, now)
	held.Person = true
	return held, nil
}

// endAtServer revokes the session that the server gave to a person. A session with an API key ends here only: the key stays valid.
func (s *Server) endAtServer(ctx context.Context, held session, v visitor, requestID string) {
	if !held.Person {
		return
	}
	if err := s.upstream.revoke(ctx, held.Key, currentSession, forwarded(v, requestID)); err != nil {
		s.log.Error("cannot revoke a session at the server; run \"fairlead sessions revoke\" if its cookie may have been stolen", "user", held.Prefix, "err", err)
	}
}

// browserName describes a browser, so that people can tell their sessions apart.
func browserName(agent string) string {
	first := func(names ...string) string { // the text to look for, and the name that it means
		for pair := range slices.Chunk(names, 2) {
			if strings.Contains(agent, pair[0]) {
				return pair[1]
			}
		}
		return ""
	}
	// Most browsers also claim to be those after them in the list.
	browser := first("Edg", "Edge", "OPR/", "Opera", "Firefox/", "Firefox", "Chrom", "Chrome", "Safari/", "Safari")
	system := first("Android", "Android", "iPhone", "iOS", "iPad", "iPadOS", "Windows", "Windows", "Mac OS X", "macOS", "CrOS", "ChromeOS", "Linux", "Linux")
	switch {
	case browser == "":
		return "browser"
	case system == "":
		return browser
	}
	return browser + " on " + system
}
