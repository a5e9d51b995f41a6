//go:build !race

package deploytest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

// TestHighAvailability starts deploy/compose/ha.yaml and breaks it as docs/high-availability.md suggests. It checks that no
// acknowledged change is lost, that changes succeed soon after each failure, and that the devices reach each other.
func TestHighAvailability(t *testing.T) {
	if !*ha {
		t.Skip("this is make deploy-ha")
	}
	publish := "127.0.0.1:" + porttest.Port(t)
	s := NewStack(t, map[string]string{
		"COMPOSE_FILE":   "deploy/compose/ha.yaml",
		"HA_NETWORK":     fmt.Sprintf("10.%d.%d", 212+rand.IntN(40), rand.IntN(256)),
		"HA_PUBLISH":     publish,
		"HAPROXY_IMAGE":  "fairlead-test/haproxy",
		"POSTGRES_IMAGE": "fairlead-test/postgres-standby",
	})
	fairlead := func(args ...string) (string, error) {
		return s.Run("docker-compose", append([]string{"exec", "-T", "replica-2", "fairlead"}, args...)...)
	}
	ping := func() error {
		out, err := s.Run("docker-compose", "exec", "-T", "laptop", "tailscale", "ping", "--c=1", "--timeout=2s", "--until-direct=false", "website")
		if err != nil || !strings.Contains(out, "via DERP(ha)") {
			return fmt.Errorf("laptop does not reach website through a relay: %w\n%s", err, out)
		}
		return nil
	}
	healthy := func() error {
		out, err := fairlead("cluster", "status")
		if err != nil {
			return fmt.Errorf("cluster status: %w\n%s", err, out)
		}
		return nil
	}

	begin := time.Now()
	s.Up()
	eventually(t, patience, healthy)
	eventually(t, patience, ping)
	t.Logf("everything is up after %v", time.Since(begin).Round(time.Second))
	status, err := fairlead("cluster", "status")
	if err != nil {
		t.Fatal(status, err)
	}
	t.Log(status)
	wantText(t, status, "replica-1", "replica-2", "replica-3", "relay-1", "relay-2", "standby")

	key := strings.TrimSpace(s.Exec("replica-2", "fairlead", "apikeys", "create"))
	w := &haWriter{url: "https://mesh.ha.internal", key: key, client: haClient(t, s.Exec("balancer", "cat", "/secrets/ca/ca.crt"), publish)}
	w.mustWrite(t, 5*time.Second)

	s.Compose("kill", "replica-1")
	t.Logf("a replica is killed: changes work after %v", w.mustWrite(t, 15*time.Second))
	// The device may have been connected to this replica.
	t.Logf("a replica is killed: the devices reach each other after %v", took(t, 15*time.Second, ping))

	s.Compose("kill", "relay-1")
	t.Logf("a relay is killed: the devices reach each other after %v", took(t, 30*time.Second, ping))

	s.Compose("kill", "db1")
	if err := w.write(t.Context(), newIdempotencyKey()); err == nil {
		t.Error("a change is acknowledged without a primary")
	}
	if err := ping(); err != nil {
		t.Errorf("without a primary: %v", err)
	}
	s.Exec("db2", "psql", "--host=/run/postgresql", "--username=postgres", "--command=SELECT pg_promote()")
	t.Logf("the standby is promoted: changes work after %v", w.mustWrite(t, 30*time.Second))

	s.Compose("start", "replica-1", "relay-1")
	eventually(t, patience, func() error {
		out, _ := fairlead("cluster", "status") // its exit status says that there is no standby
		for _, part := range []string{"replica-1", "replica-2", "replica-3"} {
			if !strings.Contains(out, part) {
				return fmt.Errorf("%s is missing in:\n%s", part, out)
			}
		}
		return nil
	})
	t.Logf("everything but the primary is back: changes work after %v", w.mustWrite(t, 15*time.Second))
	w.check(t)
}

// took returns how long it takes until try succeeds.
func took(t *testing.T, limit time.Duration, try func() error) time.Duration {
	t.Helper()
	begin := time.Now()
	eventually(t, limit, try)
	return time.Since(begin).Round(time.Millisecond)
}

// haClient connects to the published port of the balancer as mesh.ha.internal, and trusts the deployment's own authority.
func haClient(t *testing.T, authority, publish string) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(authority)) {
		t.Fatalf("this is no certificate: %q", authority)
	}
	var d net.Dialer
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return d.DialContext(ctx, network, publish)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 5 * time.Second}
}

// haWriter creates users through the balancer, and remembers which of them were acknowledged.
type haWriter struct {
	url, key     string
	client       *http.Client
	acknowledged []string
}

func newIdempotencyKey() string { return fmt.Sprintf("u%016x", rand.Uint64()) }

// mustWrite repeats one change until it is acknowledged, and returns how long that takes.
func (w *haWriter) mustWrite(t *testing.T, limit time.Duration) time.Duration {
	t.Helper()
	name := newIdempotencyKey()
	return took(t, limit, func() error { return w.write(t.Context(), name) })
}

// write creates a user, with the name as the idempotency key.
func (w *haWriter) write(ctx context.Context, name string) error {
	body, err := json.Marshal(map[string]string{"name": name})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/api/v1/user", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+w.key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", name)
	answer, err := w.client.Do(r)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusCreated {
		return fmt.Errorf("%d: %s", answer.StatusCode, text)
	}
	w.acknowledged = append(w.acknowledged, name)
	return nil
}

// check fails if an acknowledged user does not exist. The replica that responds may not have the last change yet.
func (w *haWriter) check(t *testing.T) {
	t.Helper()
	eventually(t, 10*time.Second, func() error {
		a, err := fetch(t, w.client, http.MethodGet, w.url+"/api/v1/user", "Authorization", "Bearer "+w.key)
		if err != nil {
			return err
		}
		var list struct{ Users []struct{ Name string } }
		if err := json.Unmarshal([]byte(a.Text), &list); err != nil {
			return err
		}
		for _, name := range w.acknowledged {
			if !slices.ContainsFunc(list.Users, func(u struct{ Name string }) bool { return u.Name == name }) {
				return fmt.Errorf("the user %s was created and is lost", name)
			}
		}
		return nil
	})
	if len(w.acknowledged) < 4 {
		t.Errorf("only %d changes were acknowledged", len(w.acknowledged))
	}
}
