package api_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// signedIn adds the n-th person, if there is none, with a session. It returns the header with
// its token.
func (s *service) signedIn(n int) (*mesh.Session, string) {
	s.t.Helper()
	id := fmt.Sprintf("https://id.example.com/person%d", n)
	user, err := ensurePerson(s, id, fmt.Sprintf("person%d", n))
	if err != nil {
		s.t.Fatal(err)
	}
	v, token, err := s.control.Sessions.Create(s.t.Context(), mesh.Actor{Kind: mesh.ActorUser, ID: id}, control.NewSession{User: user, Client: mesh.SessionCLI, Description: "laptop"})
	if err != nil {
		s.t.Fatal(err)
	}
	return v, "Authorization: Bearer " + token
}

const (
	verifier  = "a verifier that only the console has, 43 characters"
	returnURL = "https://mesh.example.com/admin/signin/callback"
)

func challenge() string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// code returns a request with a one-time code of the n-th person.
func (s *service) code(n int) object {
	s.t.Helper()
	user, err := ensurePerson(s, fmt.Sprintf("https://id.example.com/person%d", n), fmt.Sprintf("person%d", n))
	if err != nil {
		s.t.Fatal(err)
	}
	u, _ := s.ledger.World().Users.Get(user)
	code, err := s.control.Sessions.Code(u, "", control.SessionRequest{Client: mesh.SessionConsole, Challenge: challenge(), ReturnURL: returnURL})
	if err != nil {
		s.t.Fatal(err)
	}
	return object{"code": code, "verifier": verifier, "returnUrl": returnURL}
}

const badCode = "the code is invalid, has expired or was already used; sign in again"

func TestACodeIsExchangedForASession(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		out := s.call("POST", "/api/v1/session", s.code(1), noKey).ok()
		token := out["token"].(string)
		got := out["session"].(object)
		if got["client"] != "console" || got["current"] != true || got["user"].(object)["name"] != "person1" {
			t.Errorf("session %v", got)
		}
		if own := s.call("GET", "/api/v1/my/session", nil, "Authorization: Bearer "+token).ok()["sessions"].([]any); len(own) != 1 {
			t.Errorf("sessions %v", own)
		}
		rows := s.audit()
		if last := rows[len(rows)-1]; last.Kind != "session" || last.Verb != "created" || last.Actor.String() != "user:person1" {
			t.Errorf("audit: %+v", last)
		}
		if strings.Contains(s.log.text(), token) {
			t.Error("the log contains the token")
		}
	})
}

func TestReplayOfTheOneTimeCode(t *testing.T) {
	s := sqlite(t)
	in := s.code(1)
	s.call("POST", "/api/v1/session", in, noKey).ok()
	for range 2 {
		s.call("POST", "/api/v1/session", in, noKey).fails(400, "Bad Request", badCode, "code")
	}
	if n := s.ledger.World().Sessions.Len(); n != 1 {
		t.Errorf("%d sessions", n)
	}
	if lines := s.log.lines(t, "one-time code of a sign-in was used again"); len(lines) != 2 || lines[0]["actor"] != "user:person1" {
		t.Errorf("logged %v", lines)
	}
}

// A code that an attacker intercepts is useless without the verifier, and at another program.
func TestCodeWithAWrongVerifierIsRefused(t *testing.T) {
	s := sqlite(t)
	for member, values := range map[string][]string{
		"verifier":  {"", strings.Repeat("x", 43), verifier + "x", strings.ToUpper(verifier), strings.Repeat("x", 129)},
		"returnUrl": {"", returnURL + "/", "https://evil.example/admin/signin/callback", strings.ToUpper(returnURL)},
		"code":      {"", "x", strings.Repeat("A", 500), "flk_" + strings.Repeat("A", 40)},
	} {
		for _, value := range values {
			in := s.code(1)
			in[member] = value
			if a := s.call("POST", "/api/v1/session", in, noKey); a.status != http.StatusBadRequest {
				t.Errorf("%s %.20q: %d %s", member, value, a.status, a.body)
			}
		}
	}
	if n := s.ledger.World().Sessions.Len(); n != 0 {
		t.Errorf("%d sessions", n)
	}
}

