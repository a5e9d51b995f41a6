package wire

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/oidc"
)

const (
	// signInLifetime is how long a person may take at the provider, and again to confirm.
	signInLifetime = 10 * time.Minute
	// maxSignIns is how many sign-ins a browser may have in progress, for example in several tabs. Starting
	// another one ends the oldest, because a request can carry only so many cookies.
	maxSignIns = 3
	// maxExchanges is how many codes are exchanged at the same time, and maxExchangesOf how many of them for
	// one network. Strangers can make the server ask the provider, but not without limit.
	maxExchanges   = 32
	maxExchangesOf = 4
	maxForm        = 4 << 10
	signInPath     = "/oidc/"
	callbackPath   = signInPath + "callback"
)

// The purposes for which cookies are sealed.
const (
	purposeFlow    = "sign-in"         // the person is at the provider
	purposeConfirm = "sign-in confirm" // the person has come back and has to confirm
)

// CallbackURL returns where providers send browsers back to.
func CallbackURL(serverURL string) string { return strings.TrimSuffix(serverURL, "/") + callbackPath }

// signInFlow is a sign-in in progress. It is kept only in a sealed cookie of the browser, so that any replica
// can continue it, also after a restart, and no other browser can.
type signInFlow struct {
	oidc.Flow
	Issuer string    `json:"i"`
	Token  string    `json:"t"` // of the login link
	At     mesh.Time `json:"a"`
	// Session is set if the person signs in to a program instead of adding a device.
	Session *sessionRequest `json:"e,omitempty"`
}

// signInConfirm is a sign-in that the person has to confirm. It replaces the signInFlow, so that its code is
// not sent to the provider again.
type signInConfirm struct {
	ID     string         `json:"s"`
	CSRF   string         `json:"c"`
	Token  string         `json:"t"`
	Person control.Person `json:"p"`
	At     mesh.Time      `json:"a"`
	// Session is as in signInFlow.
	Session *sessionRequest `json:"e,omitempty"`
}

// signIn lets people sign in with a provider, to add a device, to use the console or the command line, or to
// approve an SSH session.
type signIn struct {
	*Server
	providers []*oidc.Provider
	cookies   *identity.CookieSealer
	prefix    string // of the names of cookies
	secure    bool
	exchanges exchanges
	logouts   chan struct{} // held by those that verify a logout token
}

func newSignIn(s *Server) *signIn {
	in := &signIn{
		Server: s, providers: s.config.Providers, cookies: identity.NewCookieSealer(s.config.Secrets), prefix: "fairlead_signin_",
		logouts: make(chan struct{}, maxLogouts),
	}
	if in.secure = strings.HasPrefix(s.config.ServerURL, "https://"); in.secure {
		in.prefix = "__Secure-" + in.prefix
	}
	return in
}

func (s *signIn) routes() map[string]http.Handler {
	return map[string]http.Handler{
		"GET " + signInPath + "start/{provider}/{token}": http.HandlerFunc(s.start),
		"GET " + sessionPath:                             http.HandlerFunc(s.startSession),
		"GET " + devicePath + "{token}":                  http.HandlerFunc(s.startDevice),
		"GET " + sshPath + "{code}":                      http.HandlerFunc(s.startSSH),
		"GET " + callbackPath:                            http.HandlerFunc(s.callback),
		"POST " + logoutPath:                             http.HandlerFunc(s.logout),
		"GET " + signInPath + "confirm/{id}":             http.HandlerFunc(s.confirmPage),
		"POST " + signInPath + "confirm/{id}":            http.HandlerFunc(s.confirm),
	}
}

// choice is a provider on the page of a login link.
type choice struct {
	Name, Link string
	Down       bool
}

func (s *signIn) choices(ctx context.Context, token string) (all []choice) {
	for i, p := range s.providers {
		all = append(all, choice{p.Name(), signInPath + "start/" + strconv.Itoa(i) + "/" + token, p.Check(ctx) != nil})
	}
	return all
}

// start sends the browser to a provider, to add a device.
func (s *signIn) start(w http.ResponseWriter, r *http.Request) {
	token := r.PathValue("token")
	l, ok := s.logins.OpenLogin(token)
	i, err := strconv.Atoi(r.PathValue("provider"))
	if !ok || err != nil || i < 0 || i >= len(s.providers) {
		s.pages.write(w, http.StatusNotFound, "login", page{State: "unknown"})
		return
	}
	if s.loginState(token, l).State != "waiting" { // the page of the link says why
		redirect(w, "/auth/"+token)
		return
	}
	p := s.providers[i]
	s.depart(w, r, p, signInFlow{Flow: newFlow(), Issuer: p.Issuer(), Token: token, At: s.config.Ledger.Now()})
}

