//go:build !race

package deploytest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
)

// The world outside knows a deployment by this name.
const (
	publicName = "fairlead.example"
	publicURL  = "https://" + publicName + ":443"
)

// outside is the world that reaches a deployment by its published ports and by
// its name, over a network that leads nowhere else.
type outside struct {
	*clienttest.Lab
	Addr netip.Addr // of the deployment

	t *testing.T
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	lab := clienttest.NewLab(t)
	return &outside{Lab: lab, Addr: lab.PlugIn(), t: t}
}

// host adds a host that knows the deployment by its name.
func (o *outside) host(name string) *clienttest.Namespace {
	o.t.Helper()
	n := o.Add(name)
	entry := fmt.Sprintf("echo %s %s >>/etc/hosts", o.Addr, publicName)
	if out, err := n.Command(o.t.Context(), "sh", "-c", entry).CombinedOutput(); err != nil {
		o.t.Fatalf("%v: %s", err, out)
	}
	return n
}

// handshake opens a TLS connection to port 443 as a client that trusts a file of
// roots does, and returns what it agreed on.
func (o *outside) handshake(ctx context.Context, from *clienttest.Namespace, roots string) (tls.ConnectionState, error) {
	text, err := os.ReadFile(roots)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	raw, err := from.DialContext(ctx, "tcp", netip.AddrPortFrom(o.Addr, 443).String())
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer raw.Close()
	conn := tls.Client(raw, &tls.Config{ServerName: publicName, RootCAs: pool})
	err = conn.HandshakeContext(ctx)
	return conn.ConnectionState(), err
}

// join lets a new client on a host join the mesh at a URL.
func (o *outside) join(ctx context.Context, host *clienttest.Namespace, url, key, roots string) *clienttest.Daemon {
	o.t.Helper()
	d := clienttest.Start(o.t, clienttest.Options{Namespace: host, Env: trusting(roots)})
	if err := d.Up(ctx, url, key, "--hostname="+host.Name); err != nil {
		o.t.Fatal(err)
	}
	return d
}

// trusting is the environment of a client that trusts the roots and no others.
func trusting(roots string) []string {
	return []string{"TS_DEBUG_USE_DERP_HTTP=0", "SSL_CERT_FILE=" + roots, "SSL_CERT_DIR=/nonexistent"}
}

// ping lets a client reach another by its name, over a path that the output
// names by a text such as "via DERP".
func ping(ctx context.Context, t *testing.T, d *clienttest.Daemon, target, path string) {
	t.Helper()
	eventually(t, patience, func() error {
		stdout, stderr, _ := d.CLI(ctx, "ping", "--until-direct=false", "--c=1", "--timeout=2s", target)
		if !strings.Contains(stdout, "pong from "+target) || !strings.Contains(stdout, path) {
			return fmt.Errorf("pinging %s %s: %s%s", target, path, stdout, stderr)
		}
		return nil
	})
}

// startProduction starts a deployment in production mode, published to the world
// outside, with a certificate of its own.
func (o *outside) startProduction(own pair) *Stack {
	o.t.Helper()
	s := NewStack(o.t, o.published())
	s.WriteFile("own.pem", string(own.chain), 0o644)
	s.WriteFile("own.key", string(own.key), 0o600)
	s.Setup("--sqlite", "--domain", publicName, "--cert", "own.pem", "--key", "own.key")
	return s
}

// published are settings by which the proxy listens where the world expects it.
func (o *outside) published() map[string]string {
	return map[string]string{"PROXY_HTTP_PUBLISH": o.Addr.String() + ":80", "PROXY_HTTPS_PUBLISH": o.Addr.String() + ":443"}
}

// joinKey makes a pre-auth key with which any number of clients may join.
func joinKey(s *Stack) string {
	s.t.Helper()
	s.Exec("fairlead", "fairlead", "users", "create", "alice")
	return strings.TrimSpace(s.Exec("fairlead", "fairlead", "preauthkeys", "create", "--user", "alice", "--reusable"))
}

// within is a context that ends with the test, or after a while.
func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// startUntilEnd runs a program until the test ends.
func startUntilEnd(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s wrote:\n%s", cmd.Path, out.Bytes())
		}
	})
}