// The person confirms on one replica, and the command line asks another.
func TestDeviceGetsItsSessionOnceConfirmed(t *testing.T) {
	database := postgres(t).Database(t)
	a, b := start(t, openPostgres(t, database)), start(t, openPostgres(t, database))
	if err := a.ledger.Sync(t.Context()); err != nil { // b has committed, too
		t.Fatal(err)
	}
	rev := a.ledger.World().Rev
	d := a.call("POST", "/api/v1/session/device", object{"challenge": challenge(), "description": "build\u202eserver"}, noKey).ok()
	token := d["deviceCode"].(string)
	if d["userCode"] != identity.Code(token) || d["url"] != "https://mesh.example.com/oidc/device/"+token {
		t.Errorf("%v", d)
	}
	poll := func(s *service, verifier string) *answer {
		return s.call("POST", "/api/v1/session/device/token", object{"deviceCode": token, "verifier": verifier}, noKey)
	}
	if out := poll(b, verifier).ok(); out["pending"] != true || out["token"] != "" || out["session"] != nil {
		t.Errorf("before: %v", out)
	}
	if now := a.ledger.World().Rev; now != rev {
		t.Errorf("a stranger made the server write: %d revisions", now-rev)
	}
	user, err := ensurePerson(a, "https://id.example.com/person1", "person1")
	if err != nil {
		t.Fatal(err)
	}
	u, _ := a.ledger.World().Users.Get(user)
	if err := a.control.Sessions.ApproveDevice(t.Context(), mesh.Actor{}, token, u, ""); err != nil {
		t.Fatal(err)
	}
	if err := a.control.Sessions.ApproveDevice(t.Context(), mesh.Actor{}, token, u, ""); err == nil {
		t.Error("confirmed twice")
	}
	if err := b.ledger.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	poll(b, strings.Repeat("x", 43)).fails(400, "Bad Request", badCode, "code")
	out := poll(b, verifier).ok()
	got, _ := out["session"].(object)
	if out["pending"] != false || got["description"] != "build-server" || got["client"] != "cli" || got["user"].(object)["name"] != "person1" {
		t.Fatalf("after: %v", out)
	}
	b.call("GET", "/api/v1/my/session", nil, "Authorization: Bearer "+out["token"].(string)).ok()
	for _, s := range []*service{a, b} {
		poll(s, verifier).fails(400, "Bad Request", badCode, "code")
	}
}

func TestDeviceSignInExpires(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		s := sqlite(t)
		d := s.direct(s.handler, "POST", "/api/v1/session/device", object{"challenge": challenge()}, noKey).ok()
		time.Sleep(10 * time.Minute) //nolint:forbidigo // the bubble's clock
		s.direct(s.handler, "POST", "/api/v1/session/device/token", object{"deviceCode": d["deviceCode"], "verifier": verifier}, noKey).fails(400, "Bad Request", badCode, "code")
	})
}

func TestACodeExpires(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		s := sqlite(t)
		in := s.code(1)
		time.Sleep(time.Minute) //nolint:forbidigo // the bubble's clock
		s.direct(s.handler, "POST", "/api/v1/session", in, noKey).fails(400, "Bad Request", badCode, "code")
	})
}

// The code was created by another replica a moment ago, which this one has not heard of.
func TestACodeIsUsedOnAnotherReplicaOnce(t *testing.T) {
	database := postgres(t).Database(t)
	a, b := start(t, openPostgres(t, database)), start(t, openPostgres(t, database))
	in := a.code(7)
	b.call("POST", "/api/v1/session", in, noKey).ok()
	a.call("POST", "/api/v1/session", in, noKey).fails(400, "Bad Request", badCode, "code")
}

