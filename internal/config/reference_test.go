package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	referenceFile = "../../docs/configuration.md"
	exampleFile   = "../../deploy/config.example.yaml"
)

const referenceIntro = `<!-- Generated from internal/config by "go test ./internal/config -update". Do not edit. -->

# Configuration

The server reads one YAML file: the file given by ` + "`--config`" + `, or else by ` + "`FAIRLEAD_CONFIG`" + `, or else
` + "`/etc/fairlead/config.yaml`" + `. Only this default file may be missing: the server then uses only environment variables. Start from
[config.example.yaml](../deploy/config.example.yaml). After a change, run ` + "`fairlead config check`" + ` and restart the server.

**Nesting.** Write a key such as ` + "`log.level`" + ` as ` + "`level`" + ` inside the section ` + "`log`" + `. ` + "`null`" + ` means that the key is not set. If a key
has no default, an empty value also means that it is not set. If a key has a default, an empty value is an error.

**Environment variables.** Every key has a variable that overrides the file: ` + "`FAIRLEAD_`" + ` followed by the key in upper case, with ` + "`_`" + `
instead of ` + "`.`" + `. For example, ` + "`FAIRLEAD_LOG_LEVEL`" + ` overrides ` + "`log.level`" + `. To read a value from a file, add the suffix ` + "`_FILE`" + ` to
the variable: ` + "`FAIRLEAD_DATABASE_POSTGRES_PASS_FILE=/run/secrets/pass`" + `. Line breaks at the end of the file are ignored. Separate
the elements of a list with commas. Write the values of ` + "`dns.nameservers.split`, `dns.extra_records`, `oidc.extra_params`" + `,
` + "`oidc.groups_map`, `oidc.roles`" + ` and ` + "`oidc.providers`" + ` as one line of YAML. An empty variable means that the key is not set.

**Durations** consist of one or more numbers with units: ` + "`30s`, `1h30m`, `90d`, `2w`, `1y`" + `. A day has 24 hours, and a year has
365 days.

**Errors.** The server does not start if there is an unknown key, an invalid value or an unknown variable that begins with
` + "`FAIRLEAD_`" + `. It reports all errors at once, with their line numbers:

` + "```" + `
failed to parse configuration: yaml: unmarshal errors
  /etc/fairlead/config.yaml:3: databse: unknown key; did you mean database?
  /etc/fairlead/config.yaml:12: log.level: must be trace, debug, info, warn or error, got "loud"
  FAIRLEAD_DATABASE_POSTGRES_PORT: database.postgres.port: must be a whole number, got "pg"
` + "```" + `

**Several replicas.** Keys marked with ¹ must be the same on all replicas.
`

const referenceForeign = `
## Keys of Headscale

You can start the server with the example configuration of any Headscale version from 0.23 to 0.29. The server honours most
of Headscale's keys: they are in the tables above. It warns about keys that it ignores, and uses the paths in the file. It ignores
variables that begin with ` + "`HEADSCALE_`" + `, also with a warning. If ` + "`database.sqlite.path`" + ` names Headscale's database, the server refuses
to start and does not change the database. To take over users, nodes and keys, see
[moving-from-headscale.md](moving-from-headscale.md).

The server accepts these Headscale keys with a warning, and ignores them unless the notes say otherwise. If the table lists certain
values as accepted, any other value is an error, because ignoring it would make the network less secure. If no value is accepted,
the key comes from a version before 0.23, and the last column says what to do. The server prints the most important warnings last.

| Key | Accepted values | Notes |
|---|---|---|
`

var update = flag.Bool("update", false, "write docs/configuration.md")

