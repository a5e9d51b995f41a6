package wire

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/passkey"
)

const (
	passkeyPath = "/passkey/"
	recoverPath = passkeyPath + "recover"
	// PasskeyProvider stands for passkeys in place of a provider's number.
	PasskeyProvider = "passkey"
	passkeyName     = "a passkey"
	// maxPasskeyForm limits a form with the response of a browser, which encoding enlarges.
	maxPasskeyForm = 2 * passkey.MaxResponse
)

// The purposes for which cookies are sealed.
const (
	purposeCreate = "passkey create"
	purposeSign   = "passkey sign-in"
)

// passkeyState is a page that waits for a passkey. It is kept only in a sealed cookie of the browser, as a
// sign-in is.
type passkeyState struct {
	passkey.State
	// For is the invitation or recovery code with which a passkey is created, or the login link to continue with.
	For string `json:"f,omitempty"`
	// Session is set in a sign-in to the console or the command line.
	Session *sessionRequest `json:"q,omitempty"`
	At      mesh.Time       `json:"a"`
}

// passkeys lets invited people create passkeys, and sign in with them to add a device.
type passkeys struct {
	*signIn
	verifier *passkey.Verifier // nil if browsers offer no passkeys for this server
	use      *control.Passkeys
}

func newPasskeys(s *Server) *passkeys {
	return &passkeys{s.signIn, s.config.PasskeyVerifier, s.config.Passkeys}
}

func (s *passkeys) routes() map[string]http.Handler {
	return map[string]http.Handler{
		"GET " + control.InvitePath + "{token}": http.HandlerFunc(s.invited),
		"GET " + recoverPath:                    http.HandlerFunc(s.recoverPage),
		"POST " + recoverPath:                   http.HandlerFunc(s.recovering),
		"POST " + passkeyPath + "create":        http.HandlerFunc(s.create),
		"GET " + passkeyPath + "start/{token}":  http.HandlerFunc(s.startSignIn),
		"POST " + passkeyPath + "sign-in":       http.HandlerFunc(s.finishSignIn),
	}
}

// offered reports whether anyone has a passkey.
func (s *passkeys) offered() bool { return s.verifier != nil && s.use.Any() }

// invited shows the page on which the holder of an invitation creates a passkey.
func (s *passkeys) invited(w http.ResponseWriter, r *http.Request) {
	if s.mustRefuse(r.Context()) {
		s.unavailable(w)
		return
	}
	s.createPage(w, r, r.PathValue("token"))
}

func (s *passkeys) createPage(w http.ResponseWriter, r *http.Request, text string) {
	u, i, ok := s.use.Invited(text)
	if !ok && s.config.Ledger.Sync(r.Context()) == nil { // another replica may have created it a moment ago
		u, i, ok = s.use.Invited(text)
	}
	if !ok {
		s.refusedKey(r, "unknown invitation")
		s.pages.write(w, http.StatusNotFound, "passkey", page{State: "gone"})
		return
	}
	account := s.account(u)
	if i.Recovery { // the new passkey may replace one on the same device
		account.Credentials = nil
	}
	options, state, err := s.verifier.BeginCreate(account)
	if err != nil || !s.keep(w, purposeCreate, passkeyState{State: state, For: text}) {
		s.problem(w, http.StatusInternalServerError, "the server cannot create a passkey", "")
		return
	}
	v := page{State: "create", Passkey: "create", User: u.Name, Options: options, Action: passkeyPath + "create"}
	if i.Recovery {
		v.Recovery = text
	}
	s.pages.write(w, http.StatusOK, "passkey", v)
}

// recoverPage asks for a recovery code. It is sent in a form, because people type it and URLs are logged.
func (s *passkeys) recoverPage(w http.ResponseWriter, _ *http.Request) {
	s.pages.write(w, http.StatusOK, "passkey", page{State: "recover", Action: recoverPath})
}

func (s *passkeys) recovering(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if s.refusedForm(w, r) {
		return
	}
	code := r.PostFormValue("code")
	if _, i, ok := s.use.Invited(code); !ok || !i.Recovery {
		s.refusedKey(r, "unknown recovery code")
		s.pages.write(w, http.StatusNotFound, "passkey", page{
			State: "recover", Action: recoverPath, Problem: "This code is not valid. Check that you typed it completely. A newer passkey comes with a newer code.",
		})
		return
	}
	s.createPage(w, r, code)
}

