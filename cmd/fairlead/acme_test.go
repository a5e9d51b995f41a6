package main_test

import (
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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pebble is a small ACME certificate authority made for tests, and challtestsrv its DNS server.
const (
	pebble       = "github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.1"
	challtestsrv = "github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv@v2.10.1"
)

const acmeHost = "mesh.example.org"

// authority is a running certificate authority. It has a loopback address of its own, so that the server under test can
// have fixed ports on it.
type authority struct {
	ip, directory, trust string
}

// newAuthority starts an authority that checks names on the ports 8080 and 8443.
func newAuthority(t *testing.T) authority {
	t.Helper()
	dir := t.TempDir()
	for _, module := range []string{pebble, challtestsrv} {
		install := exec.CommandContext(t.Context(), "go", "install", module)
		install.Dir = dir
		install.Env = append(os.Environ(), "GOBIN="+dir, "CGO_ENABLED=0", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod -trimpath -buildvcs=false", "GOWORK=off")
		if out, err := install.CombinedOutput(); err != nil {
			t.Fatalf("go install %s: %v\n%s", module, err, out)
		}
	}
	ip := net.IPv4(127, byte(1+rand.IntN(250)), byte(rand.IntN(250)), byte(1+rand.IntN(250)))
	a := authority{ip: ip.String(), directory: fmt.Sprintf("https://%s:14000/dir", ip)}
	cert, key := newCertificateFor(t, dir, ip)
	a.trust = cert
	conf, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": a.ip + ":14000", "managementListenAddress": a.ip + ":15000", "httpPort": 8080, "tlsPort": 8443,
		"certificate": cert, "privateKey": key,
		"profiles": map[string]any{"default": map[string]any{"description": "default", "validityPeriod": 90 * 24 * 3600}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	confFile := filepath.Join(dir, "pebble.json")
	if err := os.WriteFile(confFile, conf, 0o600); err != nil {
		t.Fatal(err)
	}
	dns := a.ip + ":8053"
	inBackground(t, filepath.Join(dir, "pebble-challtestsrv"), "-dnsserver", dns, "-defaultIPv4", a.ip, "-defaultIPv6", "",
		"-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "", "-management", "")
	inBackground(t, filepath.Join(dir, "pebble"), "-config", confFile, "-dnsserver", dns)
	eventually(t, func() error {
		_, err := a.get(t, a.directory)
		return err
	})
	return a
}

func inBackground(t *testing.T, program string, args ...string) {
	t.Helper()
	out := &transcript{}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %s", filepath.Base(program), out)
		}
	})
}

func (a authority) get(t *testing.T, url string) ([]byte, error) {
	t.Helper()
	return getTrusting(t, a.trust, url, "")
}

// getTrusting gets a URL from the server at addr, or from the URL's host, and trusts the certificates in a file.
func getTrusting(t *testing.T, trust, url, addr string) ([]byte, error) {
	t.Helper()
	text, err := os.ReadFile(trust)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
	if addr != "" {
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	}
	client := http.Client{Timeout: patience, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if to := resp.Header.Get("Location"); to != "" {
		return []byte(to), nil
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	return io.ReadAll(resp.Body)
}

// logged returns an error unless the log has this message.
func (p *process) logged(message string) error {
	for _, r := range p.log.records() {
		if r["msg"] == message {
			return nil
		}
	}
	return fmt.Errorf("%q is not in the log", message)
}

func TestCertificateIsIssuedByAnAuthority(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	root, err := a.get(t, fmt.Sprintf("https://%s:15000/roots/0", a.ip))
	if err != nil {
		t.Fatal(err)
	}
	roots := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(roots, root, 0o600); err != nil {
		t.Fatal(err)
	}
	trusting := func(c *exec.Cmd) { c.Env = append(c.Env, "SSL_CERT_FILE="+a.trust) }
	for _, challenge := range []string{"HTTP-01", "TLS-ALPN-01"} {
		t.Run(challenge, func(t *testing.T) {
			cache := filepath.Join(t.TempDir(), "acme")
			s := onSQLite(t).with("server_url", "https://"+acmeHost, "listen_addr", a.ip+":8443", "acme_url", a.directory,
				"tls_letsencrypt_hostname", acmeHost, "tls_letsencrypt_challenge_type", challenge, "tls_letsencrypt_cache_dir", cache,
				"tls_letsencrypt_listen", a.ip+":8080")
			p := start(t, s, trusting, "serve")
			p.awaitReady(t)
			eventually(t, func() error { return p.logged("certificate issued") })
			if _, err := getTrusting(t, roots, "https://"+acmeHost+"/health", p.api); err != nil {
				t.Error(err)
			}
			files, err := os.ReadDir(cache)
			if err != nil || len(files) != 2 {
				t.Errorf("the cache contains %v, %v", files, err)
			}
			for _, f := range files {
				if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
				}
			}
			to, err := getTrusting(t, roots, "http://evil.example/a?b", a.ip+":8080")
			switch {
			case challenge == "HTTP-01" && (err != nil || string(to) != "https://"+acmeHost+"/a?b"):
				t.Errorf("port 80 redirects to %s, %v", to, err)
			case challenge != "HTTP-01" && err == nil:
				t.Error("port 80 is open")
			}
			p.stop(t)

			again := start(t, s, trusting, "serve")
			again.awaitReady(t)
			if _, err := getTrusting(t, roots, "https://"+acmeHost+"/health", again.api); err != nil {
				t.Error(err)
			}
			if strings.Contains(again.log.String(), "requesting a certificate") {
				t.Error("a restart requests another certificate")
			}
			again.stop(t)
		})
	}
	// The file cannot be replaced, as if the disk were full. Authorities issue only a few certificates for one name.
	t.Run("not stored", func(t *testing.T) {
		cache := t.TempDir()
		if err := os.MkdirAll(filepath.Join(cache, acmeHost, "directory"), 0o700); err != nil {
			t.Fatal(err)
		}
		p := start(t, onSQLite(t).with("server_url", "https://"+acmeHost, "listen_addr", a.ip+":8443", "acme_url", a.directory,
			"tls_letsencrypt_hostname", acmeHost, "tls_letsencrypt_challenge_type", "TLS-ALPN-01", "tls_letsencrypt_cache_dir", cache), trusting, "serve")
		p.awaitReady(t)
		eventually(t, func() error { return p.logged("certificate issued") })
		if err := p.logged("certificate not stored, the next start will request another"); err != nil {
			t.Error(err)
		}
		if _, err := getTrusting(t, roots, "https://"+acmeHost+"/health", p.api); err != nil {
			t.Error(err)
		}
		p.stop(t)
	})
}

// A server must start, and say what is wrong, while the authority cannot reach it.
func TestServerStartsWithoutItsCertificate(t *testing.T) {
	t.Parallel()
	p := serve(t, onSQLite(t).with("server_url", "https://"+acmeHost, "acme_url", "https://127.0.0.1:1/directory",
		"tls_letsencrypt_hostname", acmeHost, "tls_letsencrypt_challenge_type", "TLS-ALPN-01", "tls_letsencrypt_cache_dir", t.TempDir()))
	eventually(t, func() error { return p.logged("no certificate was issued") })
	health := start(t, p.settings, nil, "health")
	health.status(t, patience)
	if want := "no TLS certificate for " + acmeHost + ": cannot register with the certificate authority"; !strings.Contains(health.out.String(), want) {
		t.Errorf("fairlead health prints %s, want %q", health.out, want)
	}
	begin := time.Now()
	p.stop(t)
	if took := time.Since(begin); took > patience/2 {
		t.Errorf("it took %v to stop", took)
	}
}
