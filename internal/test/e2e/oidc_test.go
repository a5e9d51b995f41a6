//go:build !race

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
)

// startProvider runs oidc-provider, a certified OpenID Connect provider.
func startProvider(ctx context.Context, t *testing.T, addr, callback string) {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "node", "--no-warnings", "provider.mjs", port, callback)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "../oidctest", &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() { _ = cmd.Wait() })
	t.Cleanup(func() {
		cancel()
		wait.Wait()
		if t.Failed() {
			t.Logf("the provider says (without its packages, run make e2e): %s", out.String())
		}
	})
}

var (
	formAction = regexp.MustCompile(`<form[^>]* action="([^"]+)"`)
	approved   = regexp.MustCompile(`<h1>This device (was approved|has joined)</h1>`)
	authLink   = regexp.MustCompile(`AuthURL is (\S+)`)
	formHidden = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)
)

// signInAs fills in every form, as a person with a browser does, until the device is approved. It returns the pages.
func signInAs(ctx context.Context, t *testing.T, name, link string) (visited []string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	method, address, form := http.MethodGet, link, url.Values(nil)
	for range 10 {
		req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		if form != nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		res, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		at := res.Request.URL
		visited = append(visited, fmt.Sprintf("%d %s", res.StatusCode, at))
		if approved.Match(text) {
			return visited
		}
		action := formAction.FindStringSubmatch(string(text))
		if action == nil {
			t.Fatalf("%q: a page without a form:\n%s", visited, text)
		}
		next, err := at.Parse(action[1])
		if err != nil {
			t.Fatal(err)
		}
		form = url.Values{"login": {name}, "password": {"any"}}
		for _, field := range formHidden.FindAllStringSubmatch(string(text), -1) {
			form.Set(field[1], field[2])
		}
		method, address = http.MethodPost, next.String()
	}
	t.Fatalf("the device is not approved: %q", visited)
	return nil
}

// A person signs in with a certified provider, and a real client connects. The same person keeps the node when signing in
// again; another person gets another one. There is no logout in between: after one, "tailscale up" of version 1.74 may wait
// forever for a login link that it does not request.
func TestPersonSignsInWithAProvider(t *testing.T) {
	t.Parallel()
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, patience)
		addr := meshtest.FreeAddr(t)
		n := startNetwork(t, meshtest.Config{Set: map[string]string{
			"oidc.issuer": "http://" + addr, "oidc.client_id": oidctest.ClientID, "oidc.client_secret": oidctest.ClientSecret,
			"oidc.scope": "openid,profile,email,groups", "oidc.allowed_groups": "staff", "oidc.allowed_domains": "example.com",
		}})
		health := func(down bool) func() error {
			return func() error {
				text, err := n.API(ctx, "GET", "/health", "")
				if err == nil && strings.Contains(string(text), "identity provider") != down {
					err = fmt.Errorf("%s", text)
				}
				return err
			}
		}
		eventually(ctx, t, health(true)) // the server starts without its provider
		startProvider(ctx, t, addr, n.URL+"/oidc/callback")
		eventually(ctx, t, health(false))
		d := clienttest.Start(t, clienttest.Options{Version: version})
		var links [][]string
		up := func(name string, args ...string) {
			var wait sync.WaitGroup
			var said string
			var exit int
			wait.Go(func() {
				stdout, stderr, code := d.CLI(ctx, append([]string{"up", "--login-server=" + n.URL, "--hostname=laptop"}, args...)...)
				said, exit = stdout+stderr, code
			})
			// The log, because the status of older clients does not always contain the link that "up" prints.
			before := len(links)
			eventually(ctx, t, func() error {
				if links = authLink.FindAllStringSubmatch(d.Log(), -1); len(links) == before {
					return errors.New("no login link")
				}
				return nil
			})
			link := links[len(links)-1][1]
			visited := signInAs(ctx, t, name, link)
			wait.Wait()
			if exit != 0 {
				t.Fatalf("%s: the command ends with code %d: %s\n%q", name, exit, said, visited)
			}
			awaitState(ctx, t, d, "Running")
		}
		up("ann")
		first, ok := n.nodes(ctx)["laptop"]
		if !ok || first.User.Name != "ann" {
			t.Fatalf("nodes %v", n.nodes(ctx))
		}
		up("ann", "--force-reauth")
		if again := n.nodes(ctx)["laptop"]; again.ID != first.ID || again.IPAddresses[0] != first.IPAddresses[0] || len(n.nodes(ctx)) != 1 {
			t.Errorf("after signing in again: %+v, was %+v", n.nodes(ctx), first)
		}
		up("bob", "--force-reauth")
		if all := n.nodes(ctx); len(all) != 2 || all["laptop"].User.Name != "ann" || all["laptop"].ID != first.ID {
			t.Errorf("after another person signed in: %+v", all)
		}
	})
}