// create stores the passkey that the browser has created.
func (s *passkeys) create(w http.ResponseWriter, r *http.Request) {
	state, ok := s.answered(w, r, purposeCreate)
	if !ok {
		return
	}
	u, _, ok := s.use.Invited(state.For)
	if !ok {
		s.pages.write(w, http.StatusNotFound, "passkey", page{State: "gone"})
		return
	}
	made, err := s.verifier.FinishCreate(state.State, s.account(u), r.PostFormValue("response"))
	if err != nil {
		s.refusedKey(r, err.Error())
		s.problem(w, http.StatusForbidden, "The server cannot accept this passkey. Open your link again, or use another device", "")
		return
	}
	done, err := s.use.Create(r.Context(), s.personActor(r, u), state.For, control.NewPasskey{
		Credential: made.ID, PublicKey: base64.RawURLEncoding.EncodeToString(made.PublicKey), Syncable: made.Syncable, Uses: int64(made.Uses),
	})
	if refusal := new(control.Refusal); errors.As(err, &refusal) {
		s.problem(w, http.StatusConflict, refusal.Text, "")
		return
	}
	if err != nil {
		s.config.Log.Error("creating a passkey failed", "error", err)
		s.unavailable(w)
		return
	}
	s.drop(w)
	s.pages.write(w, http.StatusOK, "passkey", page{State: "created", User: done.User.Name, Recovery: done.Recovery})
}

// startSignIn asks for a passkey to add the device of a login link.
func (s *passkeys) startSignIn(w http.ResponseWriter, r *http.Request) {
	token := r.PathValue("token")
	l, ok := s.logins.OpenLogin(token)
	if !ok {
		s.pages.write(w, http.StatusNotFound, "login", page{State: "unknown"})
		return
	}
	if s.loginState(token, l).State != "waiting" { // the page of the link says why
		redirect(w, "/auth/"+token)
		return
	}
	s.ask(w, passkeyState{For: token})
}

// ask shows the page on which a person signs in.
func (s *passkeys) ask(w http.ResponseWriter, state passkeyState) {
	options, challenge, err := s.verifier.BeginSignIn()
	state.State = challenge
	if err != nil || !s.keep(w, purposeSign, state) {
		s.problem(w, http.StatusInternalServerError, "the server cannot ask for a passkey", "")
		return
	}
	v := page{State: "signin", Passkey: "get", Options: options, Action: passkeyPath + "sign-in"}
	if state.Session == nil {
		v.Ask = askLink(state.For)
	} else if back, err := url.Parse(state.Session.ReturnURL); err == nil && state.Session.Client == mesh.SessionConsole {
		v.FormTarget = back.Scheme + "://" + back.Host // browsers check where the response to a form leads
	}
	s.pages.write(w, http.StatusOK, "passkey", v)
}

// finishSignIn verifies the passkey, and continues as after a sign-in with a provider: the person confirms the
// device or the command line, or returns to the console.
func (s *passkeys) finishSignIn(w http.ResponseWriter, r *http.Request) {
	state, ok := s.answered(w, r, purposeSign)
	if !ok {
		return
	}
	retry := ""
	if state.Session == nil {
		retry = passkeyPath + "start/" + state.For
	}
	var (
		key  *mesh.Passkey
		user *mesh.User
	)
	used, err := s.verifier.FinishSignIn(state.State, r.PostFormValue("response"), func(id string) (passkey.Account, bool) {
		k, u, ok := s.use.Owner(id)
		if !ok {
			return passkey.Account{}, false
		}
		key, user = k, u
		return s.account(u), true
	})
	if err != nil {
		s.refusedKey(r, err.Error())
		s.problem(w, http.StatusForbidden, "The server does not know this passkey, or it was not accepted. If an administrator deleted it, ask for a new invitation", retry)
		return
	}
	p := control.LocalPerson(user)
	err = s.use.Used(r.Context(), s.personActor(r, user), key.ID, int64(used.Uses), state.Challenge)
	if refusal := new(control.Refusal); errors.As(err, &refusal) {
		s.pages.write(w, http.StatusBadRequest, "passkey", page{State: "lost", Retry: retry})
		return
	}
	if err != nil {
		s.config.Log.Error("sign-in failed", "error", err)
		s.unavailable(w)
		return
	}
	s.drop(w)
	confirm := signInConfirm{ID: rand.Text(), CSRF: rand.Text(), Token: state.For, Session: state.Session, Person: p, At: s.config.Ledger.Now()}
	if state.Session != nil && state.Session.Client == mesh.SessionConsole {
		s.finishSession(w, r, confirm)
		return
	}
	s.makeRoom(w, r)
	if !s.askToConfirm(w, confirm) {
		s.fail(w, http.StatusInternalServerError, failure{token: state.For, state: "failed", text: "the request is too long"})
	}
}

