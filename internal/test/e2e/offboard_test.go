//go:build !race

package e2e

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

// The off-boarding drill, on two replicas: the account of a person is disabled at the provider, and the person's device, session
// and API key lose their access, through each way in which the server hears of it. An administrator brings the access back, and
// traffic flows without a new sign-in.
func TestPersonDisabledAtTheProviderIsCutOff(t *testing.T) {
	t.Parallel()
	pg := startPostgres(t)
	const recheck, soon = 3 * time.Second, 5 * time.Second
	for name, c := range map[string]struct {
		recheck, limit time.Duration
		leave          func(ctx context.Context, d *drill)
	}{
		"refresh": {recheck, recheck + soon, func(ctx context.Context, d *drill) { d.at(ctx, "disable/ann") }},
		"logout": {time.Hour, soon, func(ctx context.Context, d *drill) {
			d.at(ctx, "disable/ann")
			d.at(ctx, "logout/ann")
		}},
		"SCIM": {time.Hour, soon, func(ctx context.Context, d *drill) { d.disableWithSCIM(ctx) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := within(t, 2*patience)
			d := startDrill(ctx, t, pg, c.recheck)
			began := time.Now()
			c.leave(ctx, d)
			d.pair.awaitSilence(ctx, t)
			silent := time.Since(began)
			eventually(ctx, t, func() error {
				if d.admitted(ctx, d.session) || d.admitted(ctx, d.apiKey) {
					return errors.New("the session or the API key is still valid")
				}
				return nil
			})
			refused := time.Since(began)
			t.Logf("no traffic after %v, session and API key refused after %v", silent.Round(time.Millisecond), refused.Round(time.Millisecond))
			if max(silent, refused) > c.limit {
				t.Errorf("it took longer than %v", c.limit)
			}
			d.at(ctx, "enable/ann")
			began = time.Now()
			d.CLI("users", "restore", "ann")
			d.pair.awaitTraffic(ctx, t)
			t.Logf("traffic %v after the restoration", time.Since(began).Round(time.Millisecond))
			awaitState(ctx, t, d.client, "Running")
			eventually(ctx, t, func() error {
				if !d.admitted(ctx, d.apiKey) {
					return errors.New("the API key is still refused")
				}
				return nil
			})
		})
	}
}

// drill is a network with two replicas, and a person who has signed in with a device and with a program.
type drill struct {
	*providerTest
	replicas []*meshtest.Server
	pair     *trial // reaches the person's device
	session  string
	apiKey   string // created by the person
}

func startDrill(ctx context.Context, t *testing.T, pg *pgtest.Server, recheck time.Duration) *drill {
	t.Helper()
	dir := t.TempDir()
	// The relay of a third server, because a relay must always be the same one behind the balancer.
	relay := meshtest.Start(t, meshtest.Config{Binary: fairlead, Relay: true, Set: map[string]string{"derp.server.verify_clients": "false"}})
	_, port, err := net.SplitHostPort(relay.Addr)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"config.yaml": "oidc: {extra_params: {prompt: consent}}\n", "relays.json": strings.Replace(relays, `"DERPPort": 9`, `"DERPPort": `+port, 1),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	balancer, program, addr := meshtest.NewBalancer(t), oidctest.OIDCProvider(), porttest.Addr(t)
	program.Start(ctx, t, addr, balancer.URL+"/oidc/callback")
	config := meshtest.Config{
		Binary: fairlead, Postgres: pg, Database: pg.Database(t), URL: balancer.URL, NoiseKey: filepath.Join(dir, "noise.key"), Set: map[string]string{
			"config": filepath.Join(dir, "config.yaml"), "dns.base_domain": baseDomain, "derp.paths": filepath.Join(dir, "relays.json"),
			"oidc.issuer": program.Issuer(addr), "oidc.client_id": oidctest.ClientID, "oidc.client_secret": oidctest.ClientSecret,
			"oidc.scope": program.Scope, "oidc.recheck": recheck.String(),
		},
	}
	version := versions()[len(versions())-1]
	d := &drill{replicas: []*meshtest.Server{meshtest.Start(t, config), meshtest.Start(t, config)}}
	for _, r := range d.replicas {
		balancer.Add(r.Addr)
	}
	d.providerTest = &providerTest{program: program, addr: addr, host: "laptop", client: clienttest.Start(t, clienttest.Options{Version: version}), network: network{d.replicas[0], t}}
	d.healthy(ctx, true)
	d.URL = balancer.URL
	d.CLI("users", "create", "alice")
	d.up(ctx, d.as(ctx, "ann", approved))
	viewer := d.join(ctx, clienttest.Options{Version: version}, d.key(), "viewer")
	await(ctx, t, viewer, seesOnline("laptop"))
	here, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveEcho(t, here)
	d.pair = &trial{d.network, viewer, fmt.Sprintf("laptop.%s:%d", baseDomain, here.Addr().(*net.TCPAddr).Port)}
	d.pair.awaitTraffic(ctx, t)
	d.session = d.signInToProgram(ctx, "ann")
	d.firstPersonIsNoAdministrator(ctx)
	d.apiKey = d.createAPIKey(ctx)
	if !d.admitted(ctx, d.session) || !d.admitted(ctx, d.apiKey) {
		t.Fatal("the session or the API key is refused from the start")
	}
	return d
}

