package config

import (
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// writeCertificate writes a certificate for example.com, valid until 2084, and its key.
func writeCertificate(t *testing.T, keyMode os.FileMode) (certPath, keyPath string) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	pair := s.TLS.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certPath, keyPath = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for _, f := range []struct {
		path  string
		mode  os.FileMode
		block pem.Block
	}{
		{certPath, 0o644, pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}},
		{keyPath, keyMode, pem.Block{Type: "PRIVATE KEY", Bytes: der}},
	} {
		if err := os.WriteFile(f.path, pem.EncodeToMemory(&f.block), f.mode); err != nil {
			t.Fatal(err)
		}
	}
	return certPath, keyPath
}

func TestCheckReportsWhatTheServerWould(t *testing.T) {
	certPath, keyPath := writeCertificate(t, 0o640)
	_, openKey := writeCertificate(t, 0o644)
	readable := filepath.Join(t.TempDir(), "noise.key")
	if err := os.WriteFile(readable, nil, 0o640); err != nil {
		t.Fatal(err)
	}
	with := func(server, cert, key string) string {
		return "server_url: " + server + "\ntls_cert_path: " + cert + "\ntls_key_path: " + key + "\n"
	}
	const mesh = "https://example.com"
	for _, c := range []struct {
		name, text string
		problem    string
		warning    string // empty for none
		at         time.Duration
	}{
		{name: "nothing", text: with(mesh, certPath, keyPath)},
		{name: "no certificate", text: with(mesh, "/nope", "/nope"), problem: "cannot load certificate: check tls_cert_path and tls_key_path: open /nope: no such file"},
		{name: "another key", text: with(mesh, certPath, certPath), problem: "cannot load certificate: "},
		{name: "another name", text: with("https://mesh.test", certPath, keyPath), warning: "the certificate is not valid for mesh.test, the host of server_url"},
		{name: "expired", text: with(mesh, certPath, keyPath), warning: "the certificate expired at 2084-01-29T16:00:00Z: renew it", at: 90 * 365 * 24 * time.Hour},
		{name: "readable key", text: with(mesh, certPath, openKey), warning: "tls_key_path: other users can read the private key (mode 0644); run: chmod 0640 " + openKey},
		{name: "readable noise key", text: "server_url: " + mesh + "\nnoise: {private_key_path: " + readable + "}\n", warning: "noise.private_key_path: other users can read the private key (mode 0640); run: chmod 0600 " + readable},
		{name: "no relay", text: "server_url: " + mesh + "\nderp: {server: {enabled: false}}\n", warning: "derp.server.enabled: no relay configured: devices cannot connect"},
		{name: "relay map", text: "server_url: " + mesh + "\nderp: {server: {enabled: false}, urls: [https://example.com/derp]}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			waittest.Bubble(t, func(t *testing.T) {
				<-time.After(c.at) // the bubble's clock starts in the year 2000
				config, err := Load(file, nil)
				if err != nil {
					t.Fatal(err)
				}
				err = config.Check()
				if c.problem != "" {
					if err == nil || !strings.Contains(err.Error(), c.problem) {
						t.Errorf("got %v, want %s", err, c.problem)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if len(config.Warnings) > 1 || (len(config.Warnings) == 1) != (c.warning != "") || !strings.Contains(config.Report(), c.warning) {
					t.Errorf("got %q, want %q", config.Warnings, c.warning)
				}
			})
		})
	}
}
