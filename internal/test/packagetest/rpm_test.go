//go:build !race

package packagetest

import (
	"strings"
	"testing"
)

const (
	oldRPM = "/packages/old/fairlead-" + older + "-1.$(uname -m).rpm"
	newRPM = "/packages/new/fairlead-" + newer + "-1.$(uname -m).rpm"

	// The machine runs Debian, whose rpm database contains no other package.
	rpm = "rpm --force-debian --nodeps "
)

func TestRPMRunsAsItsUnitSays(t *testing.T) {
	t.Parallel()
	m := startSystemd(t)
	m.sh(rpm + "--install " + oldRPM)
	m.says("stat -c '%U:%G %a' /etc/fairlead/config.yaml /var/lib/fairlead", "root:fairlead 640\nfairlead:fairlead 750")
	m.says("rpm --query --configfiles fairlead", "/etc/fairlead/config.yaml")
	m.says(rpm+"--verify fairlead", "")
	m.says("systemctl is-active fairlead || true", "inactive")
	m.sh(setURL + "; systemctl enable --now --quiet fairlead")
	m.says("fairlead health", "pass")

	m.sh("fairlead users create alice; " + rpm + "--upgrade " + newRPM)
	m.says("fairlead --version", "fairlead v"+newer)
	m.says("grep ^server_url /etc/fairlead/config.yaml", "server_url: https://mesh.test:443")
	m.says("systemctl is-enabled fairlead; systemctl is-active fairlead", "enabled\nactive")
	m.says("fairlead version | awk '$1 == \"server\" { print $2 }'", "v"+newer)
	m.sh("fairlead health; fairlead users list | grep alice")

	m.sh(rpm + "--erase fairlead")
	m.says("systemctl is-active fairlead || true", "inactive")
	m.says("ls /usr/bin/fairlead /usr/lib/systemd/system/fairlead.service 2>/dev/null || echo gone", "gone")
	m.sh("test -e /var/lib/fairlead/db.sqlite")
	m.says("grep ^server_url /etc/fairlead/config.yaml.rpmsave", "server_url: https://mesh.test:443")
}

func TestRPMIsInstalledAndRemovedWithoutSystemd(t *testing.T) {
	t.Parallel()
	m := start(t, image)
	m.sh(rpm + "--install " + oldRPM)
	m.sh(rpm + "--upgrade " + newRPM)
	m.says("fairlead --version", "fairlead v"+newer)
	m.sh(rpm + "--erase fairlead")
	m.says("ls /usr/bin/fairlead /etc/fairlead 2>/dev/null || echo gone", "gone")
}

func TestRPMSaysWhatItIs(t *testing.T) {
	t.Parallel()
	m := start(t, image)
	for _, arch := range []string{"x86_64", "aarch64"} {
		if leftOut(arch) {
			continue
		}
		m.says("rpm --query --package --queryformat '%{NAME} %{VERSION} %{RELEASE} %{ARCH} %{LICENSE}\n' /packages/new/*."+arch+".rpm | sort",
			"fairlead "+newer+" 1 "+arch+" BSD-3-Clause\nfairlead-console "+newer+" 1 "+arch+" BSD-3-Clause")
	}
	flags := m.sh("rpm --query --package --queryformat '[%{FILENAMES} %{FILEFLAGS:fflags}\n]' " + newRPM)
	if !strings.Contains(flags, "/etc/fairlead/config.yaml cn\n") {
		t.Errorf("the configuration would be replaced by an upgrade:\n%s", flags)
	}
}
