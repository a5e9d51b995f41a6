package wire_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"tailscale.com/tailcfg"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/oidc"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
)

var sshLink = regexp.MustCompile(`http://(?:mesh\.test|localhost)(/oidc/ssh/\S+)`)

// sshSignIn is a server with a provider, whose person ann is the owner of both nodes of a target.
func sshSignIn(t *testing.T) (*oidctest.Issuer, *service, target) {
	i := oidctest.Start(t, oidctest.Behaviour{Claims: ann()})
	s := openWith(t, i)
	c := newTarget(s)
	if _, err := s.Users.Link(t.Context(), admin, "alice", i.URL+"/ann-1", false, ""); err != nil {
		t.Fatal(err)
	}
	return i, s, c
}

// asksForApproval starts a session, and returns the link in its terminal.
func (c target) asksForApproval(user string) (link string, answer <-chan tailcfg.SSHAction) {
	c.s.t.Helper()
	first := c.begins(user)
	found := sshLink.FindStringSubmatch(first.Message)
	if found == nil || !strings.Contains(first.Message, "fairlead ssh approve ") {
		c.s.t.Fatalf("%+v", first)
	}
	return found[1], c.follow(first, user)
}

func (s *service) grants() (n int) {
	for range s.ledger.World().SSHGrants.All() {
		n++
	}
	return n
}

func TestOwnerOfTheSourceApprovesAnSSHSessionBySigningIn(t *testing.T) {
	i, s, c := sshSignIn(t)
	link, held := c.asksForApproval("ana")
	b := s.browser()
	start := b.follow(link, i.URL)
	if u, err := url.Parse(start.location); err != nil || u.Query().Get("prompt") != "login" || u.Query().Get("max_age") != "0" {
		t.Errorf("the provider is not told to ask for a password: %s", start.location)
	}
	confirm := b.follow(start.location, "")
	confirm.shows(t, 200, "Approve this SSH session?", "ann@example.com", "<dd>laptop</dd>", "<dd>laptop-1</dd>", "<dd>ana</dd>")
	if s.grants() != 0 {
		t.Error("approved before the person has confirmed it")
	}
	at, err := url.Parse(confirm.url)
	if err != nil {
		t.Fatal(err)
	}
	kept := b.http.Jar.Cookies(at)
	b.do("POST", confirm.url, url.Values{"csrf": {"AAAAAAAAAAAAAAAAAAAAAAAAAA"}}).shows(t, 403, "did not come from this server")
	b.press(confirm).shows(t, 200, "The SSH session was approved")
	if a := <-held; !a.Accept {
		t.Errorf("%+v", a)
	}
	if lines := s.log.lines(t, "SSH session approved"); len(lines) != 1 || lines[0]["actor"] != "user:alice" {
		t.Errorf("log %v", lines)
	}
	// A copy of the cookie does not approve again.
	if _, err := s.SSH.Reject(t.Context(), admin, strings.TrimPrefix(link, "/oidc/ssh/"), ""); err != nil {
		t.Fatal(err)
	}
	rev := s.ledger.World().Rev
	for _, cookie := range kept {
		cookie.Path = "/oidc/"
	}
	b.http.Jar.SetCookies(at, kept)
	b.press(confirm)
	s.stays(t, rev)
}

// Whoever sits at an unattended computer can change the URL to which the browser is sent, but not what the provider signs.
func TestSSHSessionIsApprovedOnlyAfterANewSignIn(t *testing.T) {
	hour := time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		change func(url.Values)
		claims map[string]any
		at     time.Time
		reason string // "" means that the person may approve
	}{
		"the provider asked":               {at: hour},
		"its clock is behind":              {claims: map[string]any{"auth_time": time.Now().Add(-30 * time.Second).Unix()}},
		"without prompt":                   {at: hour, change: func(q url.Values) { q.Del("prompt") }},
		"without prompt and max_age":       {at: hour, change: func(q url.Values) { q.Del("prompt"); q.Del("max_age") }, reason: "it did not say when you signed in"},
		"with another max_age":             {at: hour, change: func(q url.Values) { q.Del("prompt"); q.Set("max_age", "86400") }, reason: "you signed in there before"},
		"the provider ignores the request": {claims: map[string]any{"auth_time": hour.Unix()}, reason: "you signed in there before"},
		"the time is text":                 {claims: map[string]any{"auth_time": "now"}, reason: "it did not say when you signed in"},
	} {
		t.Run(name, func(t *testing.T) {
			i, s, target := sshSignIn(t)
			link, _ := target.asksForApproval("ana")
			i.Behave(func(b *oidctest.Behaviour) {
				b.SignedIn = c.at
				maps.Copy(b.Claims, c.claims)
			})
			b := s.browser()
			to, err := url.Parse(b.follow(link, i.URL).location)
			if err != nil {
				t.Fatal(err)
			}
			if q := to.Query(); c.change != nil {
				c.change(q)
				to.RawQuery = q.Encode()
			}
			out := b.follow(to.String(), "")
			if c.reason == "" {
				out.shows(t, 200, "Approve this SSH session?")
				return
			}
			out.shows(t, 403, "The SSH session was not approved", "did not ask you to sign in again", c.reason,
				"fairlead ssh approve "+strings.TrimPrefix(link, "/oidc/ssh/"))
			if lines := s.log.lines(t, "authentication failed"); len(lines) != 1 || !strings.Contains(lines[0]["reason"].(string), c.reason) {
				t.Errorf("log %v", lines)
			}
		})
	}
}

