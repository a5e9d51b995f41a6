package main_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// newCertificate writes a self-signed certificate for 127.0.0.1 and its key.
func newCertificate(t *testing.T, dir string) (certFile, keyFile string) {
	t.Helper()
	return newCertificateFor(t, dir, net.IPv4(127, 0, 0, 1))
}

func newCertificateFor(t *testing.T, dir string, ip net.IP) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{ip}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

func TestTLSIsModernOnly(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	certFile, keyFile := newCertificate(t, filepath.Dir(s["unix_socket"]))
	p := serve(t, s.with("tls_cert_path", certFile, "tls_key_path", keyFile))
	authority, err := os.ReadFile(certFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	ask := func(newest uint16) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+p.api+"/health", nil)
		if err != nil {
			t.Fatal(err)
		}
		client := http.Client{Timeout: patience, Transport: &http.Transport{
			ForceAttemptHTTP2: true, DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, MaxVersion: newest},
		}}
		return client.Do(req)
	}
	resp, err := ask(tls.VersionTLS13)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || resp.ProtoMajor != 2 {
		t.Errorf("got %s over %s, want 200 over HTTP/2", resp.Status, resp.Proto)
	}
	if resp, err := ask(tls.VersionTLS12); err == nil {
		resp.Body.Close()
		t.Error("TLS 1.2 is accepted")
	}

	health := []string{"health", "--server", "https://" + p.api}
	trusting := start(t, nil, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+certFile) }, health...)
	if status := trusting.status(t, patience); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if r := command(t, nil, health...); r.status != 1 {
		t.Errorf("a stranger's certificate: exit status %d", r.status)
	}

	newCertificate(t, filepath.Dir(certFile)) // replaces the first certificate without a restart
	if authority, err = os.ReadFile(certFile); err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	eventually(t, func() error {
		resp, err := ask(tls.VersionTLS13)
		if err == nil {
			resp.Body.Close()
		}
		return err
	})
}

// TestRenewedCertificateDropsNoStream replaces the certificate twice while an event stream
// is open and requests are made, both on persistent and on new connections.
func TestRenewedCertificateDropsNoStream(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	dir := filepath.Dir(s["unix_socket"])
	certFile, keyFile := newCertificate(t, dir)
	p := serve(t, s.with("tls_cert_path", certFile, "tls_key_path", keyFile))
	key := newKey(t, s)
	client := func(each bool) *http.Client {
		return &http.Client{Transport: &http.Transport{
			ForceAttemptHTTP2: true, DisableKeepAlives: each, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // any certificate
		}}
	}
	get := func(ctx context.Context, c *http.Client, path string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+p.api+path, nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+key)
		return c.Do(req)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	stream, err := get(ctx, client(false), "/api/v1/events")
	if err != nil || stream.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", stream, err)
	}
	defer stream.Body.Close()

	var load errgroup.Group
	var answers atomic.Int64
	var enough atomic.Bool
	for _, c := range []*http.Client{client(false), client(true)} {
		load.Go(func() error {
			for !enough.Load() {
				resp, err := get(ctx, c, "/api/v1/node")
				if err != nil {
					return err
				}
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					return errors.New(resp.Status)
				}
				answers.Add(1)
			}
			return nil
		})
	}
	for range 2 {
		newCertificate(t, dir)
		want, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error {
			resp, err := get(ctx, client(true), "/health")
			if err != nil {
				return err
			}
			resp.Body.Close()
			if !bytes.Equal(resp.TLS.PeerCertificates[0].Raw, want.Certificate[0]) {
				return errors.New("the old certificate is still served")
			}
			return nil
		})
	}
	enough.Store(true)
	if err := load.Wait(); err != nil {
		t.Errorf("a request failed: %v", err)
	}
	if n := answers.Load(); n < 20 {
		t.Errorf("only %d requests were answered", n)
	}
	mustCommand(t, s, "users", "create", "alice")
	mustRead(t, stream.Body, "alice")
}

// mustRead reads lines until one contains a text.
func mustRead(t *testing.T, stream io.Reader, text string) {
	t.Helper()
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return
		}
	}
	t.Errorf("the stream ended: %v", lines.Err())
}
