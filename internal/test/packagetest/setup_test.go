//go:build !race

package packagetest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/test/doccheck"
)

// newCertificate creates a self-signed certificate that the server's group can read.
const newCertificate = `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=mesh.test \
	-addext subjectAltName=DNS:mesh.test -keyout /etc/mesh.key -out /etc/mesh.pem 2>/dev/null; chmod 644 /etc/mesh.key`

// setupOf returns the last command of a way in docs/install.md, with a certificate instead of Let's Encrypt, which the machine cannot
// reach.
func setupOf(t *testing.T, way string) string {
	t.Helper()
	commands, err := doccheck.Commands(root+"/docs/install.md", way)
	if err != nil || len(commands) == 0 {
		t.Fatalf("the commands of %q are %q, %v", way, commands, err)
	}
	setup, ok := strings.CutPrefix(commands[len(commands)-1], "sudo ")
	changed := strings.Replace(setup, "--domain mesh.example.com --email you@example.com", "--domain mesh.test --cert /etc/mesh.pem --key /etc/mesh.key --user alice", 1)
	if !ok || changed == setup {
		t.Fatalf("the last command of %q is %q", way, commands[len(commands)-1])
	}
	return changed
}

func TestSetupStartsTheServerOfAPackage(t *testing.T) {
	t.Parallel()
	m := startSystemd(t)
	m.sh(newCertificate + "; dpkg --install " + newDeb)
	setup := setupOf(t, "Package")
	if out, err := m.try(strings.Replace(setup, "mesh.test", "mehs.test", 1)); err == nil || !strings.Contains(out, "the certificate is not valid for mehs.test") {
		t.Errorf("setup with a certificate for another name: %v\n%s", err, out)
	}
	checkSetup(t, m, "", setup)
	m.says("ls /etc/systemd/system/fairlead.service 2>/dev/null || echo none", "none")
	m.sh("dpkg --purge fairlead")
	m.says("find /etc -name '*fairlead*'", "")
}

func TestSetupInstallsABinary(t *testing.T) {
	t.Parallel()
	m := startSystemd(t)
	m.sh(newCertificate + "; mkdir -p ~/go/bin; tar -xzf /packages/new/fairlead-" + newer + "-linux-*64.tar.gz -C ~/go/bin --strip-components=1")
	// The settings of a careful administrator, who also uses another server.
	checkSetup(t, m, "umask 077; export FAIRLEAD_CLI_SERVER=http://127.0.0.1:1 FAIRLEAD_CONFIG=/etc/other.yaml; ", setupOf(t, "Binary"))
	m.says("stat -c '%U:%G %a' /etc/fairlead", "root:root 755")
	m.says("stat -c '%U:%G %a' /usr/bin/fairlead /etc/systemd/system/fairlead.service", "root:root 755\nroot:root 644")
	m.says("getent passwd fairlead | cut -d: -f6,7", "/var/lib/fairlead:/usr/sbin/nologin")
}

// checkSetup runs setup in a shell with these settings, and checks the server and what setup printed.
func checkSetup(t *testing.T, m machine, settings, setup string) {
	t.Helper()
	first := m.sh(settings + setup)
	m.says("systemctl is-enabled fairlead; systemctl is-active fairlead", "enabled\nactive")
	m.says("stat -c '%U:%G %a' /etc/fairlead/config.yaml", "root:fairlead 640")
	const url = "https://mesh.test"
	found := regexp.MustCompile(`(?s)is running at ` + url + `\n.*\n  (\S+)\n.*\n  sudo tailscale up --login-server ` + url + ` --auth-key (\S+)\n`).FindStringSubmatch(first)
	if found == nil {
		t.Fatalf("no keys in:\n%s", first)
	}
	m.sh("echo 127.0.0.1 mesh.test >>/etc/hosts")
	if got := m.sh("SSL_CERT_FILE=/etc/mesh.pem fairlead --server " + url + " --api-key " + found[1] + " preauthkeys list --valid --output json"); !strings.Contains(got, `"name": "alice"`) || !strings.Contains(got, `"reusable": true`) {
		t.Errorf("the pre-auth keys are %s", got)
	}

	again := m.sh(settings + setup)
	if !strings.Contains(again, "Keeping /etc/fairlead/config.yaml") || !strings.Contains(again, "fairlead preauthkeys create --user alice") || strings.Contains(again, "API key") {
		t.Errorf("setup prints, the second time:\n%s", again)
	}
	for command, want := range map[string]string{
		strings.Replace(setup, "mesh.test", "other.test", 1):                                               "/etc/fairlead/config.yaml is the configuration of mesh.test: edit it, or remove it to write a new one",
		"setpriv --reuid=65534 --clear-groups --regid=65534 " + strings.Replace(setup, "~/go/bin/", "", 1): "permission denied: run this command as root, with sudo",
	} {
		if out, err := m.try(command); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s prints %s, %v; want %q", command, out, err, want)
		}
	}
}
