//go:build !race

package deploytest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/doccheck"
)

// served returns the serial number of the certificate that is served on port 443.
func (o *outside) served(ctx context.Context, from *clienttest.Namespace, roots string) (*big.Int, error) {
	state, err := o.handshake(ctx, from, roots)
	if err != nil {
		return nil, err
	}
	return state.PeerCertificates[0].SerialNumber, nil
}

// awaitServed waits until port 443 serves a certificate that the roots verify and that differs from
// the previous one.
func (o *outside) awaitServed(ctx context.Context, from *clienttest.Namespace, roots string, before *big.Int) (now *big.Int) {
	o.t.Helper()
	eventually(o.t, patience, func() (err error) {
		now, err = o.served(ctx, from, roots)
		if err == nil && before != nil && now.Cmp(before) == 0 {
			err = errors.New("the old certificate is still served")
		}
		return err
	})
	return now
}

// load sends requests in two loops, one with a new connection per request and one with keep-alive,
// until stop is called or a request fails.
func (o *outside) load(ctx context.Context, from *clienttest.Namespace, roots string) (stop func() (int, error)) {
	o.t.Helper()
	text, err := os.ReadFile(roots)
	if err != nil {
		o.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	var requests errgroup.Group
	var answered atomic.Int64
	var enough atomic.Bool
	for _, each := range []bool{true, false} {
		client := &http.Client{Transport: &http.Transport{
			ForceAttemptHTTP2: true, DisableKeepAlives: each, TLSClientConfig: &tls.Config{RootCAs: pool},
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return from.DialContext(ctx, "tcp", netip.AddrPortFrom(o.Addr, 443).String())
			},
		}}
		requests.Go(func() error {
			for !enough.Load() {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, publicURL+"/health", nil)
				if err != nil {
					return err
				}
				answer, err := client.Do(req)
				if err != nil {
					return err
				}
				_, err = io.Copy(io.Discard, answer.Body)
				if answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK {
					return fmt.Errorf("%s, %w", answer.Status, err)
				}
				answered.Add(1)
			}
			return nil
		})
	}
	return func() (int, error) {
		enough.Store(true)
		return int(answered.Load()), requests.Wait()
	}
}

// mustBe checks the mode and the owner of a file.
func mustBe(t *testing.T, file string, mode os.FileMode, owner uint32) {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; info.Mode().Perm() != mode || uid != owner {
		t.Errorf("%s has mode %v and owner %d, not %v and %d", file, info.Mode().Perm(), uid, mode, owner)
	}
}

// proxyUser is the user ID that loads the certificate and its key.
const proxyUser = 10003

// replaceFile replaces one of the proxy's files.
func replaceFile(t *testing.T, s *Stack, name string, text []byte, mode os.FileMode) {
	t.Helper()
	s.WriteFile(name+".new", string(text), mode)
	name = filepath.Join(s.Dir, name)
	if err := errors.Join(os.Chown(name+".new", proxyUser, proxyUser), os.Rename(name+".new", name)); err != nil {
		t.Fatal(err)
	}
}

func mustBeCertificateFiles(t *testing.T, s *Stack) {
	t.Helper()
	mustBe(t, filepath.Join(s.Dir, "tls", "fullchain.pem"), 0o644, proxyUser)
	mustBe(t, filepath.Join(s.Dir, "tls", "privkey.pem"), 0o600, proxyUser)
}

