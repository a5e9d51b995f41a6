//go:build !race

package deploytest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDevelopmentMovesToProduction runs setup.sh for development, then with a domain, then with the
// operator's own certificate.
func TestDevelopmentMovesToProduction(t *testing.T) {
	t.Parallel()
	// This name is longer than the limit for a common name.
	const domain = "a-name-of-which-a-common-name-cannot-hold-the-end.mesh.example.test"
	// The authority is unreachable, so that nothing leaves the machine.
	s := NewStack(t, map[string]string{"ACME_SERVER": "https://127.0.0.1:1/directory"})
	s.Setup("--dev")
	s.Exec("fairlead", "fairlead", "users", "create", "alice")

	wantNoCertificate(t, s, "--domain", domain, "--email", "ops@"+domain)
	s.WaitHealthy("fairlead", "console", "proxy", "db")
	if url := fmt.Sprintf("server_url: https://%s:%s\n", domain, s.Env("PROXY_HTTPS_PUBLISH")); !strings.Contains(s.ReadFile("config.yaml"), url) {
		t.Errorf("config.yaml does not say %q", url)
	}
	wantText(t, s.Exec("fairlead", "fairlead", "users", "list"), "alice")
	if diff := cmp.Diff([]string{"certbot", "console", "db", "fairlead", "proxy"}, sorted(s.Services())); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}
	// nginx serves a temporary certificate until the authority issues one.
	mustBe(t, filepath.Join(s.Dir, "tls", "fullchain.pem"), 0o644, proxyUser)
	mustBe(t, filepath.Join(s.Dir, "tls", "privkey.pem"), 0o600, proxyUser)
	wantText(t, s.Exec("proxy", "openssl", "x509", "-in", "/etc/nginx/tls/fullchain.pem", "-noout", "-subject", "-issuer"),
		"subject=CN = "+domain[:64]+"\n", "issuer=CN = "+domain[:64]+"\n")
	testContainerValues(t, s)
	t.Run("exposure", func(t *testing.T) { testProductionExposure(t, s) })

	ownCertificate(t, s, domain)
	s.run(filepath.Join(s.Dir, "docs"), "../scripts/setup.sh", "--cert", "../own.pem", "--key", filepath.Join(s.Dir, "own.key"))
	if got := s.ReadFile("tls/fullchain.pem"); got != s.ReadFile("own.pem") {
		t.Error("the certificate was not installed")
	}
	mustBe(t, filepath.Join(s.Dir, "tls", "privkey.pem"), 0o600, proxyUser)
	if diff := cmp.Diff([]string{"console", "db", "fairlead", "proxy"}, sorted(s.Services())); diff != "" {
		t.Errorf("services with an own certificate (-want +got):\n%s", diff)
	}
	// An invalid pair changes nothing.
	if out, err := s.Run("scripts/setup.sh", "--cert", "own.pem", "--key", "own.pem"); err == nil || !strings.Contains(out, "do not match") {
		t.Errorf("a certificate without its key was accepted: %v\n%s", err, out)
	}
	testUselessCertificates(t, s, domain)
	if out, err := s.Run("scripts/setup.sh", "--check"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func ownCertificate(t *testing.T, s *Stack, domain string) {
	t.Helper()
	s.run(s.Dir, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
		"-subj", "/CN=own", "-addext", "subjectAltName=DNS:"+domain, "-keyout", "own.key", "-out", "own.pem")
}

// testProductionExposure checks that other machines reach ports 80 and 443 and the relay, and
// nothing else.
func testProductionExposure(t *testing.T, s *Stack) {
	s = s.In(t)
	want := []string{"fairlead 3478/udp 0.0.0.0", "fairlead 9090/tcp 127.0.0.1", "proxy 3001/tcp 127.0.0.1", "proxy 443/tcp", "proxy 80/tcp"}
	if diff := cmp.Diff(want, published(s)); diff != "" {
		t.Errorf("published ports (-want +got):\n%s", diff)
	}
	host, machine := neighbour(t, s)
	for setting, open := range map[string]bool{"PROXY_HTTP_PUBLISH": true, "PROXY_HTTPS_PUBLISH": true, "CONSOLE_PUBLISH": false, "METRICS_PUBLISH": false} {
		_, port, err := net.SplitHostPort(s.Addr(setting))
		if err != nil {
			t.Fatal(err)
		}
		address := net.JoinHostPort(machine.String(), port)
		if open {
			eventually(t, patience, func() error {
				if !reaches(t, host, address) {
					return fmt.Errorf("%s is not reached from outside", setting)
				}
				return nil
			})
		} else if reaches(t, host, address) {
			t.Errorf("%s is reached from outside", setting)
		}
	}
	hidden(t, s, host, machine)
}

// TestSetupWithoutRoot checks that membership in the group docker is enough to run setup.sh,
// although the files belong to the users of the containers.
func TestSetupWithoutRoot(t *testing.T) {
	t.Parallel()
	const user = "12345"
	s := NewStack(t, nil)
	group := strings.TrimSpace(s.run(s.Dir, "stat", "--format=%g", "/var/run/docker.sock"))
	s.run(s.Dir, "chown", "--recursive", user, ".")
	if err := os.Chmod(filepath.Dir(s.Dir), 0o711); err != nil {
		t.Fatal(err)
	}
	setup := func(args ...string) string {
		t.Helper()
		return s.run(s.Dir, "setpriv", append([]string{"--reuid=" + user, "--regid=" + group, "--clear-groups", "env", "HOME=" + s.Dir, "scripts/setup.sh"}, args...)...)
	}
	setup("--dev", "--sqlite")
	want := secretFiles()
	want[".env"] = "600 " + user
	for name, want := range want {
		if got := modeAndOwner(t, filepath.Join(s.Dir, name)); got != want {
			t.Errorf("%s has mode and owner %s, want %s", name, got, want)
		}
	}
	before, err := os.ReadFile(filepath.Join(s.Dir, "console.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	setup()
	if got := s.ReadFile("console.yaml"); got != string(before) {
		t.Error("a second run changed console.yaml")
	}
	setup("--check")

	// A run as root must not lose any setting in .env.
	s.run(s.Dir, "chown", "0:0", ".env")
	env := s.ReadFile(".env")
	out, err := s.Run("setpriv", "--reuid="+user, "--regid="+group, "--clear-groups", "env", "HOME="+s.Dir, "scripts/setup.sh", "--dev")
	if err == nil || !strings.Contains(out, ".env belongs to root") || s.ReadFile(".env") != env {
		t.Errorf("an .env that cannot be read: %v\n%s\n%s", err, out, s.ReadFile(".env"))
	}
}