// A user who gets another account at the provider is another person.
func TestSessionsEndWithTheAccount(t *testing.T) {
	s := sqlite(t)
	_, token := s.signedIn(1)
	s.call("GET", "/api/v1/my/session", nil, token).ok()
	u, _ := s.ledger.World().Users.ByName("person1")
	_, err := s.ledger.Commit(t.Context(), mesh.Actor{Kind: mesh.ActorServer}, func(*policy.World, mesh.Time) ([]mesh.Event, error) {
		other := *u
		other.ProviderID = "https://id.example.com/somebody-else"
		return []mesh.Event{mesh.UserPut{User: &other}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if a := s.call("GET", "/api/v1/my/session", nil, token); a.status != http.StatusUnauthorized {
		t.Errorf("%d: %s", a.status, a.body)
	}
}

// What the earlier account has started must not give access either.
func TestAccessEndsWithTheAccount(t *testing.T) {
	s := sqlite(t)
	v, token := s.signedIn(1)
	s.person("zoe", mesh.RoleAdmin)
	s.call("PUT", "/api/v1/user/"+v.User.String()+"/role", object{"role": "admin"}).ok()
	key := s.call("POST", "/api/v1/apikey", nil, token).ok()["apiKey"].(string)
	own := "Authorization: Bearer " + key
	s.call("GET", "/api/v1/whoami", nil, own).ok()
	d := s.call("POST", "/api/v1/session/device", object{"challenge": challenge()}, noKey).ok()
	u, _ := s.ledger.World().Users.Get(v.User)
	if err := s.control.Sessions.ApproveDevice(t.Context(), mesh.Actor{}, d["deviceCode"].(string), u, ""); err != nil {
		t.Fatal(err)
	}
	s.call("PUT", "/api/v1/user/"+u.Name+"/account", object{"providerId": "https://id.example.com/somebody-else", "replace": true}).ok()
	if a := s.call("GET", "/api/v1/whoami", nil, own); a.status != http.StatusUnauthorized {
		t.Errorf("API key: %d: %s", a.status, a.body)
	}
	s.call("POST", "/api/v1/session/device/token", object{"deviceCode": d["deviceCode"], "verifier": verifier}, noKey).fails(400, "Bad Request", badCode, "code")
}

func ensurePerson(s *service, id, name string) (user mesh.UserID, err error) {
	_, err = s.ledger.Commit(s.t.Context(), mesh.Actor{Kind: mesh.ActorServer}, func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
		if u, ok := w.Users.ByProviderID(mesh.ProviderOIDC, id); ok {
			user = u.ID
			return nil, nil
		}
		user = w.Counters.User + 1
		return []mesh.Event{mesh.UserPut{User: &mesh.User{ID: user, Name: name, Provider: mesh.ProviderOIDC, ProviderID: id, CreatedAt: now}}}, nil
	})
	return user, err
}

func TestASessionIsThePersonWhoSignedIn(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		v, token := s.signedIn(1)
		own := s.call("GET", "/api/v1/my/session", nil, token).ok()["sessions"].([]any)
		if len(own) != 1 {
			t.Fatalf("%v", own)
		}
		got := own[0].(object)
		want := object{
			"id": v.ID.String(), "prefix": identity.Mask(identity.KindSession, v.Prefix), "user": got["user"], "client": "cli", "description": "laptop", "current": true,
			"expiration": got["expiration"], "createdAt": got["createdAt"], "lastSeen": got["lastSeen"], "lastUsedFrom": "127.0.0.1",
		}
		if diff := cmp.Diff(want, got); diff != "" || got["lastSeen"] == nil || got["user"].(object)["name"] != "person1" {
			t.Errorf("session (-want +got):\n%s", diff)
		}
		if lasts := moment(t, got["expiration"]).Sub(moment(t, got["createdAt"])); lasts != control.SessionLifetime {
			t.Errorf("lasts %v", lasts)
		}
		s.call("DELETE", "/api/v1/my/session/current", nil, token, "X-Request-Id: r7").ok()
		rows := s.audit()
		last := rows[len(rows)-1]
		actor := mesh.Actor{Kind: mesh.ActorUser, ID: "https://id.example.com/person1", Name: "person1", Addr: "127.0.0.1", RequestID: "r7"}
		if diff := cmp.Diff(actor, last.Actor); diff != "" || last.Kind != "session" || last.Verb != "deleted" {
			t.Errorf("%s %s by (-want +got):\n%s", last.Verb, last.Kind, diff)
		}
		for _, row := range rows {
			if strings.Contains(string(row.Before)+string(row.After), token[len(token)-20:]) {
				t.Error("the audit log contains a token")
			}
		}
	})
}

func TestSessionsAfterSignOut(t *testing.T) {
	s := sqlite(t).listen()
	_, token := s.signedIn(1)
	_, other := s.signedIn(1)
	s.call("GET", "/api/v1/my/session", nil, token).ok()
	s.call("DELETE", "/api/v1/my/session/current", nil, token).ok()
	s.call("GET", "/api/v1/my/session", nil, token).fails(401, "Unauthorized", "Authentication failed: invalid API key", "")
	s.call("GET", "/api/v1/my/session", nil, other).ok()
	s.call("DELETE", "/api/v1/user/1", nil).ok()
	s.call("GET", "/api/v1/my/session", nil, other).fails(401, "Unauthorized", "Authentication failed: invalid API key", "")
	if n := s.ledger.World().Sessions.Len(); n != 0 {
		t.Errorf("%d sessions outlive their user", n)
	}
}

