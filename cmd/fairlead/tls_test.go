package main_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// newCertificate writes a certificate for 127.0.0.1, which is its own
// authority, and its key.
func newCertificate(t *testing.T, dir string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
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

	newCertificate(t, filepath.Dir(certFile)) // takes the place of the other, without a restart
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
