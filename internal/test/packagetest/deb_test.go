//go:build !race

package packagetest

import (
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

const (
	oldDeb = "/packages/old/fairlead_" + older + "-1_" + runtime.GOARCH + ".deb"
	newDeb = "/packages/new/fairlead_" + newer + "-1_" + runtime.GOARCH + ".deb"
	setURL = `sed -i 's|^server_url: .*|server_url: https://mesh.test:443|' /etc/fairlead/config.yaml`

	// maxExposure is the highest exposure that systemd may report for a unit, in tenths; 100 would be without
	// any sandbox.
	maxExposure = 13
)

func TestDebIsInstalledUpgradedAndRemovedWithoutSystemd(t *testing.T) {
	t.Parallel()
	m := start(t, plain)
	m.sh("dpkg --install " + oldDeb)
	m.says("fairlead --version", "fairlead v"+older)
	m.says("stat -c '%U:%G %a' /etc/fairlead/config.yaml /var/lib/fairlead", "root:fairlead 640\nfairlead:fairlead 750")
	m.says("getent passwd fairlead | cut -d: -f6,7", "/var/lib/fairlead:/usr/sbin/nologin")
	m.sh("fairlead config check")

	m.sh(setURL + "; chmod 600 /etc/fairlead/config.yaml; touch /var/lib/fairlead/db.sqlite")
	m.sh("dpkg --install " + newDeb)
	m.says("fairlead --version", "fairlead v"+newer)
	m.says("grep ^server_url /etc/fairlead/config.yaml", "server_url: https://mesh.test:443")
	m.says("stat -c '%U:%G %a' /etc/fairlead/config.yaml", "root:fairlead 600")

	m.sh("dpkg --remove fairlead")
	m.says("ls /etc/fairlead/config.yaml /var/lib/fairlead/db.sqlite", "/etc/fairlead/config.yaml\n/var/lib/fairlead/db.sqlite")
	m.says("ls /usr/bin/fairlead /usr/lib/systemd/system/fairlead.service 2>/dev/null || echo gone", "gone")

	m.sh("dpkg --install " + newDeb)
	m.says("grep ^server_url /etc/fairlead/config.yaml", "server_url: https://mesh.test:443")

	m.sh("dpkg --purge fairlead")
	m.says("find / -xdev -name '*fairlead*' -not -path '/proc/*' -not -path '/packages/*'", "")
	m.says("dpkg --audit", "")
}

func TestDebCopesWithWhatItFinds(t *testing.T) {
	t.Parallel()
	m := run(t, plain, []string{"--init", "--tmpfs=/var/lib/fairlead/disk"}, "sleep", "infinity")
	m.sh("useradd --no-user-group --gid users fairlead; dpkg --install " + oldDeb)
	m.says("stat -c '%U:%G %a' /etc/fairlead/config.yaml /var/lib/fairlead", "root:fairlead 640\nfairlead:fairlead 750")

	// Files that were lost while the package was removed are restored in a usable state.
	m.sh("dpkg --remove fairlead; chown root:root /var/lib/fairlead; rm /etc/fairlead/config.yaml")
	m.sh("dpkg --install --force-confmiss " + newDeb)
	m.says("stat -c '%U:%G %a' /etc/fairlead/config.yaml /var/lib/fairlead", "root:fairlead 640\nfairlead:fairlead 750")

	m.sh("touch /var/lib/fairlead/db.sqlite /var/lib/fairlead/disk/mine; dpkg --purge fairlead")
	m.says("find /var/lib/fairlead -type f", "/var/lib/fairlead/disk/mine")
	m.says("dpkg --audit", "")
	m.sh("dpkg --install " + newDeb)
}

func TestDebRunsAsItsUnitSays(t *testing.T) {
	t.Parallel()
	m := startSystemd(t)
	m.sh("dpkg --install " + oldDeb)
	m.says("systemctl is-enabled fairlead || systemctl is-active fairlead || true", "disabled\ninactive")
	m.sh(setURL + "; systemctl enable --now --quiet fairlead")
	m.says("fairlead health", "pass")

	status := m.sh("cat /proc/$(systemctl show --property=MainPID --value fairlead)/status")
	for _, line := range []string{`Seccomp:\t2`, `NoNewPrivs:\t1`, `CapBnd:\t0{16}`, `CapEff:\t0{16}`} {
		if !regexp.MustCompile("(?m)^" + line + "$").MatchString(status) {
			t.Errorf("the process has not %s:\n%s", line, status)
		}
	}
	m.says("stat -c '%U:%G %a' /run/fairlead/fairlead.sock /var/lib/fairlead/db.sqlite", "fairlead:fairlead 770\nfairlead:fairlead 600")
	// If the sandbox hid the machine's interfaces, every address would count as its own.
	m.sh("fairlead webhooks create https://192.0.2.7/hook")
	if out, err := m.try("fairlead webhooks create https://127.0.0.1/hook"); err == nil {
		t.Errorf("a webhook to the machine itself: %s", out)
	}

	// A reload keeps the process.
	m.says("a=$(systemctl show --property=MainPID --value fairlead); systemctl reload fairlead; fairlead health; [ $a = $(systemctl show --property=MainPID --value fairlead) ] && echo same",
		"pass\nsame")

	// These are the two lines that the unit file suggests for a port below 1024.
	m.sh(`mkdir -p /etc/systemd/system/fairlead.service.d
		{ echo "[Service]"; sed -n 's/^#\(.*=CAP_NET_BIND_SERVICE\)$/\1/p' /usr/lib/systemd/system/fairlead.service; } >/etc/systemd/system/fairlead.service.d/port.conf
		sed -i 's/^listen_addr: .*/listen_addr: 0.0.0.0:443/' /etc/fairlead/config.yaml
		systemctl daemon-reload; systemctl restart fairlead`)
	m.says("fairlead health", "pass")

	m.sh("fairlead users create alice; dpkg --install " + newDeb)
	m.says("systemctl is-enabled fairlead; systemctl is-active fairlead", "enabled\nactive")
	m.says("fairlead version | awk '$1 == \"server\" { print $2 }'", "v"+newer)
	m.sh("fairlead health; fairlead users list | grep alice")

	m.sh("systemctl stop fairlead; dpkg --install --force-downgrade " + oldDeb)
	m.says("systemctl is-active fairlead || true", "inactive")

	m.sh("systemctl start fairlead; dpkg --remove fairlead")
	m.says("cat /proc/[0-9]*/comm 2>/dev/null | grep -x fairlead || echo none", "none")
	m.sh("test -e /var/lib/fairlead/db.sqlite; dpkg --purge fairlead; rm -r /etc/systemd/system/fairlead.service.d")
	m.says("find /etc /var/lib /run -name '*fairlead*'", "")
}

func TestUnitsAreSandboxed(t *testing.T) {
	t.Parallel()
	m := start(t, image)
	m.sh("dpkg --install " + newDeb + " " + newConsoleDeb)
	for _, unit := range []string{"fairlead.service", "fairlead-console.service"} {
		m.says("systemd-analyze verify --man=no /usr/lib/systemd/system/"+unit, "")
		report := m.sh("systemd-analyze security --offline=true --no-pager /usr/lib/systemd/system/" + unit)
		found := regexp.MustCompile(`Overall exposure level for ` + unit + `: (\d+)\.(\d)`).FindStringSubmatch(report)
		if found == nil {
			t.Fatalf("no score in:\n%s", report)
		}
		t.Log(found[0])
		if score, _ := strconv.Atoi(found[1] + found[2]); score > maxExposure {
			t.Errorf("%s, more than %d.%d:\n%s", found[0], maxExposure/10, maxExposure%10, report)
		}
	}
}

func TestLintianFindsNothing(t *testing.T) {
	t.Parallel()
	m := start(t, image)
	m.says("lintian --allow-root --fail-on=error,warning /packages/new/*.deb", "")
}

func TestPackagesBringManualAndCompletions(t *testing.T) {
	t.Parallel()
	m := start(t, image)
	debFiles := m.sh("dpkg-deb --contents " + newDeb)
	rpmFiles := m.sh("rpm --query --package --list " + newRPM)
	for _, file := range []string{
		"/usr/share/man/man1/fairlead.1.gz", "/usr/share/man/man1/fairlead-nodes-list.1.gz",
		"/usr/share/bash-completion/completions/fairlead", "/usr/share/fish/vendor_completions.d/fairlead.fish",
		"/usr/share/doc/fairlead/licences.txt.gz",
	} {
		if !strings.Contains(debFiles, file+"\n") {
			t.Errorf("the .deb has no %s", file)
		}
		if !strings.Contains(rpmFiles, file+"\n") {
			t.Errorf("the .rpm has no %s", file)
		}
	}
}