func TestOnlyTheOwnerOfTheSourceOrAnAdministratorApprovesAnSSHSession(t *testing.T) {
	i, s, c := sshSignIn(t)
	i.Behave(func(b *oidctest.Behaviour) { b.Claims = bob() })
	s.signedInElsewhere()
	link, held := c.asksForApproval("ana")
	const refused = "no SSH session from one of your devices is waiting with the code "
	s.browser().follow(link, "").shows(t, 409, "The SSH session was not approved", strings.ToUpper(refused[:1])+refused[1:])
	s.browser().follow("/oidc/ssh/ABCD-EFGH", "").shows(t, 409, strings.ToUpper(refused[:1])+refused[1:]) // says the same about a code that nobody has
	// The page refuses, and so does the form of a page that was opened before.
	code := strings.TrimPrefix(link, "/oidc/ssh/")
	bob, err := control.FindUser(s.ledger.World().Snapshot, "bob")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SSH.ApproveAs(t.Context(), mesh.Actor{}, code, bob.ID, "x"); err == nil || !strings.Contains(err.Error(), refused) {
		t.Errorf("another member: %v", err)
	}
	if s.grants() != 0 {
		t.Fatal("another member approved the session")
	}
	if _, err := s.Users.SetRole(t.Context(), mesh.Actor{Kind: mesh.ActorLocal}, "bob", mesh.RoleOperator, ""); err != nil {
		t.Fatal(err)
	}
	b := s.browser()
	b.press(b.follow(link, "")).shows(t, 200, "The SSH session was approved")
	if a := <-held; !a.Accept {
		t.Errorf("%+v", a)
	}
}

// The server stores refresh tokens, and groups that are too many for a cookie, before a person confirms.
func TestPersonWhoMayNotApproveAnSSHSessionDoesNotBecomeAUser(t *testing.T) {
	groups := make([]string, 200)
	for n := range groups {
		groups[n] = fmt.Sprintf("group-with-a-long-name-%03d", n)
	}
	for name, offline := range map[string]bool{"with a refresh token": true, "with many groups": false} {
		t.Run(name, func(t *testing.T) {
			i := oidctest.Start(t, oidctest.Behaviour{Claims: bob(), Offline: offline})
			s, _ := open(t, options{
				recheck: map[string]time.Duration{i.URL: time.Hour},
				wire:    withProviders(providerOf(t, i, func(c *oidc.Config) { c.Offline = offline })),
			})
			if !offline {
				i.Behave(func(b *oidctest.Behaviour) { b.Claims["groups"] = groups })
			}
			c := newTarget(s)
			link, _ := c.asksForApproval("ana")
			rev := s.ledger.World().Rev
			s.browser().follow(link, "").shows(t, 409, "No SSH session from one of your devices is waiting")
			s.stays(t, rev)
			// A person who is a user already stays up to date.
			if _, err := s.Users.Link(t.Context(), admin, "alice", i.URL+"/bob-1", false, ""); err != nil {
				t.Fatal(err)
			}
			b := s.browser()
			page := b.follow(link, "")
			page.shows(t, 200, "Approve this SSH session?")
			alice, err := control.FindUser(s.ledger.World().Snapshot, "alice")
			if err != nil {
				t.Fatal(err)
			}
			if _, stored := s.ledger.World().Rechecks.Get(alice.ID); stored != offline || !offline && len(alice.Groups) != len(groups) {
				t.Errorf("a token is stored: %t; %d groups", stored, len(alice.Groups))
			}
			b.press(page).shows(t, 200, "The SSH session was approved")
		})
	}
}

// signedInElsewhere lets the person of the provider add a device of their own.
func (s *service) signedInElsewhere() {
	s.t.Helper()
	c := s.client()
	link := c.asks()
	s.browser().signIn(link)
	c.joins(object{"Followup": link})
}

func TestOwnerDoesNotOverruleAnAdministratorWhoRejectedAnSSHSession(t *testing.T) {
	_, s, c := sshSignIn(t)
	link, held := c.asksForApproval("ana")
	b := s.browser()
	confirm := b.follow(link, "")
	if _, err := s.SSH.Reject(t.Context(), admin, strings.TrimPrefix(link, "/oidc/ssh/"), "no"); err != nil {
		t.Fatal(err)
	}
	if a := <-held; !a.Reject {
		t.Errorf("%+v", a)
	}
	b.press(confirm).shows(t, 409, "The SSH session was not approved", "An administrator rejected this session")
	if a := c.begins("ana"); !a.Reject {
		t.Errorf("the next session: %+v", a)
	}
}

func TestSuspendedOwnerApprovesNoSSHSession(t *testing.T) {
	_, s, c := sshSignIn(t)
	link, _ := c.asksForApproval("ana")
	b := s.browser()
	confirm := b.follow(link, "")
	if _, err := s.Users.Suspend(t.Context(), admin, "alice", "", false); err != nil {
		t.Fatal(err)
	}
	b.press(confirm).shows(t, 403, "Your account is suspended")
	if s.grants() != 0 {
		t.Error("approved")
	}
}

func TestLinkOfAnSSHSessionMustBeComplete(t *testing.T) {
	i, s, _ := sshSignIn(t)
	if out := s.browser().get("/oidc/ssh/ABCD"); out.status != http.StatusBadRequest || strings.Contains(out.location, i.URL) {
		t.Errorf("%d to %s", out.status, out.location)
	}
	plain, _ := open(t, options{})
	if first := newTarget(plain).begins("ana"); strings.Contains(first.Message, "/oidc/") {
		t.Errorf("nobody can sign in, but the terminal says: %s", first.Message)
	}
}
