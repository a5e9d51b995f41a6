package bff

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

const (
	maxLoginBody = 8 << 10
	maxKeyLength = 256
	maxPath      = 2 << 10
	formTime     = time.Hour // how long a login form can be submitted
	formPurpose  = "login form"
	// refusalTime is the minimum time of every refusal, so that timing does not reveal whether the text looked
	// like a key and was therefore sent to the server.
	refusalTime = 300 * time.Millisecond

	textRefused = "Authentication failed: invalid API key"
	textRevoked = "You were signed out because this key was revoked."
	textExpired = "You were signed out because this key expired."
	textIdle    = "You were signed out after 12 hours of inactivity."
	textOld     = "You were signed out because sessions last at most 7 days."
	textOldForm = "This form has expired or was not sent from this page. Try again."

	textPersonRevoked = "You were signed out because your session was revoked, or your account was suspended or changed."
	textPersonExpired = "You were signed out because your session expired. Sign in again."
	textInternal      = "Something went wrong in the console. Try again."
)

// loginForm is sealed into the login form. A browser that sends both the form and a cookie with the same nonce
// has proved that this console rendered the form for it. The sealed form also holds the path to open after
// the login, so that path cannot be forged through a URL.
type loginForm struct {
	Nonce string    `json:"word"`
	Path  string    `json:"path"`
	Made  time.Time `json:"made"`
}

// login handles a submitted login form, and shows the form for a GET.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	v, now := s.visitor(r), s.now()
	if r.Method != http.MethodPost {
		if _, ok, _ := s.heldSession(r, v, now); ok {
			http.Redirect(w, r, adminPath, http.StatusSeeOther)
			return
		}
		s.loginPage(w, r, v, http.StatusOK, adminPath, "")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxLoginBody)
	path, ok := s.checkForm(r, v, now)
	if !ok {
		s.loginPage(w, r, v, http.StatusForbidden, adminPath, textOldForm)
		return
	}
	from := s.sourceOf(r, v, now)
	if wait := s.throttle.admit(from, now); wait > 0 {
		s.log.Warn("sign-in throttled", "addr", v.addr.String(), "seconds", seconds(wait))
		w.Header().Set("Retry-After", strconv.Itoa(seconds(wait)))
		s.loginPage(w, r, v, http.StatusTooManyRequests, path, tooMany(wait))
		return
	}
	held, _, err := s.begin(r.Context(), strings.TrimSpace(r.PostForm.Get("key")), v, requestID(w), now)
	switch {
	case errors.Is(err, errEnded):
		s.log.Warn("sign-in rejected", "addr", v.addr.String())
		pause(r.Context(), refusalTime-s.now().Sub(now))
		s.loginPage(w, r, v, http.StatusUnauthorized, path, textRefused)
		return
	case err != nil:
		s.throttle.undo(from)
		s.log.Warn("sign-in failed: server not responding", "addr", v.addr.String(), "err", err)
		s.loginPage(w, r, v, http.StatusServiceUnavailable, path, s.textAway())
		return
	}
	s.throttle.success(from)
	s.admit(w, r, v, held, path, now)
}

func (s *Server) textAway() string {
	return "The server at " + s.host() + " is not responding. Try again in a moment."
}

// admit stores a new session in the browser, and opens the page that the person wanted.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, v visitor, held session, path string, now time.Time) {
	if err := s.keepSession(w, v, held, now); err != nil {
		s.log.Error("cannot create session", "err", err)
		s.loginPage(w, r, v, http.StatusInternalServerError, path, textInternal)
		return
	}
	s.dropCookie(w, v, loginName)
	s.makeKnown(w, v, now)
	s.log.Info("signed in", held.kind(), held.Prefix, "addr", v.addr.String())
	http.Redirect(w, r, path, http.StatusSeeOther)
}

// knownBrowser is a browser in which somebody signed in before. Its failed logins
// are counted separately, so that strangers who share its address, for example
// behind a NAT or an untrusted proxy, cannot lock it out.
type knownBrowser struct {
	ID   string    `json:"id"`
	Made time.Time `json:"made"`
}

func (s *Server) makeKnown(w http.ResponseWriter, v visitor, now time.Time) {
	text, err := s.seals.seal(cookieFor(knownName, v.secure), knownBrowser{ID: rand.Text(), Made: now})
	if err != nil {
		s.log.Error("cannot set known-browser cookie", "err", err)
		return
	}
	s.setCookie(w, v, knownName, text, knownTime)
}

func (s *Server) sourceOf(r *http.Request, v visitor, now time.Time) source {
	if known, ok := s.knownBrowser(r, v, now); ok {
		return source(known.ID)
	}
	return source(v.network().String())
}

// knownBrowser reports whether somebody signed in with this browser before.
func (s *Server) knownBrowser(r *http.Request, v visitor, now time.Time) (known knownBrowser, ok bool) {
	name := cookieFor(knownName, v.secure)
	cookie, err := r.Cookie(name)
	if err != nil || s.seals.open(name, cookie.Value, &known) != nil || now.Sub(known.Made) >= knownTime {
		return knownBrowser{}, false
	}
	return known, true
}