// depart sends the browser to a provider.
func (s *signIn) depart(w http.ResponseWriter, r *http.Request, p *oidc.Provider, flow signInFlow) {
	token := flow.Token
	address, err := p.AuthURL(flow.Flow, flow.approvesSSH())
	if err != nil || p.Check(r.Context()) != nil {
		s.fail(w, http.StatusServiceUnavailable, failure{provider: p.Name(), token: token, state: "down"})
		return
	}
	value, ok := s.cookies.SealCookie(purposeFlow, flow)
	if !ok {
		s.fail(w, http.StatusInternalServerError, failure{provider: p.Name(), token: token, state: "failed", text: "the request is too long"})
		return
	}
	s.makeRoom(w, r)
	s.setCookie(w, flow.State, value)
	redirect(w, address)
}

// callback exchanges the code, and continues at a URL without it.
func (s *signIn) callback(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	state := q.Get("state")
	if c, ok := s.openConfirm(r, state); ok { // the page was reloaded
		redirect(w, signInPath+"confirm/"+c.ID)
		return
	}
	flow, ok := s.openFlow(r, state)
	i := slices.IndexFunc(s.providers, func(p *oidc.Provider) bool { return p.Issuer() == flow.Issuer })
	if !ok || i < 0 {
		s.fail(w, http.StatusBadRequest, failure{state: "lost"})
		return
	}
	p := s.providers[i]
	fail := func(status int, state, text string) {
		s.clearCookie(w, flow.State)
		s.logFailure(r, p, text)
		s.fail(w, status, failure{provider: p.Name(), token: flow.Token, state: state, text: text})
	}
	if err := p.CheckIssuer(q.Get("iss"), q.Has("iss")); err != nil {
		fail(http.StatusBadRequest, "failed", err.Error())
		return
	}
	if code := q.Get("error"); code != "" {
		fail(http.StatusForbidden, "refused", (&oidc.RefusedError{Code: oidc.Line(code), Description: oidc.Line(q.Get("error_description"))}).Error())
		return
	}
	if q.Get("code") == "" {
		fail(http.StatusBadRequest, "failed", "the provider sent neither a code nor an error")
		return
	}
	network := identity.Network(s.addr(r))
	if !s.exchanges.enter(network) {
		s.fail(w, http.StatusServiceUnavailable, failure{provider: p.Name(), token: flow.Token, state: "busy"})
		return
	}
	who, err := p.Exchange(r.Context(), flow.Flow, q.Get("code"))
	s.exchanges.leave(network)
	refused, notAllowed := new(oidc.RefusedError), new(oidc.NotAllowedError)
	switch {
	case errors.As(err, &notAllowed):
		fail(http.StatusForbidden, "notallowed", err.Error())
		return
	case errors.As(err, &refused):
		fail(http.StatusForbidden, "refused", err.Error())
		return
	case err != nil:
		fail(http.StatusBadGateway, "failed", err.Error())
		return
	case s.looksLikeAnother(p, who.Issuer, who.Subject):
		fail(http.StatusBadGateway, "failed", "your account could be confused with one of another provider")
		return
	case flow.approvesSSH() && !flow.signedInAgain(who):
		s.notSignedInAgain(w, r, p, flow, who)
		return
	}
	confirm := signInConfirm{ID: flow.State, CSRF: rand.Text(), Token: flow.Token, Session: flow.Session, Person: s.personOf(who), At: s.config.Ledger.Now()}
	if who.RefreshToken != "" && !s.saveToken(w, r, &confirm, who.RefreshToken) {
		return
	}
	if flow.Session != nil && flow.Session.Client == mesh.SessionConsole {
		s.finishSession(w, r, confirm)
		return
	}
	if !s.askToConfirmShortened(w, r, confirm) {
		fail(http.StatusBadGateway, "failed", "the provider sends too much about you")
	}
}

