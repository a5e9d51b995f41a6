//go:build !race

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
)

// recheckEvery is how often the server of the drill asks the provider.
const recheckEvery = 3 * time.Second

// The off-boarding drill: an account is disabled at the provider, and the person's device loses its traffic once the server
// asks the provider. An administrator brings it back, without a new sign-in.
func TestPersonDisabledAtTheProviderIsCutOff(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*patience)
	program, addr := oidctest.OIDCProvider(), meshtest.FreeAddr(t)
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("oidc: {extra_params: {prompt: consent}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	version := versions()[len(versions())-1]
	p := &providerTest{program: program, addr: addr, host: "laptop", client: clienttest.Start(t, clienttest.Options{Version: version}), network: startNetwork(t, meshtest.Config{Set: map[string]string{
		"config": file, "oidc.issuer": program.Issuer(addr), "oidc.client_id": oidctest.ClientID, "oidc.client_secret": oidctest.ClientSecret,
		"oidc.scope": program.Scope, "oidc.recheck": recheckEvery.String(),
	}})}
	p.startProvider(ctx)
	p.up(ctx, p.as(ctx, "ann", approved))
	viewer := p.join(ctx, clienttest.Options{Version: version}, p.key(), "viewer")
	await(ctx, t, viewer, seesOnline("laptop"))
	here, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveEcho(t, here)
	pair := &trial{p.network, viewer, fmt.Sprintf("laptop.%s:%d", baseDomain, here.Addr().(*net.TCPAddr).Port)}
	pair.awaitTraffic(ctx, t)
	suspended := func() error {
		if text := p.CLI("users", "list"); !strings.Contains(text, "suspended") {
			return errors.New(text)
		}
		return nil
	}
	began := time.Now()
	p.at(ctx, "disable/ann")
	pair.awaitSilence(ctx, t)
	eventually(ctx, t, suspended)
	t.Logf("no traffic %v after the account was disabled", time.Since(began).Round(time.Millisecond))
	p.at(ctx, "enable/ann")
	began = time.Now()
	p.CLI("users", "restore", "ann")
	pair.awaitTraffic(ctx, t)
	t.Logf("traffic %v after the restoration", time.Since(began).Round(time.Millisecond))
	awaitState(ctx, t, p.client, "Running")
}

// at asks the provider to change an account.
func (p *providerTest) at(ctx context.Context, what string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.program.Issuer(p.addr)+"/test/"+what, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %s", what, res.Status)
	}
}
