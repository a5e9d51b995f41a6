package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/acme"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// writeCertificate writes a certificate with this serial number, and its key.
func writeCertificate(t *testing.T, dir string, serial int64, lifetime time.Duration) (certPath, keyPath string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: now, NotAfter: now.Add(lifetime)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPath, keyPath = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	replace(t, certPath, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
	replace(t, keyPath, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
	return certPath, keyPath
}

// replace replaces a file the way certificate renewal tools do.
func replace(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestCertificateIsReloadedWhenItsFilesChange(t *testing.T) {
	dir, log := t.TempDir(), &waittest.Transcript{}
	certPath, keyPath := writeCertificate(t, dir, 1, 90*24*time.Hour)
	c, err := openCertificate(certPath, keyPath, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	served := func(looks int, want int64, warnings int) {
		t.Helper()
		for range looks {
			c.look()
		}
		if got := servedSerial(t, c); got != want {
			t.Errorf("certificate %d is served, want %d", got, want)
		}
		if got := c.warnings(time.Now()); len(got) != warnings {
			t.Errorf("warnings: %q, want %d", got, warnings)
		}
	}
	served(3, 1, 0)
	if log.String() != "" {
		t.Errorf("nothing has changed: %s", log)
	}
	writeCertificate(t, dir, 2, 80*24*time.Hour)
	served(1, 2, 0)

	other, _ := writeCertificate(t, t.TempDir(), 3, 70*24*time.Hour)
	text, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, certPath, text) // its key has not been replaced yet
	served(1, 2, 0)
	if strings.Contains(log.String(), "ERROR") {
		t.Errorf("an error before the key could be replaced: %s", log)
	}
	served(3, 2, 1)
	if strings.Count(log.String(), "level=ERROR") != 1 || !strings.Contains(log.String(), "private key does not match public key") {
		t.Errorf("log: %s", log)
	}
	if err := os.Remove(keyPath); err != nil {
		t.Fatal(err)
	}
	served(2, 2, 1)
	writeCertificate(t, dir, 4, 10*24*time.Hour)
	served(1, 4, 0)
	if n := strings.Count(log.String(), "certificate reloaded"); n != 2 {
		t.Errorf("reloaded %d times: %s", n, log)
	}
	if days := time.Until(c.inUse().until).Hours() / 24; days < 9 || days > 10 {
		t.Errorf("it expires in %v days", days)
	}
}

// servedSerial returns the serial number of the certificate that a client receives.
func servedSerial(t *testing.T, c certificate) int64 {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	done := make(chan error, 1)
	go func() { done <- tls.Server(far, c.config()).HandshakeContext(t.Context()) }()
	client := tls.Client(near, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the test inspects the certificate itself
	if err := client.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	near.Close()
	<-done
	return client.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func TestCertificateThatExpiresSoonIsAWarning(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		lifetime, left time.Duration
		want           string
	}{
		{90 * day, 15 * day, ""},
		{90 * day, 13 * day, "expires at"},
		{90 * day, -day, "expired at"},
		{day, 7 * time.Hour, ""}, // renewed every 16 hours
		{day, 5 * time.Hour, "expires at"},
	} {
		certPath, keyPath := writeCertificate(t, t.TempDir(), 1, c.lifetime)
		cert, err := openCertificate(certPath, keyPath, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(cert.warnings(time.Now().Add(c.lifetime-c.left)), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%v of %v left: %q, want %q", c.left, c.lifetime, got, c.want)
		}
	}
}

func TestIssuedCertificateIsRenewedWhenAThirdOfItsLifetimeIsLeft(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Now()
	for _, test := range []struct {
		lifetime, left, since time.Duration // since the last attempt
		due                   bool
	}{
		{90 * day, 31 * day, day, false},
		{90 * day, 29 * day, day, true},
		{90 * day, 29 * day, 10 * time.Minute, false},
		{90 * day, 29 * day, 16 * time.Minute, true},
		{6 * day, 3 * day, day, false},
		{6 * day, day, day, true},
		{90 * day, -day, day, true},
	} {
		c := &issued{next: now.Add(obtainRetry - test.since)}
		until := now.Add(test.left)
		c.current.Store(&loaded{begins: until.Add(-test.lifetime), until: until})
		if c.due(now) != test.due {
			t.Errorf("%+v: due is %t", test, !test.due)
		}
	}
	if !(&issued{}).due(now) {
		t.Error("a missing certificate is not requested")
	}
}

func TestHealthSaysWhyThereIsNoCertificate(t *testing.T) {
	now := time.Now()
	c := &issued{issuer: acme.New(acme.Config{Host: "mesh.example.org"})}
	want := func(text string) {
		t.Helper()
		if got := strings.Join(c.warnings(now), "\n"); !strings.HasPrefix(got, text) || (text == "") != (got == "") {
			t.Errorf("got %q, want %q", got, text)
		}
	}
	want("waiting for a TLS certificate for mesh.example.org")
	reason := "port 80 is closed"
	c.failed.Store(&reason)
	want("no TLS certificate for mesh.example.org: port 80 is closed")
	c.current.Store(&loaded{begins: now.Add(-80 * 24 * time.Hour), until: now.Add(10 * 24 * time.Hour)})
	want("the TLS certificate expires at " + now.Add(10*24*time.Hour).UTC().Format(time.RFC3339) + " and was not renewed; see the server log")
	c.current.Store(&loaded{begins: now, until: now.Add(90 * 24 * time.Hour)})
	want("")
}

// A clock that is wrong, or an issuer that expires soon, must not use up the certificates that an authority issues in a week.
func TestNewCertificateIsNotRenewedAtOnce(t *testing.T) {
	for lifetime, pause := range map[time.Duration]time.Duration{90 * 24 * time.Hour: 3 * 24 * time.Hour, time.Hour: 15 * time.Minute} {
		certPath, keyPath := writeCertificate(t, t.TempDir(), 1, lifetime)
		pair, err := tls.LoadX509KeyPair(certPath, keyPath)
		if err != nil {
			t.Fatal(err)
		}
		c := newIssued(acme.New(acme.Config{Dir: t.TempDir(), Host: "mesh.example.org"}), slog.New(slog.DiscardHandler))
		now := pair.Leaf.NotAfter
		if !c.due(now) {
			t.Error("a missing certificate is not requested")
		}
		if err := c.accept(&pair, now); err != nil {
			t.Fatal(err)
		}
		if early, late := c.due(now.Add(pause-time.Second)), c.due(now.Add(pause)); early || !late {
			t.Errorf("lifetime %v: due before %v is %v, then %v", lifetime, pause, early, late)
		}
	}
}
