//go:build !race

package packagetest

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
)

const (
	oldConsoleDeb = "/packages/old/fairlead-console_" + older + "-1_" + runtime.GOARCH + ".deb"
	newConsoleDeb = "/packages/new/fairlead-console_" + newer + "-1_" + runtime.GOARCH + ".deb"
	oldConsoleRPM = "/packages/old/fairlead-console-" + older + "-1.$(uname -m).rpm"
	newConsoleRPM = "/packages/new/fairlead-console-" + newer + "-1.$(uname -m).rpm"

	consoleConfig = "/etc/fairlead/console.yaml"
)

func TestDebOfTheConsoleIsInstalledUpgradedAndRemovedWithoutSystemd(t *testing.T) {
	t.Parallel()
	m := start(t, plain)
	m.sh("dpkg --install " + oldConsoleDeb)
	m.says("fairlead-console version", "v"+older)
	testMadeConfiguration(t, m)

	m.sh("echo '# mine' >>" + consoleConfig + "; chmod 600 " + consoleConfig)
	m.sh("dpkg --install " + newConsoleDeb)
	m.says("fairlead-console version", "v"+newer)
	m.says("tail -n 1 "+consoleConfig+"; stat -c %a "+consoleConfig, "# mine\n600")

	m.sh("dpkg --remove fairlead-console")
	m.says("ls "+consoleConfig, consoleConfig)
	m.says("ls /usr/bin/fairlead-console 2>/dev/null || echo gone", "gone")
	m.sh("dpkg --install " + newDeb + "; dpkg --purge fairlead-console")
	m.says("ls /etc/fairlead", "config.yaml")
	m.sh("dpkg --purge fairlead")
	m.says("find / -xdev -name '*fairlead*' -not -path '/proc/*' -not -path '/packages/*'", "")
	m.says("dpkg --audit", "")
}

// testMadeConfiguration checks that a secret was generated, and that the console accepts the generated
// configuration.
func testMadeConfiguration(t *testing.T, m machine) {
	t.Helper()
	m.says("stat -c '%U:%G %a' "+consoleConfig, "root:fairlead-console 640")
	if got := m.sh("sed -n 's/^cookie_secret: //p' " + consoleConfig); !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(got) {
		t.Errorf("cookie_secret is %q", got)
	}
	// Nothing listens yet; an invalid configuration would be reported first.
	if out, err := m.try("fairlead-console health"); err == nil || !bytes.Contains([]byte(out), []byte("127.0.0.1:3000")) {
		t.Errorf("health of a console that does not run: %v\n%s", err, out)
	}
}

func TestDebOfTheConsoleRunsAsItsUnitSays(t *testing.T) {
	t.Parallel()
	m := startSystemd(t)
	m.sh("dpkg --install " + newDeb + " " + oldConsoleDeb)
	testMadeConfiguration(t, m)
	m.says("systemctl is-enabled fairlead-console || systemctl is-active fairlead-console || true", "disabled\ninactive")
	m.sh(setURL + "; systemctl enable --now --quiet fairlead fairlead-console")
	m.eventually("fairlead-console health")

	status := m.sh("cat /proc/$(systemctl show --property=MainPID --value fairlead-console)/status")
	for _, line := range []string{`Seccomp:\t2`, `NoNewPrivs:\t1`, `CapBnd:\t0{16}`, `CapEff:\t0{16}`} {
		if !regexp.MustCompile("(?m)^" + line + "$").MatchString(status) {
			t.Errorf("the process has not %s:\n%s", line, status)
		}
	}
	m.says("stat -c %U /proc/$(systemctl show --property=MainPID --value fairlead-console)", "fairlead-console")
	m.says("stat -c '%U %a' /var/lib/fairlead-console/signed-out", "fairlead-console 700")
	// The console reaches the server on the same machine, and has its pages.
	m.eventually("journalctl --unit=fairlead-console | grep listening")
	m.says("journalctl --unit=fairlead-console | grep -e 'bundle is missing' -e 'not responding' || echo fine", "fine")

	m.sh("dpkg --install " + newConsoleDeb)
	m.says("systemctl is-enabled fairlead-console; systemctl is-active fairlead-console", "enabled\nactive")
	m.eventually("fairlead-console health")
	m.sh("dpkg --purge fairlead-console")
	m.says("cat /proc/[0-9]*/comm 2>/dev/null | grep -x fairlead-consol || echo none", "none")
	m.says("fairlead health", "pass")
}

func TestRPMOfTheConsoleRunsAsItsUnitSays(t *testing.T) {
	t.Parallel()
	m := startSystemd(t)
	m.sh(rpm + "--install " + oldConsoleRPM)
	testMadeConfiguration(t, m)
	m.says(rpm+"--verify fairlead-console", "")
	m.sh("systemctl enable --now --quiet fairlead-console")
	m.eventually("fairlead-console health")
	m.sh("echo '# mine' >>" + consoleConfig + "; " + rpm + "--upgrade " + newConsoleRPM)
	m.says("fairlead-console version; tail -n 1 "+consoleConfig, "v"+newer+"\n# mine")
	m.says("systemctl is-enabled fairlead-console; systemctl is-active fairlead-console", "enabled\nactive")
	m.sh(rpm + "--erase fairlead-console")
	m.says("systemctl is-active fairlead-console || true", "inactive")
	m.says("ls /usr/bin/fairlead-console 2>/dev/null || echo gone; ls "+consoleConfig, "gone\n"+consoleConfig)
}

// The index names each file by a hash of its content, so equal indexes mean that all files are equal.
func TestEveryConsoleHasTheSamePages(t *testing.T) {
	index, err := os.ReadFile(filepath.Join(root, "console", "web", "dist", "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		if leftOut(arch) {
			continue
		}
		if !bytes.Contains(files(t, "fairlead-"+newer+"-linux-"+arch+".tar.gz")["fairlead-console"], index) {
			t.Errorf("the console for %s holds other pages than those that were built here:\n%s", arch, index)
		}
	}
}
