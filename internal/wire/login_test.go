package wire_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/wire"
)

// asks starts an interactive login and returns the link.
func (c *client) asks() string {
	c.s.t.Helper()
	out := c.register(nil)
	if out.AuthURL == "" || out.Error != "" || out.MachineAuthorized {
		c.s.t.Fatalf("%+v", out)
	}
	return out.AuthURL
}

// follows follows a link in the background.
func (c *client) follows(link string) <-chan tailcfg.RegisterResponse {
	c.s.t.Helper()
	answer := make(chan tailcfg.RegisterResponse, 1)
	body, err := json.Marshal(c.registration(object{"Followup": link}))
	if err != nil {
		c.s.t.Fatal(err)
	}
	conn := c.http
	go func() {
		defer close(answer)
		req, err := http.NewRequestWithContext(context.Background(), "POST", "https://control/machine/register", strings.NewReader(string(body)))
		if err != nil {
			return
		}
		res, err := conn.RoundTrip(req)
		if err != nil {
			return // the connection was closed
		}
		defer res.Body.Close()
		var out tailcfg.RegisterResponse
		if json.NewDecoder(res.Body).Decode(&out) == nil {
			answer <- out
		}
	}()
	return answer
}

// waits follows a link, and returns once the device is listed as waiting.
func (c *client) waits(link string) <-chan tailcfg.RegisterResponse {
	c.s.t.Helper()
	answer := c.follows(link)
	code := identity.LoginCode(link)
	until(c.s.t, "the device is listed as "+code, func() bool {
		for _, l := range c.s.Logins.Waiting() {
			if l.Code == code {
				return true
			}
		}
		return false
	})
	return answer
}

// Conformance item 2: the followup completes.
func TestApprovedDeviceJoins(t *testing.T) {
	s, _ := open(t, options{})
	alice := s.user("alice")
	rev := s.ledger.World().Rev
	c := s.client()
	link := c.asks()
	if !strings.HasPrefix(link, s.url+"/auth/") {
		t.Errorf("link %s", link)
	}
	answer := c.waits(link)
	if s.ledger.World().Rev != rev {
		t.Error("a stranger made the service write")
	}
	w := s.Logins.Waiting()[0]
	if w.Hostname != "laptop" || w.OS != "linux" || w.Addr != "192.0.2.7" || w.MachineKey != c.machine.Public() || w.NodeKey != c.node.Public() {
		t.Errorf("listed as %+v", w)
	}
	if _, _, err := s.Logins.Approve(t.Context(), admin, "alice", strings.ToLower(w.Code)); err != nil {
		t.Fatal(err)
	}
	out := <-answer
	if out.Login.LoginName != "alice" || !out.MachineAuthorized || out.Error != "" {
		t.Errorf("%+v", out)
	}
	if n := s.only(); n.Owner != alice.ID || n.Method != mesh.RegisterApproved || n.PreAuthKey != 0 || n.NodeKey != c.node.Public() {
		t.Errorf("%+v", n)
	}
	for l := range s.ledger.World().Logins.All() {
		t.Errorf("the answer is still there: %+v", l)
	}
	if n := len(s.Logins.Waiting()); n != 0 {
		t.Errorf("%d devices wait", n)
	}
	s.counted(1)
}

// Conformance item 2: a rejection shows the error.
func TestRejectedDeviceIsToldWhy(t *testing.T) {
	s, _ := open(t, options{})
	c := s.client()
	link := c.asks()
	answer := c.waits(link)
	if _, err := s.Logins.Reject(t.Context(), admin, link, "ask in the office"); err != nil {
		t.Fatal(err)
	}
	const want = "Node registration rejected: ask in the office"
	if out := <-answer; out.Error != want {
		t.Errorf("%+v", out)
	}
	rev := s.ledger.World().Rev
	if out := c.register(object{"Followup": link}); out.Error != want || s.ledger.World().Rev != rev {
		t.Errorf("asked again: %+v", out)
	}
	if n := s.ledger.World().Nodes.Len(); n != 0 {
		t.Errorf("%d nodes", n)
	}
}