// begin creates a session for a key if the server accepts it.
func (s *Server) begin(ctx context.Context, key string, v visitor, requestID string, now time.Time) (session, *apiclient.Caller, error) {
	if len(key) > maxKeyLength || !apiKeyForm.MatchString(key) {
		return session{}, nil, errEnded
	}
	caller, err := s.upstream.whoami(ctx, key, forwarded(v, requestID))
	if err != nil {
		return session{}, nil, err
	}
	return newSession(key, caller, now), caller, nil
}

// checkForm reports whether this console rendered the form for this browser, and returns the path to open
// after the login.
func (s *Server) checkForm(r *http.Request, v visitor, now time.Time) (path string, ok bool) {
	site := r.Header.Get("Sec-Fetch-Site")
	if site != "" && site != "same-origin" && site != "none" || !hasOwnOrigin(r) {
		return "", false
	}
	if r.ParseForm() != nil {
		return "", false
	}
	return s.openForm(r, v, r.PostForm.Get("token"), now)
}

// openForm reports whether a form token was made for this browser, and returns the path in it.
func (s *Server) openForm(r *http.Request, v visitor, token string, now time.Time) (path string, ok bool) {
	var form loginForm
	cookie, err := r.Cookie(cookieFor(loginName, v.secure))
	if err != nil || s.seals.open(formPurpose, token, &form) != nil {
		return "", false
	}
	same := subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(form.Nonce)) == 1
	return form.Path, same && form.Nonce != "" && now.Sub(form.Made) < formTime
}

// loginPage shows the login form, with a message above it.
func (s *Server) loginPage(w http.ResponseWriter, r *http.Request, v visitor, status int, path, message string) {
	nonce := rand.Text()
	if cookie, err := r.Cookie(cookieFor(loginName, v.secure)); err == nil && len(cookie.Value) == len(nonce) {
		nonce = cookie.Value // keeps the form in another tab valid
	}
	if len(path) > maxPath {
		path = adminPath
	}
	token, err := s.seals.seal(formPurpose, loginForm{Nonce: nonce, Path: path, Made: s.now()})
	if err != nil {
		s.log.Error("cannot create sign-in form", "err", err)
	}
	s.setCookie(w, v, loginName, nonce, formTime)
	known := s.upstream.known(r.Context())
	// Browsers send the Origin of a form only where the referrer policy allows the referrer.
	w.Header().Set("Referrer-Policy", "same-origin")
	ownKey := ""
	if _, ok := s.knownBrowser(r, v, s.now()); ok { // strangers should not learn how the console is configured
		ownKey = known.ownKey.text()
	}
	s.plainPage(w, r, status, "login", plainPage{
		Host:        publicHost(known.serverURL),
		Unreachable: !known.reachable && status != http.StatusServiceUnavailable, // that status has its own message
		Providers:   s.signInLinks(known, token),
		Token:       token, Message: message, Unencrypted: !v.trusted(), OwnKey: ownKey, ServerVersion: known.productVersion,
	})
}

// text returns the message about the console's own key on the login page.
func (k keyState) text() string {
	switch k {
	case keyMissing:
		return "Administrator notice: no api_key is configured for the console. You can still sign in."
	case keyRefused:
		return "Administrator notice: the server rejects the console's api_key (Authentication failed: invalid API key). You can still sign in."
	case keyUnknown, keyWorks:
	}
	return ""
}

// logout ends the session, including for copies of its cookie. An API key stays valid.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	v := s.visitor(r)
	if r.Method != http.MethodPost {
		notAllowed(w, http.MethodPost)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxLoginBody)
	isForm := r.ParseForm() == nil && r.PostForm.Has("csrf")
	if held, ok, _ := s.heldSession(r, v, s.now()); ok {
		token := r.Header.Get("X-CSRF")
		if isForm {
			token = r.PostForm.Get("csrf")
		}
		allowed := fromHere(r) && s.seals.isCSRFToken(held.ID, token)
		switch {
		case !allowed && isForm:
			// Another tab may have changed the key since this page was loaded.
			w.Header().Set("Referrer-Policy", "same-origin") // needed because the page has a form
			s.plainPage(w, r, http.StatusForbidden, "stay", plainPage{Token: s.seals.csrfToken(held.ID)})
			return
		case !allowed:
			refuse(w)
			return
		}
		if err := s.signOuts.add(held.login(), s.now()); err != nil {
			s.log.Error("cannot store a sign-out; revoke the API key or session if the cookie may have been stolen", held.kind(), held.Prefix, "err", err)
		}
		s.endAtServer(r.Context(), held, v, requestID(w))
		s.log.Info("signed out", held.kind(), held.Prefix, "addr", v.addr.String())
	}
	s.dropCookie(w, v, cookieName)
	if v.trusted() {
		w.Header().Set("Clear-Site-Data", `"cache", "storage"`)
	}
	if isForm {
		http.Redirect(w, r, adminPath, http.StatusSeeOther)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// publicHost returns the host name at which devices reach the server, with its port unless that is 443. It is empty if
// the server does not report it.
func publicHost(serverURL string) string {
	return strings.TrimSuffix(hostOf(serverURL), ":443")
}

// host returns the host and port at which the console reaches the server.
func (s *Server) host() string { return hostOf(s.config.CoordinatorURL) }

// hostOf returns the host and port of a URL, or "" if text is not a URL.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Host
}

func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

func tooMany(wait time.Duration) string {
	if seconds(wait) == 1 {
		return "Too many attempts. Try again in 1 second."
	}
	return fmt.Sprintf("Too many attempts. Try again in %d seconds.", seconds(wait))
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
