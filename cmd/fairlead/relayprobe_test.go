package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

// proxied serves a relay with a certificate, behind a proxy that removes some upgrades, and returns its URL.
func proxied(t *testing.T, certFile, keyFile, relay string, removes func(upgrade string) bool) string {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: relay})
	l := listen(t, "tcp", "127.0.0.1:0")
	server := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if removes(strings.ToLower(r.Header.Get("Upgrade"))) {
			r.Header.Del("Upgrade")
			r.Header.Del("Connection")
		}
		proxy.ServeHTTP(w, r)
	})}
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.ServeTLS(l, certFile, keyFile) }() // ends when the test closes it
	return "https://" + l.Addr().String()
}

// fails returns an error unless a relay has been probed and has failed exactly these checks.
func fails(t *testing.T, p *process, name, want string) error {
	t.Helper()
	var got struct {
		Relay struct {
			Probe *struct {
				Reachable    bool
				Milliseconds *float64
				Checks       []struct{ Name, Problem string }
			}
		}
	}
	if err := json.Unmarshal([]byte(p.client("").must(t, 200, "GET", "/api/v1/relay/"+name, "")), &got); err != nil {
		return err
	}
	if got.Relay.Probe == nil {
		return errors.New(name + " was not probed")
	}
	var failed []string
	for _, c := range got.Relay.Probe.Checks {
		if c.Problem != "" {
			failed = append(failed, c.Name)
		}
	}
	slices.Sort(failed)
	if probe := got.Relay.Probe; strings.Join(failed, ",") != want || probe.Reachable != (want == "") || probe.Milliseconds == nil {
		return fmt.Errorf("%s: %+v", name, *probe)
	}
	return nil
}

func TestServerSaysWhichChecksARelayFails(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	s["listen_addr"] = porttest.Addr(t)
	s["server_url"] = "http://" + s["listen_addr"]
	certFile, keyFile := newCertificate(t, t.TempDir())
	otherCert, otherKey := newCertificate(t, t.TempDir())
	p := start(t, s, func(c *exec.Cmd) { c.Env = append(c.Env, "SSL_CERT_FILE="+certFile) }, "serve")
	p.awaitReady(t)

	type probed struct {
		addr   string // of its listener
		url    string
		args   []string
		failed string
	}
	relays := map[string]probed{}
	add := func(name, failed string, reach func(addr string) string, args ...string) {
		addr := porttest.Addr(t)
		relays[name] = probed{addr, reach(addr), args, failed}
	}
	direct := func(addr string) string { return "https://" + addr }
	trusted := []string{"--tls-cert", certFile, "--tls-key", keyFile}
	add("good", "", direct, trusted...)
	add("no-stun", "stun", direct, append(trusted, "--stun-port", porttest.Port(t))...)
	add("untrusted", "https", direct, "--tls-cert", otherCert, "--tls-key", otherKey)
	add("no-tls", "https", direct)
	add("no-websocket", "websocket", func(addr string) string {
		return proxied(t, certFile, keyFile, addr, func(upgrade string) bool { return upgrade == "websocket" })
	})
	add("no-upgrade", "derp,websocket", func(addr string) string {
		return proxied(t, certFile, keyFile, addr, func(string) bool { return true })
	})
	for name, r := range relays {
		join := strings.TrimSpace(mustCommand(t, s, "relays", "create", name, "--region", name))
		start(t, s, nil, append([]string{
			"relay", "--join", join, "--server", s["server_url"], "--url", r.url, "--listen", r.addr, "--stun-listen", porttest.Addr(t),
			"--state-dir", filepath.Join(t.TempDir(), "state"),
		}, r.args...)...)
	}
	for name, want := range relays {
		eventually(t, func() error { return fails(t, p, name, want.failed) })
	}
	says(t, mustCommand(t, s, "relays", "list"), "yes (", "no (stun)", "no (https)")
	says(t, mustCommand(t, s, "relays", "show", "no-upgrade"), "no (derp, websocket)", "let the proxy in front of the relay pass on the Upgrade header")
	says(t, mustCommand(t, s, "relays", "show", "untrusted"), "does not accept the certificate")
	says(t, mustCommand(t, s, "relays", "show", "no-tls"), "does not speak TLS")

	eventually(t, func() error {
		_, health, err := p.client("").do("GET", "/health", "")
		if err == nil && strings.Count(health, "fails the checks") != 5 {
			err = errors.New(health)
		}
		return err
	})
	eventually(t, func() error { return p.logged("relay fails checks") })
	status := command(t, s, "cluster", "status")
	says(t, status.stdout+status.stderr, "relay no-stun fails the checks stun")
	metrics := func(wanted ...string) error {
		_, text, err := (&client{base: "http://" + p.metrics}).do("GET", "/metrics", "")
		for _, line := range wanted {
			if err == nil && !strings.Contains(text, "\n"+line) {
				err = fmt.Errorf("no %s in %s", line, text)
			}
		}
		return err
	}
	eventually(t, func() error {
		return metrics(`mesh_relays_unreachable 5`, `mesh_relay_check_passed{check="stun",relay="no-stun"} 0`, `mesh_relay_check_passed{check="stun",relay="good"} 1`, `mesh_relay_latency_seconds{relay="good"} 0.`)
	})
	// A drained relay is no problem, and a deleted one has no metrics.
	mustCommand(t, s, "relays", "drain", "no-stun")
	mustCommand(t, s, "relays", "delete", "untrusted", "--force")
	eventually(t, func() error {
		if metrics(`mesh_relay_check_passed{check="https",relay="untrusted"}`) == nil {
			return errors.New("a deleted relay has metrics")
		}
		return metrics(`mesh_relays_unreachable 3`)
	})
}