// Conformance item 2: the server is restarted during the wait.
func TestLoginOutlivesTheService(t *testing.T) {
	o := options{path: filepath.Join(t.TempDir(), "db"), noise: key.NewMachine()}
	s, stop := open(t, o)
	s.user("alice")
	c := s.client()
	link := c.asks()
	answer := c.waits(link)
	stop()
	if out, ok := <-answer; ok {
		t.Errorf("answered %+v", out)
	}
	s, _ = open(t, o)
	c.s = s
	c.connect()
	answer = c.waits(link)
	if _, _, err := s.Logins.Approve(t.Context(), admin, "alice", link); err != nil {
		t.Fatal(err)
	}
	if out := <-answer; !out.MachineAuthorized {
		t.Errorf("%+v", out)
	}
}

// answers stores the decision of an administrator, as the use cases do, without waiting
// for the device.
func (s *service) answers(c *client, l mesh.Login) {
	s.t.Helper()
	l.ID, l.MachineKey, l.NodeKey = 1, c.machine.Public(), c.node.Public()
	if l.Until == 0 {
		l.Until = mesh.TimeOf(time.Now().Add(time.Minute))
	}
	s.commit(mesh.LoginPut{Login: &l})
}

func TestApprovalWaitsForTheDevice(t *testing.T) {
	s, _ := open(t, options{})
	alice := s.user("alice")
	c, other := s.client(), s.client()
	link := c.asks()
	s.answers(c, mesh.Login{User: alice.ID})
	other.node = c.node
	if out := other.register(nil); out.AuthURL == "" {
		t.Errorf("another machine takes the place: %+v", out)
	}
	c.joins(object{"Followup": link})
}

func TestApprovalThatCameTooLateLetsNobodyIn(t *testing.T) {
	s, _ := open(t, options{})
	alice := s.user("alice")
	c := s.client()
	s.answers(c, mesh.Login{User: alice.ID, Until: mesh.TimeOf(time.Now())})
	c.asks()
}

func TestLinkOfAnotherDeviceIsNotFollowed(t *testing.T) {
	s, _ := open(t, options{})
	a, b := s.client(), s.client()
	link := a.asks()
	for _, followup := range []string{link, "https://elsewhere/auth/x", strings.Repeat("x", 5000), "/"} {
		if out := b.register(object{"Followup": followup}); out.AuthURL == "" || out.AuthURL == link {
			t.Errorf("%.50s: %+v", followup, out)
		}
	}
	old := identity.NewLoginSealer(s.secrets).SealLogin(identity.Login{
		MachineKey: a.machine.Public(), NodeKey: a.node.Public(), IssuedAt: mesh.TimeOf(time.Now().Add(-61 * time.Minute)),
	})
	if out := a.register(object{"Followup": s.url + "/auth/" + old}); out.AuthURL == "" || strings.HasSuffix(out.AuthURL, old) {
		t.Errorf("expired: %+v", out)
	}
}

func TestCrowdOfStrangersDoesNotFillTheList(t *testing.T) {
	s, _ := open(t, options{})
	const ofOne, requests = 64, 4 // logins per address, and concurrent requests per connection
	c, sealer := s.client(), identity.NewLoginSealer(s.secrets)
	link := func() string {
		c.node = key.NewNode()
		return s.url + "/auth/" + sealer.SealLogin(identity.Login{
			MachineKey: c.machine.Public(), NodeKey: c.node.Public(), IssuedAt: mesh.TimeOf(time.Now()),
		})
	}
	for i := range ofOne {
		if i%requests == 0 {
			c.connect()
		}
		c.follows(link())
	}
	until(t, "all wait", func() bool { return len(s.Logins.Waiting()) == ofOne })
	c.connect()
	last := link()
	if out := c.register(object{"Followup": last}); out.AuthURL != last {
		t.Errorf("%+v", out)
	}
	if n := len(s.Logins.Waiting()); n != ofOne {
		t.Errorf("%d devices wait", n)
	}
}