func reference() string {
	var b strings.Builder
	b.WriteString(referenceIntro)
	c := &Config{}
	for _, group := range []struct {
		title, words string
		keys         []key
	}{
		{"Server", "", serviceKeys(c)},
		{"Replicas", "Several replicas can share a PostgreSQL database: see [operating.md](operating.md#several-replicas).", replicaKeys(c)},
		{"Certificate", "With these keys, the server obtains its certificate itself: see [operating.md](operating.md#tls).", acmeKeys(&c.ACME)},
		{"Nodes and addresses", "A node is a device in your network. The server deletes ephemeral nodes that stay offline.", nodeKeys(c)},
		{"Sign-in", "People can sign in with an OpenID Connect provider to add devices. See [identity.md](identity.md).", oidcKeys(&c.OIDC)},
		{"Database", "", databaseKeys(&c.Database)},
		{"Name resolution", "With MagicDNS, clients resolve node names themselves. Split DNS uses other nameservers for specific domains.", dnsKeys(&c.DNS)},
		{"Relays", "A DERP relay forwards traffic between nodes that cannot reach each other directly. With STUN, a client discovers its public address.", derpKeys(&c.DERP)},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n", group.title)
		if group.words != "" {
			fmt.Fprintf(&b, "%s\n\n", group.words)
		}
		b.WriteString("| Key | Value | Default | Meaning |\n|---|---|---|---|\n")
		for _, k := range group.keys {
			fmt.Fprintf(&b, "| `%s`%s | %s | %s | %s |\n", k.path, signs(k), k.takes, fallback(k), k.doc)
		}
	}
	b.WriteString(referenceForeign)
	for _, f := range foreignKeys() {
		accepted, instead := "any value", f.doc
		switch {
		case f.refuse != nil && f.same == nil:
			accepted = "none"
		case f.refuse != nil && f.same[0] == "":
			accepted = "empty or `false`"
		case f.refuse != nil && f.refuse(f.same[0]):
			accepted = code(f.same[0])
		case f.refuse != nil:
			accepted = code(f.same[0]) + " or more permissive"
		}
		if f.moved != "" {
			instead = "read as `" + f.moved + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.path, accepted, instead)
	}
	return b.String()
}

// signs returns the footnote marks of a key, which the introduction explains.
func signs(k key) (s string) {
	if k.has(shared) {
		s += " ¹"
	}
	return s
}

var constantDefault = regexp.MustCompile("Default: (`[^`]+`)\\.$")

// fallback returns the default of a key. A default that depends on other settings is described in the last column.
func fallback(k key) string {
	switch constant := constantDefault.FindStringSubmatch(k.doc); {
	case k.fallback != "":
		return code(k.fallback)
	case constant != nil:
		return constant[1]
	case strings.Contains(k.doc, "Default: "):
		return "described under *Meaning*"
	}
	return code("")
}

func code(s string) string {
	if s == "" {
		return "none"
	}
	return "`" + s + "`"
}

func TestReferenceIsUpToDate(t *testing.T) {
	want := reference()
	for _, k := range keysOf(&Config{}) {
		if !strings.Contains(want, "\n| `"+k.path+"`") {
			t.Errorf("the reference has no row for %s", k.path)
		}
	}
	if *update {
		if err := os.WriteFile(referenceFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/configuration.md differs from the code; run go test ./internal/config -update\n%s", diff)
	}
}

func TestExampleLoads(t *testing.T) {
	c, err := Load(exampleFile, nil)
	if err != nil {
		t.Fatal(err)
	}
	warnsOfPlaceholder(t, c)
}

// warnsOfPlaceholder checks that the placeholder URL is the only warning about the example.
func warnsOfPlaceholder(t *testing.T, c *Config) {
	t.Helper()
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0].Text, "mesh.example.com is the placeholder from the example") {
		t.Errorf("warnings: %v", c.Warnings)
	}
}

// In the example, "#" followed by one space starts a comment; any other "#" at the
// start of a line comments out a setting.
func TestExampleLoadsWithEverySettingOn(t *testing.T) {
	text, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	on := regexp.MustCompile(`(?m)^#(\S|  )`).ReplaceAll(text, []byte("$1"))
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, on, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.TrustedProxies) == 0 || c.Node.Expiry == 0 || c.TLSKeyPath == "" || c.Database.Postgres.Pass == "" {
		t.Errorf("settings are still off: %s", c)
	}
	warnsOfPlaceholder(t, c)
}
