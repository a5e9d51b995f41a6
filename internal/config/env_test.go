package config

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVariableOverridesFile(t *testing.T) {
	c := mustLoad(t, minimal+`
log: {level: debug}
database: {type: sqlite}
dns: {nameservers: {global: [9.9.9.9]}}
`,
		"FAIRLEAD_LOG_LEVEL=warn", "FAIRLEAD_DATABASE_TYPE=postgres", "FAIRLEAD_DATABASE_POSTGRES_HOST=a,b",
		"FAIRLEAD_DATABASE_POSTGRES_PASS=p=w d", "FAIRLEAD_DERP_SERVER_ENABLED=true", "FAIRLEAD_UNIX_SOCKET=/tmp/s",
		"FAIRLEAD_DNS_NAMESERVERS_GLOBAL=1.1.1.1, 8.8.8.8", "FAIRLEAD_TRUSTED_PROXIES=10.0.0.0/8",
		`FAIRLEAD_DNS_NAMESERVERS_SPLIT={corp.example: [10.0.0.1]}`,
		`FAIRLEAD_DNS_EXTRA_RECORDS=[{"name": "a.example", "type": "A", "value": "100.64.0.9"}]`,
		"FAIRLEAD_SECRETS_KEY_FILE=/s.key",
	)
	got := []any{
		c.Log.Level.String(), c.Database.Type, c.Database.Postgres.Hosts, string(c.Database.Postgres.Pass), c.DERP.Server.Enabled,
		c.UnixSocket, c.DNS.Nameservers.Global, c.TrustedProxies[0].String(), c.DNS.Nameservers.Split, c.DNS.ExtraRecords, c.SecretsKeyFile,
	}
	want := []any{
		"WARN", "postgres",
		[]string{"a", "b"},
		"p=w d", true,
		"/tmp/s",
		[]string{"1.1.1.1", "8.8.8.8"},
		"10.0.0.0/8",
		map[string][]string{"corp.example": {"10.0.0.1"}},
		[]Record{{Name: "a.example", Type: "A", Value: netip.MustParseAddr("100.64.0.9")}},
		"/s.key",
	}
	if diff := cmp.Diff(want, got, equal()); diff != "" {
		t.Error(diff)
	}
}

func TestEveryKeyHasItsOwnVariable(t *testing.T) {
	keys := map[string]string{}
	for _, k := range keysOf(&Config{}) {
		for _, name := range []string{k.variable(), k.variable() + fileSuffix} {
			if other := keys[name]; other != "" {
				t.Errorf("%s means both %s and %s", name, other, k.path)
			}
			keys[name] = k.path
		}
		if len(variablesOf([]string{k.variable() + "=1"})) == 0 {
			t.Errorf("%s is not looked at", k.variable())
		}
	}
}

func TestVariableReadsValueFromFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pass, empty := write("pass", " s3cret \r\n"), write("empty", "\n")
	c := mustLoad(t, minimal+"database: {type: sqlite}", "FAIRLEAD_DATABASE_POSTGRES_PASS_FILE="+pass)
	if got := string(c.Database.Postgres.Pass); got != " s3cret " {
		t.Errorf("password %q; want it without the line end only", got)
	}

	const prefix = "FAIRLEAD_DATABASE_POSTGRES_PASS_FILE: database.postgres.pass: "
	for want, env := range map[string][]string{
		"FAIRLEAD_DATABASE_POSTGRES_PASS is also set; remove one of the two":     {"FAIRLEAD_DATABASE_POSTGRES_PASS=x"},
		"cannot read the value from " + empty + ": the file is empty":            {"FAIRLEAD_DATABASE_POSTGRES_PASS_FILE=" + empty},
		"cannot read the value from " + dir + "/none: no such file or directory": {"FAIRLEAD_DATABASE_POSTGRES_PASS_FILE=" + dir + "/none"},
	} {
		env = append([]string{"FAIRLEAD_DATABASE_TYPE=sqlite", "FAIRLEAD_DATABASE_POSTGRES_PASS_FILE=" + pass}, env...)
		if _, got := load(t, minimal, env...); !strings.Contains(got, prefix+want) {
			t.Errorf("got %q; want it to have %q", got, want)
		}
	}
}

func TestBadVariableIsNamed(t *testing.T) {
	for env, want := range map[string]string{
		"FAIRLEAD_DATABASE_POSTGRES_PORT=no":     `FAIRLEAD_DATABASE_POSTGRES_PORT: database.postgres.port: must be a whole number, got "no"`,
		"FAIRLEAD_DERP_URLS=https://a.example,b": `FAIRLEAD_DERP_URLS: derp.urls[1]: must be an absolute URL`,
		"FAIRLEAD_POLICY_MODE=git":               `FAIRLEAD_POLICY_MODE: policy.mode: must be database or file, got "git"`,
		"FAIRLEAD_SERVER_ULR=https://a.example":  `FAIRLEAD_SERVER_ULR: unknown variable; did you mean FAIRLEAD_SERVER_URL?`,
		"FAIRLEAD_CONFIG_FILE=/x":                `FAIRLEAD_CONFIG_FILE: unknown variable; did you mean FAIRLEAD_CONFIG?`,
		"FAIRLEAD_DNS_NAMESERVERS_SPLIT={":       `FAIRLEAD_DNS_NAMESERVERS_SPLIT: dns.nameservers.split: must be a section of domains`,
		"FAIRLEAD_DNS_EXTRA_RECORDS=[a]":         `FAIRLEAD_DNS_EXTRA_RECORDS: dns.extra_records[0]: must be {name, type, value}, got text`,
		"FAIRLEAD_CLI_SERVR=https://a.example":   `FAIRLEAD_CLI_SERVR: unknown variable; did you mean FAIRLEAD_CLI_SERVER?`,
		"FAIRLEAD_DATABSE_POSTGRES_PORT=1":       `did you mean FAIRLEAD_DATABASE_POSTGRES_PORT?`,
	} {
		if _, got := load(t, minimal+"database: {type: sqlite}", env); !strings.Contains(got, "\n  "+want) && !strings.Contains(got, want) {
			t.Errorf("%s: got %q; want it to have %q", env, got, want)
		}
	}
}

func TestVariablesOfOthersAreLeftAlone(t *testing.T) {
	c := mustLoad(t, minimal,
		"PATH=/bin", "HEADSCALE_UI_TOKEN=x", "FAIRLEAD", "FAIRLEAD_LOG_LEVEL=", "=x",
		"FAIRLEAD_CLI_SERVER=https://a.example", "FAIRLEAD_CLI_API_KEY=k", "FAIRLEAD_CONSOLE_API_KEY=k",
		"FAIRLEAD_SERVICE_HOST=10.0.0.1", "FAIRLEAD_SERVICE_PORT=80", "FAIRLEAD_SERVICE_PORT_HTTP=80", "FAIRLEAD_PORT=tcp://10.0.0.1:80",
		"FAIRLEAD_PORT_80_TCP=tcp://10.0.0.1:80", "FAIRLEAD_PORT_80_TCP_ADDR=10.0.0.1", "FAIRLEAD_METRICS_SERVICE_HOST=10.0.0.1",
		"FAIRLEAD_METRICS_PORT_9090_TCP_PROTO=tcp",
	)
	if diff := cmp.Diff(mustLoad(t, minimal), c, equal()); diff != "" {
		t.Error(diff)
	}
}
