//go:build !race

package movetest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
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
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

const (
	serverName    = "control.example"
	baseDomain    = "mesh.test"
	headscalePort = 8080
	fairleadPort  = 8081
	patience      = 3 * time.Minute // for what takes seconds unless the machine is busy
)

// eventually waits until try succeeds.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	waittest.Eventually(t, patience, 100*time.Millisecond, try)
}

// process is a program that runs on a host of the lab.
type process struct {
	t    *testing.T
	host *clienttest.Namespace
	port int // where it listens on loopback
	args []string
	env  []string
	cmd  *exec.Cmd
	log  waittest.Transcript
}

// start starts the program and returns when it listens.
func (p *process) start() {
	p.t.Helper()
	p.cmd = p.host.Command(context.Background(), p.args[0], p.args[1:]...)
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(p.stop)
	eventually(p.t, func() error {
		conn, err := p.host.DialContext(p.t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", p.port))
		if err != nil {
			return fmt.Errorf("%w\n%s", err, p.log.String())
		}
		return conn.Close()
	})
}

func (p *process) stop() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(30*time.Second, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait() // it was told to stop
	kill.Stop()
	p.cmd = nil
	if log := p.log.String(); p.t.Failed() {
		p.t.Logf("%s:\n%s", p.args[0], log[max(0, len(log)-8000):])
	}
}

// proxy is an nginx with TLS in front of the servers, on their host.
type proxy struct {
	process
	dir, authority string
	upstream       int          // the port to which it forwards
	client         *http.Client // trusts and reaches it
}

func startProxy(t *testing.T, host *clienttest.Namespace, upstream int) *proxy {
	t.Helper()
	dir := t.TempDir()
	p := &proxy{dir: dir, authority: filepath.Join(dir, "server.pem")}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(writeCertificate(t, dir))
	p.client = &http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return host.DialContext(ctx, "tcp", "127.0.0.1:443")
		},
	}}
	p.configure(t, upstream)
	p.process = process{t: t, host: host, port: 443, args: []string{"nginx", "-e", "stderr", "-c", filepath.Join(dir, "nginx.conf")}}
	p.start()
	return p
}

func (p *proxy) configure(t *testing.T, upstream int) {
	t.Helper()
	text, err := os.ReadFile("../e2e/testdata/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	changes := strings.NewReplacer("@DIR@", p.dir, "@NAME@", serverName, "@UPSTREAM@", fmt.Sprintf("127.0.0.1:%d", upstream))
	write(t, filepath.Join(p.dir, "nginx.conf"), changes.Replace(string(text)))
	p.upstream = upstream
}

// forward makes nginx forward to another server, as an administrator would: by a reload.
func (p *proxy) forward(t *testing.T, upstream int) {
	t.Helper()
	p.configure(t, upstream)
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// api sends a request to the API of whatever server the proxy forwards to.
func (p *proxy) api(ctx context.Context, method, path, apiKey string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, "https://"+serverName+path, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+apiKey)
	res, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %s %w", method, path, res.Status, text, err)
	}
	return json.Unmarshal(text, into)
}

// writeCertificate generates a key and a self-signed certificate, and returns the latter.
func writeCertificate(t *testing.T, dir string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{serverName}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
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
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	write(t, filepath.Join(dir, "server.pem"), string(text))
	write(t, filepath.Join(dir, "server.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	return text
}

// database is where a server stores its data: in a file of its directory, or in PostgreSQL if socket is set.
type database struct {
	socket, name, user string
	port               int
}

func (d database) yaml(dir string) string {
	if d.socket == "" {
		return fmt.Sprintf("database: {type: sqlite, sqlite: {path: %s/db.sqlite}}\n", dir)
	}
	return fmt.Sprintf("database: {type: postgres, postgres: {host: %s, port: %d, name: %s, user: %s}}\n", d.socket, d.port, d.name, d.user)
}

// fairleadConfig is the configuration of the server that takes over.
func fairleadConfig(dir, address string, db database, records string) string {
	return fmt.Sprintf(`server_url: https://%s
listen_addr: 127.0.0.1:%d
metrics_listen_addr: 127.0.0.1:9091
trusted_proxies: [127.0.0.1/32]
noise: {private_key_path: %[3]s/noise.key}
derp:
  server:
    enabled: true
    region_id: 999
    region_code: headscale
    region_name: Headscale Embedded DERP
    stun_listen_addr: 0.0.0.0:3478
    private_key_path: %[3]s/relay.key
    ipv4: %[4]s
dns: {magic_dns: true, base_domain: %[5]s, extra_records_path: %[6]q}
unix_socket: %[3]s/socket
`, serverName, fairleadPort, dir, address, baseDomain, records) + db.yaml(dir)
}

// output runs a program and returns what it prints on standard output.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, failed.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// shortDir returns a new directory. The path of a socket in it has at most 107 bytes.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
