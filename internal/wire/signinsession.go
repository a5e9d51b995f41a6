package wire

import (
	"cmp"
	"crypto/rand"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/oauth2"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/oidc"
)

const (
	sessionPath = signInPath + "session"
	devicePath  = signInPath + "device/"
	// consoleCallback follows the URL of a console, loopbackCallback the address of a command line.
	consoleCallback  = "signin/callback"
	loopbackCallback = "/callback"
	maxReturnURL     = 512
	maxState         = 256
)

// SessionURL returns where programs send people to sign in.
func SessionURL(serverURL string) string { return strings.TrimSuffix(serverURL, "/") + sessionPath }

// sessionRequest is a sign-in to the console or the command line.
type sessionRequest struct {
	control.SessionRequest
	State string `json:"s,omitempty"` // of the program
	// Device is the token of a command line on another computer, which gets no code but asks for the session.
	Device string `json:"v,omitempty"`
	// SSH is the code of an SSH session that the person wants to approve. No program gets a session then.
	SSH string `json:"x,omitempty"`
}

// returns returns the address at which the browser brings the program its code.
func (q *sessionRequest) returns(code string) string {
	return q.ReturnURL + "?" + url.Values{"code": {code}, "state": {q.State}}.Encode()
}

// startSession sends the browser to a provider, to sign in to the console or the command line. A return URL that
// is not listed is refused, so that nobody else gets a code.
func (s *signIn) startSession(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	request := &sessionRequest{
		SessionRequest: control.SessionRequest{Challenge: q.Get("code_challenge"), ReturnURL: q.Get("return_url"), Description: control.CleanDescription(q.Get("description"))},
		State:          q.Get("state"),
	}
	var ok bool
	if request.Client, ok = s.clientAt(request.ReturnURL); !ok {
		s.fail(w, http.StatusBadRequest, failure{state: "request", text: "the return URL is not one of this server's consoles. Add the console to oidc.console_urls"})
		return
	}
	if !control.CheckChallenge(request.Challenge) || q.Get("code_challenge_method") != "S256" || request.State == "" || len(request.State) > maxState {
		s.fail(w, http.StatusBadRequest, failure{state: "request", text: "state, code_challenge or code_challenge_method=S256 is missing or invalid"})
		return
	}
	s.signInTo(w, r, request)
}

// signInTo lets the person choose how to sign in to a program, unless there is only one way, and begins.
func (s *signIn) signInTo(w http.ResponseWriter, r *http.Request, request *sessionRequest) {
	q, withPasskey := r.URL.Query(), s.passkeys.offered()
	chosen := q.Get("provider")
	switch several := len(s.providers) > 1 || len(s.providers) == 1 && withPasskey; {
	case several && !q.Has("provider"):
		s.chooseProvider(w, r)
		return
	case withPasskey && (chosen == PasskeyProvider || len(s.providers) == 0):
		s.passkeys.ask(w, passkeyState{Session: request})
		return
	}
	i, err := strconv.Atoi(cmp.Or(chosen, "0"))
	if err != nil || i < 0 || i >= len(s.providers) {
		s.fail(w, http.StatusBadRequest, failure{state: "request", text: "unknown identity provider"})
		return
	}
	p := s.providers[i]
	s.depart(w, r, p, signInFlow{Flow: newFlow(), Issuer: p.Issuer(), Session: request, At: s.config.Ledger.Now()})
}

// startDevice sends the browser to a provider, to sign in to a command line on another computer.
func (s *signIn) startDevice(w http.ResponseWriter, r *http.Request) {
	token := r.PathValue("token")
	d, ok := s.config.Sessions.OpenDevice(token)
	if !ok {
		s.fail(w, http.StatusBadRequest, failure{state: "request", text: "the link is invalid or has expired. Run fairlead login --device again"})
		return
	}
	s.signInTo(w, r, &sessionRequest{SessionRequest: control.SessionRequest{Client: mesh.SessionCLI, Description: d.Description}, Device: token})
}

// newFlow returns the secrets of a new sign-in.
func newFlow() oidc.Flow {
	return oidc.Flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
}