func TestCertificateIsIssuedThroughTheProxyAndRenewedWithoutADroppedStream(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	place := o.host("authority")
	// These certificates always expire within 30 days, so every renewal check renews them.
	authority := newACME(t, place, 20*24*time.Hour)
	env := o.published()
	env["ACME_SERVER"], env["RENEW_INTERVAL"] = authority.Directory, "15"
	s := NewStack(t, env)
	trust, err := os.ReadFile(authority.Trust)
	if err := errors.Join(err, os.Mkdir(filepath.Join(s.Dir, "tls"), 0o755)); err != nil {
		t.Fatal(err)
	}
	s.WriteFile("tls/acme-ca.pem", string(trust), 0o644)
	wantNoCertificate(t, s, "--sqlite", "--domain", publicName, "--email", "admin@"+publicName)
	ctx := within(t, 3*patience)

	// The authority is not running yet: the proxy serves the certificate it has, and the log says
	// what to do.
	eventually(t, patience, func() error {
		if log := s.Logs("certbot"); !strings.Contains(log, "Next attempt in 15 s") {
			return fmt.Errorf("the log of certbot is %s", log)
		}
		return nil
	})
	if _, err := s.Run("docker-compose", "exec", "-T", "certbot", "test", "-e", "/tmp/good"); err == nil {
		t.Error("certbot calls itself good after a failure")
	}
	if _, err := o.served(ctx, place, authority.Trust); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("before there is a certificate, TLS says %v", err)
	}

	authority.start(t)
	roots := authority.roots(t)
	first := o.awaitServed(ctx, place, roots, nil)
	mustBeCertificateFiles(t, s)
	client := installAsDocumented(ctx, t, s, o, roots)
	before := settle(ctx, t, s, client)

	stop := o.load(ctx, place, roots)
	second := o.awaitServed(ctx, place, roots, first)
	o.awaitServed(ctx, place, roots, second)
	if n, err := stop(); err != nil || n < 100 {
		t.Errorf("%d requests were answered during the renewals, then: %v", n, err)
	}
	mustBeCertificateFiles(t, s)
	s.WaitHealthy("certbot")
	rename(ctx, t, s, client, "first", "renamed")
	mustCount(ctx, t, s, client, before, "after two renewals")
}

// installAsDocumented follows docs/install.md, in a stack whose authority is running, until two devices ping each other. It returns the
// first of them.
func installAsDocumented(ctx context.Context, t *testing.T, s *Stack, o *outside, roots string) *clienttest.Daemon {
	t.Helper()
	document := filepath.Join(root, "docs", "install.md")
	commands, err := doccheck.Commands(document, "Docker Compose")
	if err != nil || len(commands) != 2 || !strings.HasPrefix(commands[0], "git clone ") {
		t.Fatalf("the commands for Docker Compose are %q, %v", commands, err)
	}
	setup := strings.NewReplacer("fairlead/scripts/", "scripts/", "mesh.example.com", publicName, "example.com", publicName).Replace(commands[1])
	out, err := s.Run("sh", "-c", setup)
	if err != nil {
		t.Fatalf("%s: %v\n%s", setup, err, out)
	}
	wantText(t, out, "Console: https://localhost:", "ssh -L ", "Sign in with this API key")
	device, err := doccheck.Commands(document, "Join two devices")
	if err != nil || len(device) != 3 {
		t.Fatalf("the commands for devices are %q, %v", device, err)
	}
	// The script prints the second command of the document, with the values of this server.
	form := regexp.QuoteMeta(device[1])
	form = strings.NewReplacer(regexp.QuoteMeta("https://mesh.example.com"), `(\S+)`, regexp.QuoteMeta(`"$KEY"`), `(\S+)`).Replace(form)
	join := regexp.MustCompile(form).FindStringSubmatch(out)
	if len(join) != 3 {
		t.Fatalf("%q is missing in:\n%s", form, out)
	}
	first := o.join(ctx, o.host("first"), join[1], join[2], roots)
	o.join(ctx, o.host("second"), join[1], join[2], roots)
	ping(ctx, t, first, strings.TrimPrefix(device[2], "tailscale ping "), "via ")
	return first
}

// wantNoCertificate runs setup.sh while the authority does not respond. setup.sh starts everything,
// but neither it nor the check afterwards reports success.
func wantNoCertificate(t *testing.T, s *Stack, args ...string) {
	t.Helper()
	out, err := s.Run("scripts/setup.sh", args...)
	if err == nil || strings.Contains(out, "Fairlead is running") {
		t.Errorf("setup.sh reports success without a certificate: %v\n%s", err, out)
	}
	wantText(t, out, "no certificate was issued for", "resolves to this machine")
	wantText(t, checkFails(t, s), "[ERROR] the authority has not issued a certificate yet")
}

