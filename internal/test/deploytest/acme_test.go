//go:build !race

package deploytest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/clienttest"
)

// acmeModule is pebble, a small ACME certificate authority made for tests.
const acmeModule = "github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.1"

// acme is an ACME certificate authority that runs on a host outside the deployment.
type acme struct {
	Directory string // URL
	Trust     string // file with the root of the authority's own TLS certificate

	host          *clienttest.Namespace
	program, conf string
}

// newACME creates an authority that issues certificates with this lifetime. The host must be able to
// resolve the names it is asked to certify; the authority fetches challenges from port 80 of those names.
func newACME(t *testing.T, host *clienttest.Namespace, lifetime time.Duration) *acme {
	t.Helper()
	dir := t.TempDir()
	install := exec.CommandContext(t.Context(), "go", "install", acmeModule)
	install.Dir = dir
	install.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod -trimpath -buildvcs=false", "GOWORK=off")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("go install %s: %v\n%s", acmeModule, err, out)
	}
	own := newAuthority(t)
	files := own.issue(t, host.Addr.String(), "")
	listen := host.Addr.String() + ":14000"
	conf, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": listen, "managementListenAddress": host.Addr.String() + ":15000", "httpPort": 80, "tlsPort": 443,
		"certificate": own.write(t, "acme.pem", files.chain), "privateKey": own.write(t, "acme.key", files.key),
		"profiles": map[string]any{"default": map[string]any{"description": "default", "validityPeriod": int(lifetime.Seconds())}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return &acme{
		Directory: "https://" + listen + "/dir", Trust: own.Root,
		host: host, program: filepath.Join(dir, "pebble"), conf: own.write(t, "acme.json", conf),
	}
}

// start runs the authority until the test ends. It generates a new root on every start.
func (a *acme) start(t *testing.T) {
	t.Helper()
	cmd := a.host.Command(t.Context(), a.program, "-config", a.conf)
	cmd.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0")
	startUntilEnd(t, cmd)
	eventually(t, patience, func() error {
		_, err := a.get(t, a.Directory)
		return err
	})
}

// roots returns the file of root certificates for clients that trust this authority.
func (a *acme) roots(t *testing.T) string {
	t.Helper()
	root, err := a.get(t, fmt.Sprintf("https://%s:15000/roots/0", a.host.Addr))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(file, root, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func (a *acme) get(t *testing.T, url string) ([]byte, error) {
	trust, err := os.ReadFile(a.Trust)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(trust)
	client := &http.Client{Transport: &http.Transport{DialContext: a.host.DialContext, TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, answer.Status)
	}
	return io.ReadAll(answer.Body)
}
