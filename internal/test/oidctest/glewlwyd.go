//go:build identity

package oidctest

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// Glewlwyd is a provider from Debian. It keeps refreshing the tokens of a disabled person, and sends no email_verified. Its pages
// need a browser that runs scripts, so tests use the API behind them.
type Glewlwyd struct {
	Issuer string

	t     testing.TB
	api   string
	admin *Visitor
}

const glewlwydConfig = `port=%[1]s
bind_address="127.0.0.1"
external_url="http://127.0.0.1:%[1]s"
login_url="login.html"
api_prefix="api"
log_mode="console"
log_level="WARNING"
cookie_domain="127.0.0.1"
cookie_secure=0
session_expiration=3600
session_key="GSESSION"
admin_scope="g_admin"
profile_scope="g_profile"
user_module_path="/usr/lib/glewlwyd/user"
client_module_path="/usr/lib/glewlwyd/client"
user_auth_scheme_module_path="/usr/lib/glewlwyd/scheme"
plugin_module_path="/usr/lib/glewlwyd/plugin"
hash_algorithm="SHA512"
database = { type = "sqlite3"; path = "%[2]s/db"; };
`

// StartGlewlwyd starts glewlwyd at an address on loopback, with the person ann in the group staff. It runs until the test ends.
func StartGlewlwyd(ctx context.Context, t testing.TB, addr, callback string) *Glewlwyd {
	t.Helper()
	dir := t.TempDir()
	script, err := os.Open("/usr/share/doc/glewlwyd/database/init.sqlite3.sql.gz")
	if err != nil {
		t.Fatalf("%v: install the Debian packages glewlwyd and sqlite3", err)
	}
	defer script.Close()
	text, err := gzip.NewReader(script)
	if err != nil {
		t.Fatal(err)
	}
	fill := exec.CommandContext(ctx, "sqlite3", filepath.Join(dir, "db"))
	fill.Stdin = text
	if out, err := fill.CombinedOutput(); err != nil {
		t.Fatalf("sqlite3: %v\n%s", err, out)
	}
	_, port, _ := strings.Cut(addr, ":")
	config := filepath.Join(dir, "conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, glewlwydConfig, port, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	p := Program{Name: "glewlwyd", path: "/api/oidc", login: "%s"}
	cmd := exec.CommandContext(ctx, "glewlwyd", "--config-file="+config)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("glewlwyd says: %s", out.String())
		}
	})
	g := &Glewlwyd{Issuer: p.Issuer(addr), t: t, api: "http://" + addr + "/api", admin: p.Visitor(t, "admin")}
	waittest.Eventually(t, startLimit, pollEvery, func() error {
		return g.admin.sendJSON(ctx, http.MethodPost, g.api+"/auth/", map[string]any{"username": "admin", "password": "password"})
	})
	g.configure(ctx, callback)
	return g
}

func (g *Glewlwyd) configure(ctx context.Context, callback string) {
	g.t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		g.t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&k.PublicKey)
	if err != nil {
		g.t.Fatal(err)
	}
	encode := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	claim := func(name, property string) map[string]any {
		return map[string]any{"name": name, "user-property": property, "type": "string", "mandatory": true}
	}
	g.set(ctx, http.MethodPost, "/mod/plugin/", map[string]any{"module": "oidc", "name": "oidc", "display_name": "OIDC", "enabled": true, "parameters": map[string]any{
		"iss": g.Issuer, "jwt-type": "rsa", "jwt-key-size": "256", "key": encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(k)), "cert": encode("PUBLIC KEY", public),
		"access-token-duration": 3600, "refresh-token-duration": 86400, "code-duration": 600, "auth-type-code-enabled": true, "auth-type-refresh-enabled": true,
		"pkce-allowed": true, "jwks-show": true, "subject-type": "public", "email-claim": "mandatory", "allowed-scope": []string{"openid"},
		"claims":              []any{claim("groups", "groups"), claim("preferred_username", "username")},
		"session-cookie-name": "GOIDC", "session-cookie-expiration": 3600,
	}})
	g.set(ctx, http.MethodPut, "/mod/user/database", map[string]any{
		"module": "database", "name": "database", "display_name": "Users", "order_rank": 0, "readonly": false, "multiple_passwords": false,
		"parameters": map[string]any{"use-glewlwyd-connection": true, "data-format": map[string]any{"groups": map[string]any{"multiple": true, "read": true, "write": true}}},
	})
	g.set(ctx, http.MethodPut, "/mod/user/database/reset/", nil)
	g.set(ctx, http.MethodPost, "/user/", g.person(true))
	g.set(ctx, http.MethodPost, "/client/", map[string]any{
		"client_id": ClientID, "name": "Fairlead", "confidential": true, "password": ClientSecret, "enabled": true, "redirect_uri": []string{callback},
		"authorization_type": []string{"code", "refresh_token"}, "token_endpoint_auth_method": []string{"client_secret_basic", "client_secret_post"},
	})
}

func (g *Glewlwyd) person(enabled bool) map[string]any {
	return map[string]any{
		"username": "ann", "name": "Ann", "email": "ann@example.com", "password": Password, "enabled": enabled,
		"scope": []string{"openid"}, "groups": []string{"staff"},
	}
}

// Disable disables ann.
func (g *Glewlwyd) Disable(ctx context.Context) {
	g.t.Helper()
	g.set(ctx, http.MethodPut, "/user/ann", g.person(false))
}

func (g *Glewlwyd) set(ctx context.Context, method, path string, value any) {
	g.t.Helper()
	if err := g.admin.sendJSON(ctx, method, g.api+path, value); err != nil {
		g.t.Fatal(err)
	}
}

// SignIn lets ann sign in at glewlwyd.
func (g *Glewlwyd) SignIn(ctx context.Context) (*Visitor, error) {
	v := Program{login: "%s"}.Visitor(g.t, "ann")
	v.PauseAt = g.Issuer + "/auth"
	err := v.sendJSON(ctx, http.MethodPost, g.api+"/auth/", map[string]any{"username": "ann", "password": Password})
	if err == nil {
		err = v.sendJSON(ctx, http.MethodPut, g.api+"/auth/grant/"+ClientID, map[string]any{"scope": "openid"})
	}
	return v, err
}

// Continue does what glewlwyd's page does after the sign-in.
func (g *Glewlwyd) Continue(ctx context.Context, v *Visitor) error {
	v.PauseAt = ""
	return v.Open(ctx, v.At.String()+"&g_continue")
}

func (v *Visitor) sendJSON(ctx context.Context, method, address string, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := v.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		return fmt.Errorf("%s %s: %s %s", method, address, res.Status, text)
	}
	return nil
}
