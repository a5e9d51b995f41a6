//go:build !race

package e2e

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/oidc"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

// A person who approves an SSH session must sign in again. A certified provider, at which the person is signed in already, asks
// for the password only because of prompt and max_age. Whoever removes them from the URL gets an ID token that does not prove it.
func TestCertifiedProviderProvesThatAPersonSignedInAgain(t *testing.T) {
	t.Parallel()
	ctx := within(t, patience)
	program, addr := oidctest.OIDCProvider(), porttest.Addr(t)
	callback := "http://" + porttest.Addr(t) + "/oidc/callback" // the browser stops before it
	program.Start(ctx, t, addr, callback)
	p := oidc.New(oidc.Config{
		Issuer: program.Issuer(addr), ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, RedirectURL: callback,
		Scopes: strings.Split(program.Scope, ","), Log: slog.New(slog.DiscardHandler),
	})
	if err := p.Discover(ctx); err != nil {
		t.Fatal(err)
	}
	ann := program.Visitor(t, "ann")
	ann.PauseAt = callback
	// signIn returns who signed in, and how many forms the provider showed.
	signIn := func(name string, again bool, edit func(url.Values)) (who oidc.Identity, forms int) {
		t.Helper()
		flow := oidc.Flow{State: name, Nonce: "nonce of " + name, Verifier: strings.Repeat("v", 43)}
		text, err := p.AuthURL(flow, again)
		if err != nil {
			t.Fatal(err)
		}
		address, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		query := address.Query()
		edit(query)
		address.RawQuery = query.Encode()
		for err = ann.Open(ctx, address.String()); err == nil && !strings.HasPrefix(ann.At.String(), callback) && forms < 10; forms++ {
			err = ann.Submit(ctx)
		}
		if err == nil {
			who, err = p.Exchange(ctx, flow, ann.At.Query().Get("code"))
		}
		if err != nil {
			t.Fatalf("%s, at %s: %v\n%s", name, ann.At, err, ann.Text)
		}
		return who, forms
	}
	unchanged := func(url.Values) {}
	if who, forms := signIn("first", false, unchanged); forms == 0 || who.Subject != "ann" {
		t.Fatalf("%+v after %d forms", who, forms)
	}
	if _, forms := signIn("second", false, unchanged); forms != 0 {
		t.Errorf("the provider does not remember the person, so this test proves nothing: %d forms", forms)
	}
	pause(ctx, t, 1100*time.Millisecond) // auth_time has no fractions
	began := time.Now().Truncate(time.Second)
	if who, forms := signIn("forged", true, func(q url.Values) { q.Del("prompt"); q.Del("max_age") }); forms != 0 || !who.AuthTime.Before(began) {
		t.Errorf("without the parameters: %d forms, signed in at %v, asked at %v", forms, who.AuthTime, began)
	}
	if who, forms := signIn("again", true, unchanged); forms == 0 || who.AuthTime.Before(began) {
		t.Errorf("%d forms, signed in at %v, asked at %v", forms, who.AuthTime, began)
	}
}

// pause waits until the clock of the provider has moved on.
func pause(ctx context.Context, t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
}