// chooseProvider shows the providers. Each link repeats the request.
func (s *signIn) chooseProvider(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	v := page{State: "choose"}
	for i, p := range s.providers {
		q.Set("provider", strconv.Itoa(i))
		v.Choices = append(v.Choices, choice{p.Name(), r.URL.Path + "?" + q.Encode(), p.Check(r.Context()) != nil})
	}
	if s.passkeys.offered() {
		q.Set("provider", PasskeyProvider)
		v.Choices = append(v.Choices, choice{Name: passkeyName, Link: r.URL.Path + "?" + q.Encode()})
	}
	s.pages.write(w, http.StatusOK, "signin", v)
}

// clientAt returns what kind of program gets the codes at a return URL. It returns false for programs that must not
// get any.
func (s *signIn) clientAt(address string) (mesh.SessionClient, bool) {
	if len(address) > maxReturnURL {
		return "", false
	}
	isConsole := func(console string) bool { return address == strings.TrimSuffix(console, "/")+"/"+consoleCallback }
	switch {
	case slices.ContainsFunc(s.config.ConsoleURLs, isConsole):
		return mesh.SessionConsole, true
	case isLoopback(address):
		return mesh.SessionCLI, true
	}
	return "", false
}

// isLoopback reports whether a URL is that of a command line on the computer of the browser. Only literal addresses
// are accepted, because a name may lead elsewhere.
func isLoopback(address string) bool {
	rest, plain := strings.CutPrefix(address, "http://")
	host, whole := strings.CutSuffix(rest, loopbackCallback)
	name, port, err := net.SplitHostPort(host)
	if !plain || !whole || err != nil {
		return false
	}
	addr, err := netip.ParseAddr(name)
	n, portErr := strconv.ParseUint(port, 10, 16)
	canonical := err == nil && (addr == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || addr == netip.IPv6Loopback())
	return canonical && portErr == nil && n > 0 && netip.AddrPortFrom(addr, uint16(n)).String() == host
}

// finishSession brings the program its code.
func (s *signIn) finishSession(w http.ResponseWriter, r *http.Request, c signInConfirm) {
	if c.Session.SSH != "" {
		s.approveSSH(w, r, c)
		return
	}
	a := s.actor(r)
	user, err := s.config.Logins.SaveUser(r.Context(), a, c.Person)
	if err == nil && c.Session.Device != "" {
		if err = s.config.Sessions.ApproveDevice(r.Context(), a, c.Session.Device, user, c.Person.Session); err == nil {
			s.clearCookie(w, c.ID)
			s.pages.write(w, http.StatusOK, "signin", page{State: "approved"})
			return
		}
	}
	var code string
	if err == nil {
		code, err = s.config.Sessions.Code(user, c.Person.Session, c.Session.SessionRequest)
	}
	s.clearCookie(w, c.ID)
	if err != nil {
		s.refused(w, r, c, err)
		return
	}
	redirect(w, c.Session.returns(code))
}

// confirmSessionPage asks the person whether the command line may act for them: any program on the computer, or a
// person who sends a link, can start a sign-in with a loopback address.
func (s *signIn) confirmSessionPage(w http.ResponseWriter, r *http.Request, c signInConfirm) {
	user, err := s.config.Logins.Preview(c.Person)
	if err != nil {
		s.refused(w, r, c, err)
		return
	}
	if c.Session.SSH != "" {
		s.confirmSSHPage(w, r, c, user)
		return
	}
	v := page{State: "session", CSRF: c.CSRF, Action: signInPath + "confirm/" + c.ID, User: user.Name, Account: c.Person.Label(), Host: c.Session.Description}
	if c.Session.Device != "" {
		v.Code = identity.Code(c.Session.Device)
	} else {
		target, err := url.Parse(c.Session.ReturnURL)
		if err != nil {
			s.fail(w, http.StatusBadRequest, failure{state: "lost"})
			return
		}
		v.FormTarget, v.Return = target.Scheme+"://"+target.Host, target.Host
	}
	s.pages.write(w, http.StatusOK, "signin", v)
}