func TestSessionsOfASuspendedPersonAreRefused(t *testing.T) {
	s := sqlite(t).listen()
	_, token := s.signedIn(1)
	s.call("GET", "/api/v1/my/session", nil, token).ok()
	s.call("POST", "/api/v1/user/1/suspend", nil).ok()
	s.call("GET", "/api/v1/my/session", nil, token).fails(401, "Unauthorized", "Authentication failed: invalid API key", "")
	s.call("POST", "/api/v1/user/1/restore", nil).ok()
	s.call("GET", "/api/v1/my/session", nil, token).ok()
}

func TestNobodyRevokesSomebodyElsesSession(t *testing.T) {
	s := sqlite(t).listen()
	mine, token := s.signedIn(1)
	theirs, other := s.signedIn(2)
	const unknown = "unknown session: it may have expired or been revoked"
	for _, by := range []string{other, "Authorization: Bearer " + s.key} {
		s.call("DELETE", "/api/v1/my/session/"+mine.ID.String(), nil, by).fails(404, "Not Found", unknown, "")
	}
	s.call("DELETE", "/api/v1/my/session/current", nil).fails(404, "Not Found", unknown, "")
	s.call("DELETE", "/api/v1/my/session/0", nil, token).fails(404, "Not Found", unknown, "")
	if got := s.call("GET", "/api/v1/my/session", nil).ok()["sessions"].([]any); len(got) != 0 {
		t.Errorf("an API key has sessions: %v", got)
	}
	if got := s.call("GET", "/api/v1/session", nil).ok()["sessions"].([]any); len(got) != 2 || got[0].(object)["current"] != false {
		t.Errorf("an administrator sees %v", got)
	}
	if got := s.call("GET", "/api/v1/session?user=person2", nil).ok()["sessions"].([]any); len(got) != 1 || got[0].(object)["id"] != theirs.ID.String() {
		t.Errorf("of one user: %v", got)
	}
	s.call("DELETE", "/api/v1/session/"+mine.ID.String(), nil).ok()
	s.call("GET", "/api/v1/my/session", nil, token).fails(401, "Unauthorized", "Authentication failed: invalid API key", "")
}

// A program that has the key cannot see where its owner is signed in, or sign the owner out.
func TestKeyOfAPersonHasNoSessions(t *testing.T) {
	s := sqlite(t).listen()
	mine, token := s.signedIn(1)
	s.call("PUT", "/api/v1/user/person1/role", object{"role": "admin"}).ok()
	key := "Authorization: Bearer " + s.call("POST", "/api/v1/apikey", object{"role": "read", "scopes": []string{"nodes"}}, token).ok()["apiKey"].(string)
	if got := s.call("GET", "/api/v1/my/session", nil, key).ok()["sessions"].([]any); len(got) != 0 {
		t.Errorf("the key sees %v", got)
	}
	for _, id := range []string{mine.ID.String(), "current"} {
		s.call("DELETE", "/api/v1/my/session/"+id, nil, key).fails(404, "Not Found", "unknown session: it may have expired or been revoked", "")
	}
	s.call("GET", "/api/v1/my/session", nil, token).ok()
}

func TestASessionExpires(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		s := sqlite(t, config{control: func(c *control.Config) { c.SessionExpiry = time.Hour }})
		_, token := s.signedIn(1)
		s.direct(s.handler, "GET", "/api/v1/my/session", nil, token).ok()
		time.Sleep(time.Hour) //nolint:forbidigo // the bubble's clock
		if a := s.direct(s.handler, "GET", "/api/v1/my/session", nil, token); a.status != http.StatusUnauthorized {
			t.Errorf("%d: %s", a.status, a.body)
		}
	})
}

func TestANewSessionEndsTheOldestOfTooMany(t *testing.T) {
	s := sqlite(t)
	_, first := s.signedIn(1)
	for range 50 {
		s.signedIn(1)
	}
	s.signedIn(2)
	if n := s.ledger.World().Sessions.Len(); n != 51 {
		t.Errorf("%d sessions", n)
	}
	if a := s.call("GET", "/api/v1/my/session", nil, first); a.status != http.StatusUnauthorized {
		t.Errorf("%d: %s", a.status, a.body)
	}
}
