//go:build !race

package deploytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
)

// authority is a certificate authority: a root that clients trust, an intermediate that signs
// certificates, and a key below it that signs OCSP responses.
type authority struct {
	Root string // file name of the root certificate

	dir          string
	root, issuer signer
	issued       []*x509.Certificate
}

type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// pair is a certificate with its chain, and its private key, both as PEM.
type pair struct{ chain, key []byte }

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.root = sign(t, signer{}, &x509.Certificate{Subject: pkix.Name{CommonName: "test root"}, IsCA: true})
	a.issuer = sign(t, a.root, &x509.Certificate{Subject: pkix.Name{CommonName: "test issuer"}, IsCA: true})
	a.Root = a.write(t, "root.pem", certPEM(a.root.cert))
	a.write(t, "issuer.pem", certPEM(a.issuer.cert))
	responder := sign(t, a.issuer, &x509.Certificate{
		Subject: pkix.Name{CommonName: "test responder"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageOCSPSigning},
	})
	a.write(t, "responder.pem", certPEM(responder.cert))
	a.write(t, "responder.key", keyPEM(t, responder.key))
	return a
}

// issue creates a certificate for a name or an address. responder is the URL of its OCSP responder, or empty.
func (a *authority) issue(t *testing.T, name, responder string) pair {
	t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	if responder != "" {
		template.OCSPServer = []string{responder}
	}
	s := sign(t, a.issuer, template)
	a.issued = append(a.issued, s.cert)
	return pair{append(certPEM(s.cert), certPEM(a.issuer.cert)...), keyPEM(t, s.key)}
}

// sign generates a key and a certificate for it, signed by another key or self-signed.
func sign(t *testing.T, by signer, template *x509.Certificate) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	}
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if template.IsCA {
		template.KeyUsage |= x509.KeyUsageCertSign
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		t.Fatal(err)
	}
	if by.cert == nil {
		by = signer{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return signer{cert, key}
}

func certPEM(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
}

func keyPEM(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// write stores a file next to the others and returns its name.
func (a *authority) write(t *testing.T, name string, text []byte) string {
	t.Helper()
	name = filepath.Join(a.dir, name)
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const responderPort = 2560

func responderURL(at netip.Addr) string { return fmt.Sprintf("http://%s:%d", at, responderPort) }

// respond runs an OCSP responder on a host until the test ends. It reports every certificate issued
// so far as good.
func (a *authority) respond(t *testing.T, host *clienttest.Namespace) {
	t.Helper()
	var index []byte
	for _, c := range a.issued {
		index = fmt.Appendf(index, "V\t%s\t\t%X\tunknown\t/CN=%s\n", c.NotAfter.UTC().Format("060102150405Z"), c.SerialNumber.Bytes(), c.Subject.CommonName)
	}
	cmd := host.Command(t.Context(), "openssl", "ocsp", "-port", strconv.Itoa(responderPort), "-ndays", "1",
		"-index", a.write(t, "index.txt", index), "-CA", filepath.Join(a.dir, "issuer.pem"),
		"-rsigner", filepath.Join(a.dir, "responder.pem"), "-rkey", filepath.Join(a.dir, "responder.key"))
	startUntilEnd(t, cmd)
}
