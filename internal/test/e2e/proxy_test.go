//go:build !race

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	_ "embed"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

//go:embed testdata/nginx.conf
var nginxConf string

// proxy is an nginx that terminates TLS on a host of a lab.
type proxy struct {
	URL       string
	Authority string // file of its self-signed certificate

	t     *testing.T
	place *clienttest.Namespace
	conf  string
	cmd   *exec.Cmd
	log   strings.Builder
}

const proxyName = "control.example"

func startProxy(t *testing.T, place *clienttest.Namespace, upstream string) *proxy {
	t.Helper()
	if _, err := exec.LookPath("nginx"); err != nil {
		t.Fatalf("%v; install package nginx", err)
	}
	dir := t.TempDir()
	p := &proxy{
		URL: "https://" + proxyName, Authority: filepath.Join(dir, "server.pem"), t: t, place: place, conf: filepath.Join(dir, "nginx.conf"),
	}
	writeCertificate(t, dir)
	text := strings.NewReplacer("@DIR@", dir, "@NAME@", proxyName, "@UPSTREAM@", upstream).Replace(nginxConf)
	if err := os.WriteFile(p.conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("the log of nginx:\n%s", p.log.String())
		}
	})
	p.resume()
	return p
}

func (p *proxy) resume() {
	p.t.Helper()
	p.cmd = p.place.Command(context.Background(), "nginx", "-e", "stderr", "-c", p.conf)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	eventually(within(p.t, patience), p.t, func() error {
		conn, err := p.place.Dial("tcp", net.JoinHostPort(p.place.Addr.String(), "443"))
		if err == nil {
			conn.Close()
		}
		return err
	})
}

// stop stops nginx and closes all its connections.
func (p *proxy) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Error(err)
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Error(err)
	}
}

// writeCertificate generates a key and a self-signed certificate.
func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: proxyName}, DNSNames: []string{proxyName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]pem.Block{"server.pem": {Type: "CERTIFICATE", Bytes: cert}, "server.key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClientsComeBackAfterARestartOfTheProxy(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		ctx := within(t, 2*patience)
		l := newLab(t)
		l.serve(t, meshtest.Config{URL: "https://" + proxyName, Set: map[string]string{"trusted_proxies": l.server.Addr.String()}})
		p := startProxy(t, l.server, l.Addr)
		l.URL = p.URL
		for _, host := range l.hosts {
			cmd := host.Command(ctx, "sh", "-c", "echo "+l.server.Addr.String()+" "+proxyName+" >>/etc/hosts")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		l.joinBoth(ctx, version, "TS_DEBUG_USE_DERP_HTTP=0", "SSL_CERT_FILE="+p.Authority)
		l.BlockUDP(l.hosts[0], l.hosts[1])
		ping(ctx, t, l.daemons[0], "second", "via DERP(fairlead)")
		conn := l.echo(ctx, t)
		checkEcho(t, conn, someBytes("through the relay behind the proxy"))

		p.stop()
		p.resume()
		// Both have reconnected when a change reaches one of them and a ping the other.
		l.change(ctx, http.MethodPost, "second/rename/renamed", "")
		await(ctx, t, l.daemons[0], seesOnline("renamed"))
		await(ctx, t, l.daemons[1], seesOnline("first"))
		ping(ctx, t, l.daemons[0], "renamed", "via DERP(fairlead)")
		checkEcho(t, conn, someBytes("through the relay after the restart"))
	})
}