// testUselessCertificates checks that setup.sh refuses to install expired certificates and
// certificates for another name, because devices would reject them, and that the check finds such
// certificates if they were installed some other way.
func testUselessCertificates(t *testing.T, s *Stack, domain string) {
	s = s.In(t)
	good := pair{[]byte(s.ReadFile("tls/fullchain.pem")), []byte(s.ReadFile("tls/privkey.pem"))}
	install := func(p pair) {
		replaceFile(t, s, "tls/privkey.pem", p.key, 0o600)
		replaceFile(t, s, "tls/fullchain.pem", p.chain, 0o644)
	}
	yesterday := time.Now().Add(-24 * time.Hour)
	for fault, template := range map[string]*x509.Certificate{
		"is not for " + domain + ", but for DNS:other.example.test": {DNSNames: []string{"other.example.test"}},
		"has expired": {DNSNames: []string{domain}, NotBefore: yesterday.Add(-time.Hour), NotAfter: yesterday},
	} {
		made := sign(t, signer{}, template)
		p := pair{certPEM(made.cert), keyPEM(t, made.key)}
		s.WriteFile("useless.pem", string(p.chain), 0o644)
		s.WriteFile("useless.key", string(p.key), 0o600)
		if out, err := s.Run("scripts/setup.sh", "--cert", "useless.pem", "--key", "useless.key"); err == nil || !strings.Contains(out, "useless.pem "+fault) {
			t.Errorf("a certificate that %s was accepted: %v\n%s", fault, err, out)
		}
		install(p)
		wantText(t, checkFails(t, s), "[ERROR] the certificate "+fault)
	}
	install(good)
}

func TestRenewalIsLookedForEveryTwelveHours(t *testing.T) {
	s := NewStack(t, map[string]string{"DOMAIN": publicName, "COMPOSE_FILE": "deploy/compose/base.yaml:deploy/compose/prod.yaml"})
	var config struct {
		Services map[string]struct{ Environment map[string]string }
	}
	if err := yaml.Unmarshal([]byte(s.Compose("config")), &config); err != nil {
		t.Fatal(err)
	}
	every, err := time.ParseDuration(config.Services["certbot"].Environment["RENEW_INTERVAL"] + "s")
	if err != nil || every != 12*time.Hour {
		t.Errorf("certbot looks every %v, %v", every, err)
	}
}

func TestOwnCertificateIsLoadedWhenItsFilesAreReplaced(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	place := o.host("outside")
	a := newAuthority(t)
	s := o.startProduction(a.issue(t, publicName, ""))
	ctx := within(t, 2*patience)
	mustBeCertificateFiles(t, s)
	if s.Compose("ps", "-q", "certbot") != "" {
		t.Error("certbot runs beside a certificate of our own")
	}
	first := o.awaitServed(ctx, place, a.Root, nil)

	next := a.issue(t, publicName, "")
	replaceFile(t, s, "tls/privkey.pem", next.key, 0o600)
	eventually(t, patience, func() error {
		if log := s.Logs("proxy"); !strings.Contains(log, "key values mismatch") {
			return fmt.Errorf("the proxy does not say that the key belongs to another certificate: %s", log)
		}
		return nil
	})
	if now, err := o.served(ctx, place, a.Root); err != nil || now.Cmp(first) != 0 {
		t.Errorf("with files that do not belong together %v is served, %v, not %v", now, err, first)
	}
	replaceFile(t, s, "tls/fullchain.pem", next.chain, 0o644)
	o.awaitServed(ctx, place, a.Root, first)
}

func TestStateOfTheCertificateIsStapled(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	place := o.host("responder")
	a := newAuthority(t)
	own := a.issue(t, publicName, responderURL(place.Addr))
	a.respond(t, place)
	o.startProduction(own)
	ctx := within(t, 2*patience)
	// nginx queries the OCSP responder when the first client connects, but does not make that
	// client wait for the response.
	eventually(t, patience, func() error {
		cmd := place.Command(ctx, "openssl", "s_client", "-connect", o.Addr.String()+":443", "-servername", publicName,
			"-tls1_3", "-status", "-verify_return_error", "-CAfile", a.Root)
		out, err := cmd.CombinedOutput()
		if err == nil && !strings.Contains(string(out), "Cert Status: good") {
			err = errors.New("no good status is stapled")
		}
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		return err
	})
}
