package meshtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// Nginx is the reverse proxy of a deployment, with the configuration from the repository.
type Nginx struct {
	Service, Console string // addresses of its ports
	Certificate      string // file of the certificate, if it uses TLS
	dir              string
}

// NginxConfig says where nginx forwards requests. Deploy is the directory with the configuration,
// deploy/nginx.
type NginxConfig struct {
	Deploy          string
	Server, Console string // addresses
	TLS             bool   // as in production
}

// StartNginx starts nginx with the default limits. Only what is private to a container is changed in the
// configuration: ports, directories and the names of other containers.
func StartNginx(t testing.TB, c NginxConfig) *Nginx {
	t.Helper()
	n := &Nginx{dir: t.TempDir(), Service: porttest.Addr(t), Console: porttest.Addr(t)}
	mode, plain, secure := "mode-dev", n.Service, porttest.Addr(t)
	if c.TLS {
		mode, plain, secure = "mode-prod", porttest.Addr(t), n.Service
		n.Certificate, _ = WriteCertificate(t, filepath.Join(n.dir, "tls"))
	}
	changes := strings.NewReplacer(
		"/run/nginx", filepath.Join(n.dir, "run"), "/var/log/nginx", n.dir, "/dev/stdout", filepath.Join(n.dir, "out.log"),
		"fairlead:8080", c.Server, "console:3000", c.Console, "worker_processes auto", "worker_processes 1",
		"listen 80;", "listen "+porttest.Addr(t)+";", "listen 443 ", "listen "+secure+" ",
		"listen 3001", "listen "+n.Console, "listen 8080", "listen "+plain,
	)
	files, err := filepath.Glob(filepath.Join(c.Deploy, "*.conf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no configuration: %v", c.Deploy, err)
	}
	copies := map[string]string{mode + ".conf": "run/chosen/mode.conf", "rate-limit-on.conf": "run/chosen/rate-limit.conf", "admin-off.conf": "run/chosen/admin.conf", "api-off.conf": "run/chosen/api.conf"}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{filepath.Base(file), copies[filepath.Base(file)]} {
			if name == "" {
				continue
			}
			to := filepath.Join(n.dir, name)
			if err = os.MkdirAll(filepath.Dir(to), 0o755); err == nil {
				err = os.WriteFile(to, []byte(changes.Replace(string(text))), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(n.dir, "run", "chosen", "domain.conf"), []byte(`map "" $domain { default $host; }`), 0o644); err != nil {
		t.Fatal(err)
	}
	n.start(t)
	return n
}

func (n *Nginx) start(t testing.TB) {
	t.Helper()
	startProxy(t, n.Console, "nginx", "-e", "stderr", "-p", n.dir, "-c", filepath.Join(n.dir, "nginx.conf"))
}

// startProxy starts a proxy of a Debian package and waits until it listens.
func startProxy(t testing.TB, addr, name string, args ...string) {
	t.Helper()
	var log waittest.Transcript
	cmd := exec.CommandContext(context.Background(), name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v; install %s", err, name)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have exited already
		err := cmd.Wait()
		if status, known := cmd.ProcessState.Sys().(syscall.WaitStatus); err != nil && (!known || status.Signal() != syscall.SIGTERM) { // so HAProxy ends
			t.Errorf("%s: %v\n%s", name, err, log.String())
		}
	})
	waittest.Eventually(t, readyLimit, pollEvery, func() error {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			return fmt.Errorf("%w: %s", err, log.String())
		}
		return conn.Close()
	})
}

// Log returns the access log.
func (n *Nginx) Log() string {
	text, err := os.ReadFile(filepath.Join(n.dir, "access.log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// WriteCertificate writes a self-signed certificate for this host and its key, and returns their files.
func WriteCertificate(t testing.TB, dir string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "fullchain.pem"), filepath.Join(dir, "privkey.pem")
	for file, block := range map[string]pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(&block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}
