package acme

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const host = "mesh.example.org"

func TestRedirectStaysOnTheHost(t *testing.T) {
	i := New(Config{Host: host})
	for target, want := range map[string]string{
		"/a%2Fb?c=d":            "https://" + host + "/a%2Fb?c=d",
		"//evil.example/a":      "https://" + host + "//evil.example/a",
		"http://evil.example/a": "https://" + host + "/a",
		"http:@evil.example":    "https://" + host,
		"http:.evil.example":    "https://" + host,
		"*":                     "https://" + host + "/*",
	} {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + " HTTP/1.1\r\nHost: evil.example\r\n\r\n")))
		if err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		w := httptest.NewRecorder()
		i.ServeHTTP(w, r)
		if got := w.Header().Get("Location"); got != want {
			t.Errorf("%s leads to %q, want %q", target, got, want)
		}
	}
}

func TestStoredCertificateMustBeForTheHost(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := encodeKey(key)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotAfter: time.Now().Add(-time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})...)
	dir := t.TempDir()
	for name, ok := range map[string]bool{host: true, "other.example.org": false} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Config{Host: name, Dir: dir}).Load(); (err == nil) != ok {
			t.Errorf("certificate of %s, stored as that of %s: %v", host, name, err)
		}
	}
}
