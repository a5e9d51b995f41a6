//go:build !race

package e2e

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

var (
	authLink   = regexp.MustCompile(`AuthURL is (\S+)`)
	confirm    = regexp.MustCompile(`<h1>Add this device\?</h1>`)
	approved   = regexp.MustCompile(`<h1>This device (was approved|has joined)</h1>`)
	notAllowed = regexp.MustCompile(`(?s)<h1>You may not sign in here</h1>.*the domain of your email address`)
	signInFail = regexp.MustCompile(`(?s)<h1>Signing in failed</h1>.*could not be reached.*>Try again</a>`)
)

// providerTest is a network whose people sign in with a real provider, and a real client.
type providerTest struct {
	network
	program oidctest.Program
	addr    string
	client  *clienttest.Daemon
	host    string // what the client calls itself
	links   int    // login links that the client has shown
}

func startProviderTest(ctx context.Context, t *testing.T, p oidctest.Program, version string) *providerTest {
	t.Helper()
	addr := porttest.Addr(t)
	return &providerTest{program: p, addr: addr, host: "laptop", network: startNetwork(t, meshtest.Config{Set: map[string]string{
		"oidc.issuer": p.Issuer(addr), "oidc.client_id": oidctest.ClientID, "oidc.client_secret": oidctest.ClientSecret,
		"oidc.scope": p.Scope, "oidc.allowed_groups": "staff", "oidc.allowed_domains": "example.com",
	}}), client: clienttest.Start(t, clienttest.Options{Version: version})}
}

func (p *providerTest) startProvider(ctx context.Context) (stop func()) {
	p.t.Helper()
	stop = p.program.Start(ctx, p.t, p.addr, p.URL+"/oidc/callback")
	p.healthy(ctx, true)
	return stop
}

// healthy waits until the server says whether it reaches the provider.
func (p *providerTest) healthy(ctx context.Context, want bool) {
	p.t.Helper()
	eventually(ctx, p.t, func() error {
		text, err := p.API(ctx, "GET", "/health", "")
		if err == nil && strings.Contains(string(text), "identity provider") == want {
			err = fmt.Errorf("%s", text)
		}
		return err
	})
}

// up runs "tailscale up" while a person signs in.
func (p *providerTest) up(ctx context.Context, signIn func(link string), args ...string) {
	p.t.Helper()
	var wait sync.WaitGroup
	var said string
	var exit int
	wait.Go(func() {
		stdout, stderr, code := p.client.CLI(ctx, append([]string{"up", "--login-server=" + p.URL, "--hostname=" + p.host}, args...)...)
		said, exit = stdout+stderr, code
	})
	// The log, because the status of older clients does not always contain the link that "up" prints.
	var links [][]string
	eventually(ctx, p.t, func() error {
		if links = authLink.FindAllStringSubmatch(p.client.Log(), -1); len(links) == p.links {
			return errors.New("no login link")
		}
		return nil
	})
	p.links = len(links)
	signIn(links[len(links)-1][1])
	wait.Wait()
	if exit != 0 {
		p.t.Fatalf("the command ends with code %d: %s", exit, said)
	}
	awaitState(ctx, p.t, p.client, "Running")
}

// as returns a person who opens a login link, and signs in with it up to a page.
func (p *providerTest) as(ctx context.Context, name string, page *regexp.Regexp) func(link string) {
	return func(link string) {
		p.t.Helper()
		v := p.program.Visitor(p.t, name)
		if err := v.Open(ctx, link); err != nil {
			p.t.Fatal(err)
		}
		v.Until(ctx, p.t, page)
	}
}

// People sign in with real providers, and a real client connects. The same person keeps the node when signing in again, also
// after it has expired; another person gets another one. There is no logout in between: after one, "tailscale up" of version
// 1.74 may wait forever for a login link that it does not request.
func TestPersonSignsInWithAProvider(t *testing.T) {
	for _, program := range []oidctest.Program{oidctest.OIDCProvider(), oidctest.Dex()} {
		t.Run(program.Name, func(t *testing.T) {
			t.Parallel()
			forEachVersion(t, func(t *testing.T, version string) { signInWith(t, program, version) })
		})
	}
}

func signInWith(t *testing.T, program oidctest.Program, version string) {
	t.Helper()
	ctx := within(t, patience)
	p := startProviderTest(ctx, t, program, version)
	p.healthy(ctx, false) // the server starts without its provider
	stop := p.startProvider(ctx)
	p.up(ctx, func(link string) {
		p.as(ctx, "eve", notAllowed)(link)
		p.signInWhileTheProviderStops(ctx, link, stop)
	})
	first, ok := p.nodes(ctx)["laptop"]
	if !ok || first.User.Name != "ann" || len(p.nodes(ctx)) != 1 {
		t.Fatalf("nodes %v", p.nodes(ctx))
	}
	same := func(when string) {
		t.Helper()
		if now := p.nodes(ctx)["laptop"]; now.ID != first.ID || now.IPAddresses[0] != first.IPAddresses[0] || now.User.Name != "ann" {
			t.Errorf("%s: %+v, was %+v", when, p.nodes(ctx), first)
		}
	}
	p.up(ctx, p.as(ctx, "ann", approved), "--force-reauth")
	same("after signing in again")
	p.CLI("nodes", "expire", "--force", "laptop")
	awaitState(ctx, t, p.client, "NeedsLogin")
	p.up(ctx, p.as(ctx, "ann", approved))
	same("after it expired")
	if len(p.nodes(ctx)) != 1 {
		t.Errorf("nodes %+v", p.nodes(ctx))
	}
	p.up(ctx, p.as(ctx, "bob", approved), "--force-reauth")
	same("after another person signed in")
	if len(p.nodes(ctx)) != 2 {
		t.Errorf("after another person signed in: %+v", p.nodes(ctx))
	}
}

// signInWhileTheProviderStops lets ann sign in. The provider stops after it has sent her back, before the server has
// exchanged the code, and is started again.
func (p *providerTest) signInWhileTheProviderStops(ctx context.Context, link string, stop func()) {
	p.t.Helper()
	ann := p.program.Visitor(p.t, "ann")
	ann.PauseAt = p.URL + "/oidc/callback"
	open := func(address string) {
		p.t.Helper()
		if err := ann.Open(ctx, address); err != nil {
			p.t.Fatal(err)
		}
	}
	open(link)
	for range 5 {
		if strings.HasPrefix(ann.At.String(), ann.PauseAt) {
			break
		}
		if err := ann.Submit(ctx); err != nil {
			p.t.Fatalf("%q: %v\n%s", ann.Visited, err, ann.Text)
		}
	}
	stop()
	open(ann.At.String())
	if !signInFail.MatchString(ann.Text) {
		p.t.Errorf("%q:\n%s", ann.Visited, ann.Text)
	}
	p.startProvider(ctx)
	ann.PauseAt = ""
	open(link)
	ann.Until(ctx, p.t, confirm)
	ann.Until(ctx, p.t, approved)
}