// askToConfirmShortened is askToConfirm for a sign-in that may have to be shortened first. If the person is refused, it
// writes the response, and returns true.
func (s *signIn) askToConfirmShortened(w http.ResponseWriter, r *http.Request, c signInConfirm) bool {
	if s.askToConfirm(w, c) {
		return true
	}
	if len(c.Person.Groups) > 0 {
		if err := s.saveGroups(r, &c); err != nil {
			s.clearCookie(w, c.ID)
			s.refused(w, r, c, err)
			return true
		}
		if s.askToConfirm(w, c) {
			return true
		}
	}
	c.Person.PictureURL, c.Person.DisplayName = "", "" // only these can be long
	return s.askToConfirm(w, c)
}

// askToConfirm sends the browser to the page on which the person confirms. It returns false if the sign-in is too large for
// a cookie.
func (s *signIn) askToConfirm(w http.ResponseWriter, c signInConfirm) bool {
	value, ok := s.cookies.SealCookie(purposeConfirm, c)
	if ok {
		s.setCookie(w, c.ID, value)
		redirect(w, signInPath+"confirm/"+c.ID)
	}
	return ok
}

// looksLikeAnother reports whether an account of a provider could be one of another provider: the issuer
// https://id.example/a with the subject b/7 is the same account as https://id.example/a/b with the subject 7.
func (s *signIn) looksLikeAnother(p *oidc.Provider, issuer, subject string) bool {
	account := control.Person{Issuer: issuer, Subject: subject}.ID()
	return slices.ContainsFunc(s.providers, func(other *oidc.Provider) bool {
		issuer := strings.TrimRight(other.Issuer(), "/") + "/"
		return len(issuer) > len(strings.TrimRight(p.Issuer(), "/"))+1 && strings.HasPrefix(account, issuer)
	})
}

// saveGroups commits the user with its groups before the person confirms, because a cookie cannot hold so many
// groups. They are true whether or not the person adds the device.
func (s *signIn) saveGroups(r *http.Request, c *signInConfirm) error {
	if s.mayCommit(*c) {
		if _, err := s.config.Logins.SaveUser(r.Context(), s.actor(r), c.Person); err != nil {
			return err
		}
	}
	c.Person.Groups, c.Person.GroupsUnknown = nil, true
	return nil
}

// saveToken commits the user with the refresh token before the person confirms: the token may be too long for a cookie, and
// with some providers, it has just replaced the one that is stored. If the person is refused, it writes the response.
func (s *signIn) saveToken(w http.ResponseWriter, r *http.Request, c *signInConfirm, token string) bool {
	if !s.mayCommit(*c) {
		return true
	}
	if _, err := s.config.Rechecks.SignedIn(r.Context(), s.actor(r), c.Person, token); err != nil {
		s.clearCookie(w, c.ID)
		s.refused(w, r, *c, err)
		return false
	}
	c.Person.Groups, c.Person.GroupsUnknown = nil, true // saved, too
	return true
}

func (s *signIn) personOf(who oidc.Identity) control.Person {
	groups, dropped := control.GroupNames(who.Groups)
	if len(dropped) > 0 {
		s.config.Log.Warn("groups of a person ignored: the policy cannot name them, or there are too many. Set oidc.groups_map to rename or select groups",
			"issuer", who.Issuer, "count", len(dropped), "first", oidc.Line(dropped[0]))
	}
	p := control.Person{
		Issuer: who.Issuer, Subject: who.Subject, Email: who.Email, Username: who.Username, DisplayName: who.DisplayName, PictureURL: who.Picture,
		Groups: groups, GroupsUnknown: who.GroupsUnknown,
		Directory: who.Issuer == s.providers[0].Issuer(), Session: control.ProviderSession(who.Issuer, who.Session),
	}
	if !who.Expiry.IsZero() {
		p.Expiry = mesh.TimeOf(who.Expiry)
	}
	return p
}

// confirmPage asks the person whether to add the device: the link may be somebody else's, and a provider with
// an open session asks nothing.
func (s *signIn) confirmPage(w http.ResponseWriter, r *http.Request) {
	c, l, ok := s.confirming(w, r)
	if !ok {
		return
	}
	if c.Session != nil {
		s.confirmSessionPage(w, r, c)
		return
	}
	user, err := s.config.Logins.Preview(c.Person)
	if err != nil {
		s.refused(w, r, c, err)
		return
	}
	v := pageOf(c.Token, l)
	v.State, v.CSRF, v.Action, v.Tags = "confirm", c.CSRF, signInPath+"confirm/"+c.ID, s.config.Logins.Tags(l.NodeKey)
	v.User, v.Account = user.Name, c.Person.Label()
	s.pages.write(w, http.StatusOK, "signin", v)
}