// personActor returns who sends a request. A user who creates a first passkey has no account yet.
func (s *passkeys) personActor(r *http.Request, u *mesh.User) mesh.Actor {
	a := s.actor(r)
	a.Kind, a.ID, a.Name = mesh.ActorUser, control.LocalPerson(u).ID(), u.Name
	return a
}

// account returns a user in the form in which passkeys belong to it.
func (s *passkeys) account(u *mesh.User) passkey.Account {
	a := passkey.Account{Handle: "user-" + u.ID.String(), Name: u.Name, DisplayName: u.DisplayName}
	if a.DisplayName == "" {
		a.DisplayName = u.Name
	}
	for _, k := range s.use.Of(u.ID) {
		public, err := base64.RawURLEncoding.DecodeString(k.PublicKey)
		if err != nil {
			continue // it cannot verify anything
		}
		a.Credentials = append(a.Credentials, passkey.Credential{ID: k.Credential, PublicKey: public, Syncable: k.Syncable, Uses: uint32(k.Uses)})
	}
	return a
}

// answered returns the state of the page that sent this form. If there is none, it writes the response.
func (s *passkeys) answered(w http.ResponseWriter, r *http.Request, purpose string) (state passkeyState, ok bool) {
	r.Body = http.MaxBytesReader(w, r.Body, maxPasskeyForm)
	if s.refusedForm(w, r) {
		return state, false
	}
	c, err := r.Cookie(s.cookieName())
	if err != nil || !s.cookies.OpenCookie(purpose, c.Value, &state) || !s.fresh(state.At) {
		s.pages.write(w, http.StatusBadRequest, "passkey", page{State: "lost"})
		return state, false
	}
	return state, true
}

// refusedForm reports whether a form cannot be accepted, and then writes the response.
func (s *passkeys) refusedForm(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case s.mustRefuse(r.Context()):
		s.unavailable(w)
	case !s.sameOrigin(r):
		s.pages.write(w, http.StatusForbidden, "passkey", page{State: "forged"})
	default:
		return false
	}
	return true
}

func (s *passkeys) problem(w http.ResponseWriter, status int, text, retry string) {
	s.pages.write(w, status, "passkey", page{State: "failed", Problem: text, Retry: retry})
}

func (s *passkeys) refusedKey(r *http.Request, reason string) {
	if addr := s.addr(r); s.refusals.Admit(addr) {
		s.config.Log.Warn("authentication failed", "addr", addr, "reason", reason)
	}
}

// cookieName is the same for all pages: another tab replaces the state of this one, which then says so.
func (s *passkeys) cookieName() string { return strings.Replace(s.prefix, "signin_", "passkey", 1) }

func (s *passkeys) keep(w http.ResponseWriter, purpose string, state passkeyState) bool {
	state.At = s.config.Ledger.Now()
	value, ok := s.cookies.SealCookie(purpose, state)
	if ok {
		s.setPasskeyCookie(w, value, int(signInLifetime.Seconds()))
	}
	return ok
}

func (s *passkeys) drop(w http.ResponseWriter) { s.setPasskeyCookie(w, "", -1) }

func (s *passkeys) setPasskeyCookie(w http.ResponseWriter, value string, age int) {
	http.SetCookie(w, &http.Cookie{Name: s.cookieName(), Value: value, Path: passkeyPath, MaxAge: age, HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteStrictMode})
}
