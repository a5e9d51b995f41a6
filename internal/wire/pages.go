package wire

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/identity"
)

//go:embed pages
var files embed.FS

// helpPages returns the names of the pages that explain how to point a client at this server.
func helpPages() []string { return []string{"apple", "windows", "android"} }

// pages renders the pages for people. They load no other resources, and only the page for passkeys runs a script.
type pages struct {
	serverURL string
	style     template.CSS
	script    template.JS
	security  string // the Content-Security-Policy, up to the value of form-action
	runs      string // what the page with the script adds to it
	templates map[string]*template.Template
}

func newPages(serverURL string) *pages {
	style, err := files.ReadFile("pages/page.css")
	if err != nil {
		panic(err) // the files are embedded
	}
	script, err := files.ReadFile("pages/passkey.js")
	if err != nil {
		panic(err)
	}
	p := &pages{
		serverURL: strings.TrimSuffix(serverURL, "/"), style: template.CSS(style), script: template.JS(script), templates: map[string]*template.Template{},
		security: "default-src 'none'; style-src " + sourceHash(style) + "; base-uri 'none'; frame-ancestors 'none'; form-action ",
		runs:     "; script-src " + sourceHash(script),
	}
	for _, name := range append(helpPages(), "home", "login", "signin", "passkey") {
		p.templates[name] = template.Must(template.ParseFS(files, "pages/page.html", "pages/"+name+".html"))
	}
	return p
}

// sourceHash returns the source expression that allows an inline style or script.
func sourceHash(content []byte) string {
	sum := sha256.Sum256(content)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// page is the data of a template.
type page struct {
	Style     template.CSS
	ServerURL string
	Name      string // name of the page
	// Refresh is the number of seconds after which the browser reloads the page; zero for never.
	Refresh int

	// The following are for the page of a login link.
	State        string // waiting, joined, approved, rejected, expired, unknown or unavailable
	Login        identity.Login
	Code         string
	LongCode     string
	Machine      string
	Tags         []string // the tags that the waiting device asks for
	Asked, Until string
	Rejected     string
	Choices      []choice // the providers with which a person can sign in

	// The following are for the pages of a sign-in.
	Provider, Problem string
	Retry, Ask        string // links
	Action, CSRF      string // of the form; a page without a form has none
	User, Account     string
	Host, Return      string // the computer of a command line, and its address
	FormTarget        string // where the response to the form may lead, besides this server
	Link              string // the account to which an administrator may link a user

	// The following are for the pages of passkeys.
	Passkey  string // create or get; empty if the page asks for no passkey
	Options  string // JSON for the script
	Script   template.JS
	Recovery string // a recovery code
}

func (p *pages) write(w http.ResponseWriter, status int, name string, v page) {
	v.Style, v.ServerURL, v.Name = p.style, p.serverURL, name
	if v.Passkey != "" {
		v.Script = p.script
	}
	var b bytes.Buffer
	if err := p.templates[name].Execute(&b, v); err != nil {
		http.Error(w, "cannot show this page", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	if v.Action == "" {
		h.Set("Content-Security-Policy", p.security+"'none'")
		h.Set("Referrer-Policy", "no-referrer") // the URL of a login page is a secret
	} else {
		security := strings.TrimSpace(p.security + "'self' " + v.FormTarget)
		if v.Passkey != "" {
			security += p.runs
		}
		h.Set("Content-Security-Policy", security)
		h.Set("Referrer-Policy", "same-origin") // without a referrer, browsers send no Origin either
	}
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // fails only if the browser has disconnected
}

func (p *pages) help(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { p.write(w, http.StatusOK, name, page{}) })
}

// refreshSeconds is how often the login page checks for the decision.
const refreshSeconds = 5

// loginPage shows the state of a login link. Anyone who has the link may see it; viewing it changes nothing.
func (s *Server) loginPage(w http.ResponseWriter, r *http.Request) {
	token := r.PathValue("token")
	l, ok := s.logins.OpenLogin(token)
	if !ok {
		s.pages.write(w, http.StatusNotFound, "login", page{State: "unknown"})
		return
	}
	if s.mustRefuse(r.Context()) {
		s.pages.write(w, http.StatusServiceUnavailable, "login", page{State: "unavailable", Refresh: refreshSeconds})
		return
	}
	v := s.loginState(token, l)
	if passkeys := s.passkeys.offered(); v.State == "waiting" && (len(s.config.Providers) > 0 || passkeys) {
		v.Choices = s.signIn.choices(r.Context(), token)
		// Another replica may have approved the device a moment ago. Signing in again would lead here again.
		synced := s.config.Ledger.Sync(r.Context()) == nil
		if again := s.loginState(token, l); again.State != "waiting" {
			v = again
		} else if synced && len(v.Choices) == 1 && !passkeys && !v.Choices[0].Down && !r.URL.Query().Has("ask") {
			redirect(w, v.Choices[0].Link)
			return
		}
		if v.State == "waiting" && passkeys {
			v.Choices = append(v.Choices, choice{Name: passkeyName, Link: passkeyPath + "start/" + token})
		}
	}
	s.pages.write(w, http.StatusOK, "login", v)
}

// loginState returns the data of the page about a device, as it is now.
func (s *Server) loginState(token string, l identity.Login) page {
	v := pageOf(token, l)
	v.State, v.Refresh = "waiting", refreshSeconds
	world, now := s.config.Ledger.World(), s.config.Ledger.Now()
	n, joined := world.Nodes.ByKey(l.NodeKey)
	answer, answered := world.Logins.ByNodeKey(l.NodeKey)
	answered = answered && answer.MachineKey == l.MachineKey && !answer.Until.Reached(now)
	switch {
	case joined && n.MachineKey == l.MachineKey:
		if v.State, v.Refresh = "joined", 0; n.NeedsApproval {
			v.State, v.Refresh = "unapproved", refreshSeconds
		}
	case answered && answer.Rejected != "":
		v.State, v.Rejected, v.Refresh = "rejected", answer.Rejected, 0
	case answered:
		v.State = "approved"
	case l.Expired(now):
		v.State, v.Refresh = "expired", 0
	default:
		v.Tags = s.config.Logins.Tags(l.NodeKey)
	}
	return v
}

// pageOf returns the data of a page about a device.
func pageOf(token string, l identity.Login) page {
	const form = "2006-01-02 15:04:05 UTC"
	return page{
		Login: l, Code: identity.LoginCode(token), LongCode: identity.LongLoginCode(token), Machine: l.MachineKey.ShortString(),
		Asked: l.IssuedAt.Time().Format(form), Until: l.IssuedAt.Add(identity.LoginLifetime).Time().Format(form),
	}
}