// confirm adds the device, or lets the command line act for the person.
func (s *signIn) confirm(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	c, _, ok := s.confirming(w, r)
	if !ok {
		return
	}
	if !s.sameOrigin(r) || subtle.ConstantTimeCompare([]byte(r.PostFormValue("csrf")), []byte(c.CSRF)) != 1 {
		s.fail(w, http.StatusForbidden, failure{state: "forged"})
		return
	}
	if c.Session != nil {
		s.finishSession(w, r, c)
		return
	}
	if _, err := s.config.Logins.SignIn(r.Context(), s.actor(r), c.Token, c.Person, c.ID); err != nil {
		s.refused(w, r, c, err)
		return
	}
	s.clearCookie(w, c.ID)
	redirect(w, "/auth/"+c.Token)
}

// confirming returns the sign-in that the request is about. If there is none, or nothing to confirm any more, it
// writes the response.
func (s *signIn) confirming(w http.ResponseWriter, r *http.Request) (c signInConfirm, l identity.Login, ok bool) {
	if s.mustRefuse(r.Context()) {
		s.unavailable(w)
		return c, l, false
	}
	if c, ok = s.openConfirm(r, r.PathValue("id")); !ok {
		s.fail(w, http.StatusBadRequest, failure{state: "lost"})
		return c, l, false
	}
	if c.Session != nil {
		return c, l, true
	}
	if l, ok = s.logins.OpenLogin(c.Token); !ok || r.Method != http.MethodPost && s.loginState(c.Token, l).State != "waiting" {
		redirect(w, "/auth/"+c.Token)
		return c, l, false
	}
	return c, l, true
}

// refused shows why the device was not added.
func (s *signIn) refused(w http.ResponseWriter, r *http.Request, c signInConfirm, err error) {
	refusal, many := new(control.Refusal), new(ledger.TooManyReceipts)
	switch {
	case errors.As(err, &many):
		s.logAttempt(r, c, "too many sign-ins")
		s.fail(w, http.StatusServiceUnavailable, failure{token: c.Token, state: "busy"})
		return
	case !errors.As(err, &refusal):
		if !errors.Is(err, context.Canceled) {
			s.config.Log.Error("sign-in failed", "error", err)
		}
		s.unavailable(w)
		return
	}
	s.logAttempt(r, c, refusal.Text)
	if refusal.Reason == control.Suspended {
		s.fail(w, http.StatusForbidden, failure{state: "suspended"})
		return
	}
	f := failure{token: c.Token, state: "conflict", text: strings.ToUpper(refusal.Text[:1]) + refusal.Text[1:]}
	if c.Session != nil && c.Session.SSH != "" {
		f.state = "sshrefused"
	}
	if control.Linkable(err) {
		f.link = "'" + strings.ReplaceAll(c.Person.ID(), "'", `'\''`) + "'"
	}
	s.fail(w, http.StatusConflict, f)
}

func (s *signIn) logAttempt(r *http.Request, c signInConfirm, reason string) {
	if addr := s.addr(r); s.refusals.Admit(addr) {
		s.config.Log.Warn("authentication failed", "addr", addr, "user", c.Person.Label(), "account", c.Person.ID(), "reason", reason)
	}
}

func (s *signIn) logFailure(r *http.Request, p *oidc.Provider, reason string) {
	if addr := s.addr(r); s.refusals.Admit(addr) {
		s.config.Log.Warn("authentication failed", "addr", addr, "issuer", p.Issuer(), "reason", reason)
	}
}

// failure is what a page says about a sign-in that failed.
type failure struct {
	state    string // lost, down, busy, refused, notallowed, failed, conflict, sshrefused, suspended, forged or request
	provider string
	token    string // of the login link, if it is known
	text     string
	link     string // the account to which an administrator may link a user, quoted for a shell
}

func (s *signIn) fail(w http.ResponseWriter, status int, f failure) {
	v := page{State: f.state, Provider: f.provider, Problem: f.text, Link: f.link}
	if f.token != "" {
		v.Retry, v.Ask, v.Code = "/auth/"+f.token, askLink(f.token), identity.LoginCode(f.token)
	}
	s.pages.write(w, status, "signin", v)
}

