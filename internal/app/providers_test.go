package app_test

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
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/app"
	"github.com/fairlead-mesh/fairlead/internal/config"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/test/oidctest"
)

func providerEnv(i *oidctest.Issuer) []string {
	return []string{
		"FAIRLEAD_OIDC_ISSUER=" + i.URL, "FAIRLEAD_OIDC_CLIENT_ID=" + oidctest.ClientID, "FAIRLEAD_OIDC_CLIENT_SECRET=" + oidctest.ClientSecret,
		"FAIRLEAD_OIDC_NAME=Example ID", "FAIRLEAD_LOG_LEVEL=trace",
	}
}

func TestServerStartsWithoutItsProviderAndFindsItLater(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{Down: true})
	s := run(t, settings(t, providerEnv(i)...))
	s.warns(t, "identity", "identity provider Example ID cannot be reached: nobody can sign in with it. Devices that have joined are not affected.")
	if status, body := fetch(t, "tcp", s.API, "/health"); status != http.StatusOK {
		t.Errorf("health: %d %s", status, body)
	}
	eventually(t, func() error {
		if !strings.Contains(s.log.String(), "identity provider unreachable") {
			return errors.New("the log does not say why")
		}
		return nil
	})
	i.Behave(func(b *oidctest.Behaviour) { b.Down = false })
	eventually(t, func() error {
		if _, body := fetch(t, "tcp", s.API, "/health"); strings.Contains(body, "identity") {
			return errors.New(body)
		}
		return nil
	})
	s.stop(t)
	if log := s.log.String(); strings.Contains(log, oidctest.ClientSecret) {
		t.Errorf("the log shows the secret:\n%s", log)
	}
}

func TestServerDoesNotStartWithoutTheClientSecret(t *testing.T) {
	c, err := config.Load("/dev/null", settings(t, "FAIRLEAD_OIDC_ISSUER=https://id.example", "FAIRLEAD_OIDC_CLIENT_ID=mesh", "FAIRLEAD_OIDC_CLIENT_SECRET_PATH=/nowhere"))
	if err != nil {
		t.Fatal(err)
	}
	if err := app.Run(t.Context(), app.Options{Config: c}); err == nil || !strings.HasPrefix(err.Error(), "cannot read the client secret of https://id.example from client_secret_path /nowhere") {
		t.Errorf("got %v", err)
	}
}

// A load balancer may send every request of a sign-in to another replica.
func TestSignInMovesBetweenReplicas(t *testing.T) {
	i := oidctest.Start(t, oidctest.Behaviour{PKCE: true, Claims: map[string]any{"email": "ann@example.com", "email_verified": true, "preferred_username": "ann"}})
	db := pg.Database(t)
	env := func() []string { return settings(t, append(postgres(db), providerEnv(i)...)...) }
	run(t, env()).stop(t)
	pg.Exec(t, db, "DELETE FROM settings WHERE key = 'secret/server'") // as after an upgrade: links were sealed with the Noise key then
	replicas := []*service{run(t, env()), run(t, env())}
	for _, s := range replicas {
		eventually(t, func() error {
			if _, body := fetch(t, "tcp", s.API, "/health"); strings.Contains(body, "identity provider") {
				return errors.New(body)
			}
			return nil
		})
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	turn := 0
	browser := http.Client{Jar: jar, Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == "127.0.0.1:80" {
				addr = replicas[turn%2].API
				turn++
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}}
	earlier := identity.NewServerSecrets(identity.ServerSecret{Number: 1, Value: noiseKey(t)})
	link := "http://127.0.0.1/auth/" + identity.NewLoginSealer(earlier).SealLogin(identity.Login{
		MachineKey: key.NewMachine().Public(), NodeKey: key.NewNode().Public(), Hostname: "laptop", OS: "linux", IssuedAt: mesh.TimeOf(time.Now()),
	})
	page, at := visit(t, &browser, link, nil)
	csrf := regexp.MustCompile(`name="csrf" value="([A-Z0-9]+)"`).FindStringSubmatch(page)
	if csrf == nil {
		t.Fatal(page)
	}
	page, _ = visit(t, &browser, at, url.Values{"csrf": {csrf[1]}})
	if !strings.Contains(page, "This device was approved") || turn < 6 {
		t.Errorf("after %d requests: %s", turn, page)
	}
	eventually(t, func() error {
		for _, s := range replicas {
			if _, body := fetch(t, "unix", s.Socket, "/api/v1/user"); !strings.Contains(body, i.URL+"/1") {
				return fmt.Errorf("%s", body)
			}
		}
		return nil
	})
}

// noiseKey returns the text of the key of all replicas of a test.
func noiseKey(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(t.TempDir()), "noise.key"))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(text)
}

// visit follows redirects and returns the last page.
func visit(t *testing.T, browser *http.Client, address string, form url.Values) (page, at string) {
	t.Helper()
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
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
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), res.Request.URL.String()
}