// firstPersonIsNoAdministrator checks that whoever signs in first on a new server cannot take it over: only a command on the
// server's machine makes the first administrator.
func (d *drill) firstPersonIsNoAdministrator(ctx context.Context) {
	d.t.Helper()
	for _, request := range []struct{ method, path, body string }{
		{http.MethodPut, "/api/v1/user/ann/role", `{"role": "admin"}`},
		{http.MethodPost, "/api/v1/apikey", `{"role": "admin"}`},
	} {
		if status, text := send(ctx, d.t, request.method, d.URL+request.path, d.session, request.body); status != http.StatusForbidden {
			d.t.Errorf("%s by the first person: %d %s", request.path, status, text)
		}
	}
}

// createAPIKey makes the person create an API key as an administrator. The person is a member afterwards, because the last
// administrator is never suspended.
func (d *drill) createAPIKey(ctx context.Context) string {
	d.t.Helper()
	d.CLI("users", "set-role", "ann", "admin")
	var made struct{ APIKey string }
	eventually(ctx, d.t, func() error { // the other replica knows of the role a moment later
		status, text := send(ctx, d.t, http.MethodPost, d.URL+"/api/v1/apikey", d.session, `{"role": "read"}`)
		if err := json.Unmarshal(text, &made); err != nil || status != http.StatusOK || made.APIKey == "" {
			return fmt.Errorf("%d %s, %w", status, text, err)
		}
		return nil
	})
	d.CLI("users", "set-role", "ann", "default")
	return made.APIKey
}

var programSignedIn = regexp.MustCompile(`<h1>You are signed in</h1>`)

// signInToProgram signs in as "fairlead login --device" does, and returns the token of the session.
func (p *providerTest) signInToProgram(ctx context.Context, name string) (session string) {
	p.t.Helper()
	verifier := rand.Text() + rand.Text()
	sum := sha256.Sum256([]byte(verifier))
	var started struct{ DeviceCode, URL string }
	p.post(ctx, "/api/v1/session/device", map[string]string{"challenge": base64.RawURLEncoding.EncodeToString(sum[:])}, &started)
	p.as(ctx, name, programSignedIn)(started.URL)
	eventually(ctx, p.t, func() error {
		var result struct{ Token string }
		p.post(ctx, "/api/v1/session/device/token", map[string]string{"deviceCode": started.DeviceCode, "verifier": verifier}, &result)
		if session = result.Token; session == "" {
			return errors.New("no session yet")
		}
		return nil
	})
	return session
}

func (p *providerTest) post(ctx context.Context, path string, in, out any) {
	p.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		p.t.Fatal(err)
	}
	text, err := p.API(ctx, "POST", path, string(body))
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		p.t.Fatalf("%s: %v", path, err)
	}
}

// admitted reports whether a replica accepts a session or an API key.
func (d *drill) admitted(ctx context.Context, token string) bool {
	d.t.Helper()
	return slices.ContainsFunc(d.replicas, func(r *meshtest.Server) bool { return admits(ctx, d.t, r, token) })
}

// admits reports whether a server accepts a session or an API key.
func admits(ctx context.Context, t *testing.T, s *meshtest.Server, token string) bool {
	t.Helper()
	status, _ := send(ctx, t, http.MethodGet, "http://"+s.Addr+"/api/v1/whoami", token, "")
	return status == http.StatusOK
}

// send sends a request, with a token unless it is empty, and returns the status and the body of the response.
func send(ctx context.Context, t *testing.T, method, address, token, body string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, text
}

// disableWithSCIM does what an identity provider does with the user of a person who has left.
func (d *drill) disableWithSCIM(ctx context.Context) {
	d.t.Helper()
	key := strings.TrimSpace(d.CLI("apikeys", "create", "--role", "admin", "--scope", "scim"))
	status, text := send(ctx, d.t, http.MethodGet, d.URL+"/scim/v2/Users?filter=userName+eq+%22ann@example.com%22", key, "")
	var found struct{ Resources []struct{ ID string } }
	if err := json.Unmarshal(text, &found); err != nil || status != http.StatusOK || len(found.Resources) != 1 {
		d.t.Fatalf("%d %s, %v", status, text, err)
	}
	status, text = send(ctx, d.t, http.MethodPatch, d.URL+"/scim/v2/Users/"+found.Resources[0].ID, key,
		`{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[{"op":"replace","path":"active","value":false}]}`)
	if status >= http.StatusBadRequest {
		d.t.Fatalf("%d %s", status, text)
	}
}

// at asks the provider to change an account.
func (p *providerTest) at(ctx context.Context, what string) {
	p.t.Helper()
	if status, text := send(ctx, p.t, http.MethodGet, p.program.Issuer(p.addr)+"/test/"+what, "", ""); status != http.StatusOK {
		p.t.Fatalf("%s: %d %s", what, status, text)
	}
}
