package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/api"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// passkey lets a user create a passkey, and returns its ID. The user is created if it does not exist.
func (f fixture) passkey(name string) string {
	f.t.Helper()
	local := mesh.Actor{Kind: mesh.ActorLocal}
	if _, ok := f.ledger.World().Users.ByName(name); !ok {
		f.call("POST", "/api/v1/user", object{"name": name}).ok()
	}
	_, link, err := f.control.Passkeys.Invite(f.t.Context(), local, name, time.Time{})
	if err != nil {
		f.t.Fatal(err)
	}
	text := link[strings.LastIndexByte(link, '/')+1:]
	done, err := f.control.Passkeys.Create(f.t.Context(), local, text, control.NewPasskey{Credential: "credential-of-" + text, PublicKey: "pQECAyYg"})
	if err != nil {
		f.t.Fatal(err)
	}
	all := f.control.Passkeys.Of(done.User.ID)
	return all[len(all)-1].ID.String()
}

func TestInvitationIsShownOnceAndNamesNoSecretLater(t *testing.T) {
	f := populated(t, sqlite(t))
	out := f.call("POST", "/api/v1/user/alice/invitation", object{"expiration": time.Now().Add(time.Hour)}).ok()
	link, _ := out["link"].(string)
	text := link[strings.LastIndexByte(link, '/')+1:]
	if !strings.HasPrefix(text, "fli_") || !strings.Contains(link, "/passkey/invite/") {
		t.Fatalf("link %q", link)
	}
	secret := text[strings.LastIndexByte(text, '_')+1:]
	for _, row := range f.audit() {
		if strings.Contains(string(row.After), secret) {
			t.Errorf("the audit log has the invitation: %s", row.After)
		}
	}
	if strings.Contains(f.log.text(), secret) {
		t.Error("the log has the invitation")
	}
	if a := f.call("POST", "/api/v1/user/nobody/invitation", nil); a.status != 404 {
		t.Errorf("%d: %s", a.status, a.body)
	}
	if a := f.call("POST", "/api/v1/user/alice/invitation", object{"expiration": time.Now().Add(91 * 24 * time.Hour)}); a.status != 400 {
		t.Errorf("%d: %s", a.status, a.body)
	}
	if a := f.call("POST", "/api/v1/user/alice/invitation", object{"expiration": time.Now().Add(-time.Hour)}); a.status != 400 {
		t.Errorf("%d: %s", a.status, a.body)
	}
}

func TestProgramsNeedNoProviderIfSomebodyHasAPasskey(t *testing.T) {
	f := populated(t, sqlite(t, config{api: func(c *api.Config) { c.SignIn.Providers = nil }}))
	start := func() *answer {
		return f.call("POST", "/api/v1/session/device", object{"challenge": "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"}, noKey)
	}
	if a := start(); a.status != 409 {
		t.Errorf("a sign-in before anybody has a passkey: %d %s", a.status, a.body)
	}
	f.passkey("alice")
	start().ok()
}

func TestPasskeysAreListedAndDeleted(t *testing.T) {
	f := populated(t, sqlite(t))
	id := f.passkey("alice")
	f.call("POST", "/api/v1/user", object{"name": "bob"}).ok()
	for query, want := range map[string]int{"": 1, "?user=alice": 1, "?user=bob": 0} {
		if list := f.call("GET", "/api/v1/passkey"+query, nil).ok()["passkeys"].([]any); len(list) != want {
			t.Errorf("%q: %v", query, list)
		}
	}
	f.call("DELETE", "/api/v1/passkey/"+id, nil).ok()
	if a := f.call("DELETE", "/api/v1/passkey/"+id, nil); a.status != 404 {
		t.Errorf("%d: %s", a.status, a.body)
	}
	if a := f.call("DELETE", "/api/v1/passkey/x", nil); a.status != 404 {
		t.Errorf("%d: %s", a.status, a.body)
	}
	if list := f.call("GET", "/api/v1/passkey", nil).ok()["passkeys"].([]any); len(list) != 0 {
		t.Errorf("%v", list)
	}
}
