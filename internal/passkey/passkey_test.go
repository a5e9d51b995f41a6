package passkey_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/passkey"
	"github.com/fairlead-mesh/fairlead/internal/passkey/passkeytest"
)

const serverURL = "https://mesh.example.com"

func TestPasskeysNeedASecureHostName(t *testing.T) {
	for _, bad := range []string{"http://mesh.example.com", "https://192.0.2.1", "https://[2001:db8::1]:8443", "https://", "", "%"} {
		if _, err := passkey.New(bad); !errors.Is(err, passkey.ErrInsecure) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, good := range []string{serverURL, "https://mesh.example.com:8443/", "http://localhost:8080"} {
		if _, err := passkey.New(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

// create creates a passkey for an account.
func create(t *testing.T, v *passkey.Verifier, a *passkeytest.Authenticator, account passkey.Account) (passkey.Credential, error) {
	t.Helper()
	options, state, err := v.BeginCreate(account)
	if err != nil {
		t.Fatal(err)
	}
	response, err := a.Create(options)
	if err != nil {
		t.Fatal(err)
	}
	return v.FinishCreate(state, account, response)
}

func TestPersonSignsInWithThePasskeyTheyCreated(t *testing.T) {
	v, err := passkey.New(serverURL)
	if err != nil {
		t.Fatal(err)
	}
	ann := passkey.Account{Handle: "user-1", Name: "ann", DisplayName: "Ann"}
	a := &passkeytest.Authenticator{Origin: serverURL, RPID: "mesh.example.com"}
	c, err := create(t, v, a, ann)
	if err != nil {
		t.Fatal(err)
	}
	ann.Credentials = []passkey.Credential{c}
	find := func(id string) (passkey.Account, bool) { return ann, id == c.ID }

	options, state, err := v.BeginSignIn()
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := v.BeginSignIn()
	if err != nil {
		t.Fatal(err)
	}
	a.Uses = 7
	response, err := a.SignIn(options)
	if err != nil {
		t.Fatal(err)
	}
	got, err := v.FinishSignIn(state, response, find)
	if err != nil || got.ID != c.ID || got.Uses != 7 {
		t.Fatalf("%+v, %v", got, err)
	}
	refused := func(what string, state passkey.State, response string, find func(string) (passkey.Account, bool)) {
		t.Helper()
		if got, err := v.FinishSignIn(state, response, find); !errors.Is(err, passkey.ErrRefused) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	refused("another challenge", other, response, find)
	refused("no challenge", passkey.State{}, response, find)
	refused("an unknown passkey", state, response, func(string) (passkey.Account, bool) { return passkey.Account{}, false })
	refused("no JSON", state, "{", find)
	refused("an empty response", state, "{}", find)
	stranger := ann
	stranger.Handle = "user-2"
	refused("the passkey of somebody else", state, response, func(string) (passkey.Account, bool) { return stranger, true })

	sign := func(a passkeytest.Authenticator) string {
		t.Helper()
		response, err := a.SignIn(options)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	changed := *a
	changed.Unverified = true
	refused("a person who was not verified", state, sign(changed), find)
	changed = *a
	changed.Origin = "https://mesh.example.com.evil.example"
	refused("another site", state, sign(changed), find)
	changed = *a
	changed.RPID = "evil.example"
	refused("a passkey of another site", state, sign(changed), find)
	ann.Credentials[0].Uses = 9
	refused("a copy of the passkey", state, response, find)
}

func TestPasskeyOfAnotherCeremonyIsRefused(t *testing.T) {
	v, err := passkey.New(serverURL)
	if err != nil {
		t.Fatal(err)
	}
	ann, bob := passkey.Account{Handle: "user-1", Name: "ann"}, passkey.Account{Handle: "user-2", Name: "bob"}
	a := &passkeytest.Authenticator{Origin: serverURL, RPID: "mesh.example.com"}
	options, state, err := v.BeginCreate(ann)
	if err != nil {
		t.Fatal(err)
	}
	response, err := a.Create(options)
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := v.BeginCreate(ann)
	if err != nil {
		t.Fatal(err)
	}
	for what, try := range map[string]struct {
		state   passkey.State
		account passkey.Account
		text    string
	}{
		"another challenge": {other, ann, response},
		"another person":    {state, bob, response},
		"another type":      {state, ann, strings.Replace(response, "public-key", "password", 1)},
	} {
		if c, err := v.FinishCreate(try.state, try.account, try.text); !errors.Is(err, passkey.ErrRefused) {
			t.Errorf("%s: %+v, %v", what, c, err)
		}
	}
	if _, err := v.FinishCreate(state, ann, response); err != nil {
		t.Error(err)
	}
	for what, bad := range map[string]*passkeytest.Authenticator{
		"a person who was not verified": {Origin: serverURL, RPID: "mesh.example.com", Unverified: true},
		"another site":                  {Origin: "https://evil.example", RPID: "mesh.example.com"},
	} {
		if c, err := create(t, v, bad, ann); !errors.Is(err, passkey.ErrRefused) {
			t.Errorf("%s: %+v, %v", what, c, err)
		}
	}
}

func FuzzResponsesOfBrowsers(f *testing.F) {
	v, err := passkey.New(serverURL)
	if err != nil {
		f.Fatal(err)
	}
	account := passkey.Account{Handle: "user-1", Name: "ann"}
	options, state, err := v.BeginCreate(account)
	if err != nil {
		f.Fatal(err)
	}
	a := &passkeytest.Authenticator{Origin: serverURL, RPID: "mesh.example.com"}
	response, err := a.Create(options)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(response)
	if response, err = a.SignIn(options); err != nil {
		f.Fatal(err)
	}
	f.Add(response)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > passkey.MaxResponse {
			return
		}
		_, _ = v.FinishCreate(state, account, text)
		if c, err := v.FinishSignIn(state, text, func(string) (passkey.Account, bool) { return account, true }); err == nil {
			t.Errorf("accepted without a passkey: %+v", c)
		}
	})
}
