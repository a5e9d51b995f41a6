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

// acmeModule is a small authority that speaks ACME, made for tests.
const acmeModule = "github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.1"

// acme is an authority on a host of the world outside.
type acme struct {
	Directory string // URL
	Trust     string // file that vouches for the authority's own TLS

	host          *clienttest.Namespace
	program, conf string
}

// newACME makes an authority whose certificates live that long. Its host must
// know the names that it is asked for; it fetches challenges from their port 80.
func newACME(t *testing.T, host *clienttest.Namespace, lifetime time.Duration) *acme {
	t.Helper()
	dir := t.TempDir()
	install := exec.CommandContext(t.Context(), "go", "install", acmeModule)
	install.Dir = dir
	install.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=-mod=mod -trimpath -buildvcs=false", "GOWORK=off")
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

// start lets the authority answer until the test ends. It makes a root anew.
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

// roots returns a file of what clients trust that trust the authority.
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
