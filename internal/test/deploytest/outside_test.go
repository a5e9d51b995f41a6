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

// Hosts outside reach the deployment by this name and URL.
const (
	publicName = "fairlead.example"
	publicURL  = "https://" + publicName + ":443"
)

// outside is a network of hosts that reach a deployment only by its public name and published ports.
type outside struct {
	*clienttest.Lab
	Addr netip.Addr // the deployment's address

	t *testing.T
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	lab := clienttest.NewLab(t)
	return &outside{Lab: lab, Addr: lab.PlugIn(), t: t}
}

// host adds a host that resolves the deployment's name.
func (o *outside) host(name string) *clienttest.Namespace {
	o.t.Helper()
	n := o.Add(name)
	entry := fmt.Sprintf("echo %s %s >>/etc/hosts", o.Addr, publicName)
	if out, err := n.Command(o.t.Context(), "sh", "-c", entry).CombinedOutput(); err != nil {
		o.t.Fatalf("%v: %s", err, out)
	}
	return n
}

// handshake opens a TLS connection to port 443, trusting the root certificates in a file, and returns the
// connection state.
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

// join starts a new client on a host and joins it to the mesh at a URL.
func (o *outside) join(ctx context.Context, host *clienttest.Namespace, url, key, roots string) *clienttest.Daemon {
	o.t.Helper()
	d := clienttest.Start(o.t, clienttest.Options{Namespace: host, Env: trusting(roots)})
	if err := d.Up(ctx, url, key, "--hostname="+host.Name); err != nil {
		o.t.Fatal(err)
	}
	return d
}

// trusting returns the environment of a client that trusts these roots and no others.
func trusting(roots string) []string {
	return []string{"TS_DEBUG_USE_DERP_HTTP=0", "SSL_CERT_FILE=" + roots, "SSL_CERT_DIR=/nonexistent"}
}

// ping makes one client ping another by name until the output contains path, a text such as "via DERP".
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

// startProduction starts a deployment in production mode with a certificate of its own and
// publishes it to the hosts outside.
func (o *outside) startProduction(own pair) *Stack {
	o.t.Helper()
	s := NewStack(o.t, o.published())
	s.WriteFile("own.pem", string(own.chain), 0o644)
	s.WriteFile("own.key", string(own.key), 0o600)
	s.Setup("--sqlite", "--domain", publicName, "--cert", "own.pem", "--key", "own.key")
	return s
}

// published returns the settings that publish the proxy at the deployment's address.
func (o *outside) published() map[string]string {
	return map[string]string{"PROXY_HTTP_PUBLISH": o.Addr.String() + ":80", "PROXY_HTTPS_PUBLISH": o.Addr.String() + ":443"}
}

// joinKey creates the user alice and a reusable pre-auth key.
func joinKey(s *Stack) string {
	s.t.Helper()
	s.Exec("fairlead", "fairlead", "users", "create", "alice")
	return strings.TrimSpace(s.Exec("fairlead", "fairlead", "preauthkeys", "create", "--user", "alice", "--reusable"))
}

// within returns a context that ends with the test, or after a timeout, which should not include the start of a deployment.
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
		_ = cmd.Process.Kill() // it may have exited on its own
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s wrote:\n%s", cmd.Path, out.Bytes())
		}
	})
}
