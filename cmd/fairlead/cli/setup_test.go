package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/deploy"
	"github.com/fairlead-mesh/fairlead/internal/config"
)

// rendered returns the configuration of an installation, as the server reads it, and its file.
func rendered(t *testing.T, i installation) (*config.Config, string) {
	t.Helper()
	if err := i.normalise(); err != nil {
		t.Fatal(err)
	}
	text, err := i.render()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return c, file
}

func TestSetupWritesFlagsAsTheyAre(t *testing.T) {
	c, _ := rendered(t, installation{Domain: "Mesh.Example.ORG.", BaseDomain: "Mesh.Internal", Email: `"a: b #c"@example.org`})
	if c.ServerURL != "https://mesh.example.org" || c.ACME.Hostname != "mesh.example.org" || c.ACME.Email != `"a: b #c"@example.org` || c.DNS.BaseDomain != "mesh.internal" {
		t.Errorf("got %s, %+v, %s", c.ServerURL, c.ACME, c.DNS.BaseDomain)
	}
	c, _ = rendered(t, installation{Domain: "mesh.example.org", BaseDomain: "mesh.internal", Cert: "/etc/my: certificate #1.pem", Key: `/etc/"key"\1.pem`})
	if c.TLSCertPath != "/etc/my: certificate #1.pem" || c.TLSKeyPath != `/etc/"key"\1.pem` {
		t.Errorf("got %s, %s", c.TLSCertPath, c.TLSKeyPath)
	}
}

func TestSetupRefusesWhatIsNoDomain(t *testing.T) {
	for _, domain := range []string{"mesh.example.org:8443", "mesh.example.org/a", "https://mesh.example.org", "mesh.example.org\nlog: {level: debug}", "mesh example", "münchen.example"} {
		for _, i := range []installation{{Domain: domain, BaseDomain: "mesh.internal"}, {Domain: "mesh.example.org", BaseDomain: domain}} {
			if err := i.normalise(); err == nil {
				t.Errorf("%+v is accepted", i)
			}
		}
	}
}

func TestSetupKeepsAConfiguration(t *testing.T) {
	asked := installation{Domain: "mesh.example.org", BaseDomain: "mesh.internal", Cert: "/etc/mesh.pem", Key: "/etc/mesh.key"}
	other, without := asked, asked
	other.Cert, without.Cert, without.Key = "/etc/other.pem", "", ""
	_, file := rendered(t, asked)
	example := filepath.Join(t.TempDir(), "config.yaml")
	edited := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(example, deploy.ExampleConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(edited, append(deploy.ExampleConfig, "\nunix_socket: /run/other.sock\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		i     installation
		file  string
		write bool
		err   string
	}{
		{asked, filepath.Join(t.TempDir(), "missing"), true, ""},
		{asked, example, true, ""},
		{asked, edited, false, "is the configuration of mesh.example.com: edit it"},
		{asked, file, false, ""},
		{without, file, false, ""},
		{other, file, false, "does not use this certificate: set tls_cert_path"},
		{installation{Domain: "other.example.org"}, file, false, "is the configuration of mesh.example.org: edit it"},
	} {
		write, err := c.i.needsConfig(c.file)
		if write != c.write || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v with %s: %v, %v", c.i, c.file, write, err)
		}
	}
}