func TestLoginPageTellsItsState(t *testing.T) {
	s, _ := open(t, options{})
	alice := s.user("alice")
	c := s.client()
	link := c.asks()
	path := strings.TrimPrefix(link, s.url)
	shows := func(path string, status int, parts ...string) {
		t.Helper()
		got, _, text := s.outside("GET", path, "")
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%.30s lacks %q:\n%s", path, part, text)
			}
		}
		if got != status {
			t.Errorf("%.30s: %d", path, got)
		}
	}
	code := identity.LoginCode(link)
	shows(path, 200, "This device is waiting to join", code, identity.LongLoginCode(link), "laptop", "linux", "fairlead auth approve "+code+" --user USER", `http-equiv="refresh"`)
	shows(strings.Replace(path, "/auth/", "/register/", 1), 200, code)
	shows(path[:len(path)-1], 404, "This link is not valid")
	expired := identity.NewLoginSealer(s.secrets).SealLogin(identity.Login{
		MachineKey: c.machine.Public(), NodeKey: key.NewNode().Public(), IssuedAt: mesh.TimeOf(time.Now().Add(-61 * time.Minute)),
	})
	shows("/auth/"+expired, 200, "This link has expired")
	hostile := identity.NewLoginSealer(s.secrets).SealLogin(identity.Login{
		NodeKey: key.NewNode().Public(), Hostname: `<script>"'&`, IssuedAt: mesh.TimeOf(time.Now()),
	})
	shows("/auth/"+hostile, 200, "&lt;script&gt;")
	if _, err := s.Logins.Reject(t.Context(), admin, link, "not <you>"); err != nil {
		t.Fatal(err)
	}
	shows(path, 200, "This device was rejected", "not &lt;you&gt;")
	s.answers(c, mesh.Login{User: alice.ID})
	shows(path, 200, "This device was approved")
	c.joins(nil)
	shows(path, 200, "This device has joined")
}

func TestLoginPageShowsTheTagsOfADeviceThatWaits(t *testing.T) {
	s, _ := open(t, options{})
	c := s.client()
	link := c.asks()
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	wait.Go(func() {
		_, _ = s.Joins.Join(ctx, mesh.Actor{}, control.Joining{
			Proven:     true,
			MachineKey: c.machine.Public(), NodeKey: c.node.Public(), Followup: link, Tags: []string{"tag:web", "tag:db"},
		})
	})
	until(t, "the device waits", func() bool { return len(s.Logins.Waiting()) > 0 })
	if _, _, text := s.outside("GET", strings.TrimPrefix(link, s.url), ""); !strings.Contains(text, "<dt>Tags</dt><dd>tag:db, tag:web</dd>") {
		t.Errorf("no tags:\n%s", text)
	}
}

func TestPagesLoadNothing(t *testing.T) {
	s, _ := open(t, options{})
	outside := regexp.MustCompile(`(?i)<script|<link|<img|<iframe|src=|@import|url\(|https?://`)
	paths := []string{"/", "/apple", "/windows", "/android", strings.TrimPrefix(s.client().asks(), s.url), "/auth/x"}
	for _, path := range paths {
		_, header, text := s.outside("GET", path, "")
		text = strings.ReplaceAll(text, s.url, "")
		if found := outside.FindString(text); found != "" {
			t.Errorf("%.20s has %s", path, found)
		}
		_, style, _ := strings.Cut(text, "<style>")
		style, _, _ = strings.Cut(style, "</style>")
		sum := sha256.Sum256([]byte(style))
		want := fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'",
			base64.StdEncoding.EncodeToString(sum[:]))
		if diff := cmp.Diff(want, header.Get("Content-Security-Policy")); diff != "" || header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%.20s: %v\n%s", path, header, diff)
		}
	}
	for _, path := range paths[:4] {
		status, _, text := s.outside("GET", path, "")
		if status != 200 || !strings.Contains(text, s.url) {
			t.Errorf("%s: %d does not name the server", path, status)
		}
		for _, other := range paths[1:4] {
			if strings.Contains(text, `href="`+other+`"`) != (other != path) {
				t.Errorf("%s leads to %s, or should:\n%s", path, other, text)
			}
		}
	}
}

func TestDeviceWithoutKeyIsRefusedWhereThereAreNoLinks(t *testing.T) {
	s, _ := open(t, options{wire: func(c *wire.Config) {
		c.Joins = control.New(control.Config{Ledger: c.Ledger, Log: c.Log, Registerer: prometheus.NewRegistry()}).Joins
	}})
	if out := s.client().register(nil); out.Error != badKey+"(a pre-auth key is required; ask your administrator for one)" {
		t.Errorf("%+v", out)
	}
}