// askLink returns the page of a login link that does not send people to a provider.
func askLink(token string) string { return "/auth/" + token + "?ask" }

// unavailable responds while the server cannot reach its database.
func (s *signIn) unavailable(w http.ResponseWriter) {
	s.pages.write(w, http.StatusServiceUnavailable, "login", page{State: "unavailable"})
}

// actor returns who sends a request, before the person is known.
func (s *signIn) actor(r *http.Request) mesh.Actor {
	return mesh.Actor{Addr: s.addr(r), RequestID: rand.Text()[:12]}
}

func (s *signIn) addr(r *http.Request) string {
	return identity.ClientAddr(r, s.config.TrustedProxies)
}

// sameOrigin reports whether a form was sent by a page of this server. Browsers that do not say so are trusted,
// because the form also contains a secret.
func (s *signIn) sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	own, err := url.Parse(s.config.ServerURL)
	got, gotErr := url.Parse(origin)
	return err == nil && gotErr == nil && got.Scheme == own.Scheme && strings.EqualFold(hostPort(got), hostPort(own))
}

// hostPort returns the host with its port, which a URL may omit.
func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	if u.Scheme == "https" {
		return u.Host + ":443"
	}
	return u.Host + ":80"
}

func (s *signIn) openFlow(r *http.Request, state string) (f signInFlow, ok bool) {
	text, ok := s.cookie(r, state)
	ok = ok && s.cookies.OpenCookie(purposeFlow, text, &f) && f.State == state && s.fresh(f.At)
	return f, ok
}

func (s *signIn) openConfirm(r *http.Request, id string) (c signInConfirm, ok bool) {
	text, ok := s.cookie(r, id)
	ok = ok && s.cookies.OpenCookie(purposeConfirm, text, &c) && c.ID == id && s.fresh(c.At)
	return c, ok
}

func (s *signIn) fresh(at mesh.Time) bool { return s.config.Ledger.Now() < at.Add(signInLifetime) }

func (s *signIn) cookie(r *http.Request, id string) (string, bool) {
	if id == "" {
		return "", false
	}
	c, err := r.Cookie(s.prefix + id)
	if err != nil {
		return "", false
	}
	return c.Value, true
}

func (s *signIn) setCookie(w http.ResponseWriter, id, value string) {
	http.SetCookie(w, s.newCookie(id, value, int(signInLifetime.Seconds())))
}

func (s *signIn) clearCookie(w http.ResponseWriter, id string) {
	http.SetCookie(w, s.newCookie(id, "", -1))
}

func (s *signIn) newCookie(id, value string, age int) *http.Cookie {
	// Lax, because the browser comes back from another site.
	return &http.Cookie{Name: s.prefix + id, Value: value, Path: signInPath, MaxAge: age, HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode}
}

// makeRoom removes cookies of earlier sign-ins, the oldest first, so that there is room for another one.
func (s *signIn) makeRoom(w http.ResponseWriter, r *http.Request) {
	type old struct {
		id string
		at mesh.Time
	}
	var all []old
	for _, c := range r.Cookies() {
		id, ours := strings.CutPrefix(c.Name, s.prefix)
		if !ours {
			continue
		}
		var at mesh.Time
		if f, ok := s.openFlow(r, id); ok {
			at = f.At
		} else if c, ok := s.openConfirm(r, id); ok {
			at = c.At
		}
		all = append(all, old{id, at})
	}
	slices.SortFunc(all, func(a, b old) int { return int(b.at - a.at) })
	for i, o := range all {
		if i >= maxSignIns-1 || o.at == 0 {
			s.clearCookie(w, o.id)
		}
	}
}

// redirect continues at a URL with a GET request. Its target is never taken from a request, except for a return URL
// that clientAt has accepted.
func redirect(w http.ResponseWriter, target string) {
	h := w.Header()
	h.Set("Location", target)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusSeeOther)
}

// exchanges counts the codes that are being exchanged.
type exchanges struct {
	mu  sync.Mutex
	all int            // guarded by mu, as is of
	of  map[string]int // by network, without zeros
}

func (e *exchanges) enter(network string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all >= maxExchanges || e.of[network] >= maxExchangesOf {
		return false
	}
	if e.of == nil {
		e.of = map[string]int{}
	}
	e.all++
	e.of[network]++
	return true
}

func (e *exchanges) leave(network string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all--
	if e.of[network]--; e.of[network] == 0 {
		delete(e.of, network)
	}
}
