package headscale

import (
	"fmt"
	"net/netip"

	"go.yaml.in/yaml/v3"
)

// Config is the part of Headscale's configuration that an import needs.
type Config struct {
	ServerURL  string
	BaseDomain string
	V4, V6     netip.Prefix // invalid if not set
	// SQLite is the path of the database, or empty if Postgres is used.
	SQLite   string
	Postgres Postgres
	// NoiseKey, RelayKey and PolicyFile are paths. PolicyFile is empty if the policy is in the database.
	NoiseKey, RelayKey, PolicyFile string
}

// Postgres is how Headscale connects to PostgreSQL.
type Postgres struct {
	Host, Name, User, Pass, SSLMode string
	Port                            int
}

// file has the keys of all versions. Headscale 0.23 renamed most of them.
type file struct {
	ServerURL string `yaml:"server_url"`
	Noise     struct {
		PrivateKeyPath string `yaml:"private_key_path"`
	}
	Prefixes   struct{ V4, V6 string }
	IPPrefixes []string `yaml:"ip_prefixes"`
	Database   struct {
		Type     string
		SQLite   struct{ Path string } `yaml:"sqlite"`
		Postgres struct {
			Host, Name, User, Pass string
			Port                   int
			SSL                    yaml.Node
		}
	}
	DBType string    `yaml:"db_type"`
	DBPath string    `yaml:"db_path"`
	DBHost string    `yaml:"db_host"`
	DBPort int       `yaml:"db_port"`
	DBName string    `yaml:"db_name"`
	DBUser string    `yaml:"db_user"`
	DBPass string    `yaml:"db_pass"`
	DBSSL  yaml.Node `yaml:"db_ssl"`
	DNS    struct {
		BaseDomain string `yaml:"base_domain"`
	}
	DNSConfig struct {
		BaseDomain string `yaml:"base_domain"`
	} `yaml:"dns_config"`
	DERP struct {
		Server struct {
			PrivateKeyPath string `yaml:"private_key_path"`
		}
	}
	Policy        struct{ Mode, Path string }
	ACLPolicyPath string `yaml:"acl_policy_path"`
}

// ParseConfig reads Headscale's configuration. Environment variables that override it are not considered.
func ParseConfig(text []byte) (Config, error) {
	var f file
	if err := yaml.Unmarshal(text, &f); err != nil {
		return Config{}, fmt.Errorf("invalid YAML: %w", err)
	}
	c := Config{
		ServerURL: f.ServerURL, BaseDomain: first(f.DNS.BaseDomain, f.DNSConfig.BaseDomain),
		NoiseKey: f.Noise.PrivateKeyPath, RelayKey: f.DERP.Server.PrivateKeyPath, PolicyFile: first(f.Policy.Path, f.ACLPolicyPath),
	}
	if f.Policy.Mode == "database" {
		c.PolicyFile = ""
	}
	for _, text := range append(f.IPPrefixes, f.Prefixes.V4, f.Prefixes.V6) {
		if p, err := netip.ParsePrefix(text); err == nil && p.Addr().Is4() {
			c.V4 = p
		} else if err == nil {
			c.V6 = p
		}
	}
	switch kind := first(f.Database.Type, f.DBType); kind {
	case "", "sqlite", "sqlite3":
		c.SQLite = first(f.Database.SQLite.Path, f.DBPath)
	case "postgres":
		p := f.Database.Postgres
		c.Postgres = Postgres{
			Host: first(p.Host, f.DBHost), Port: p.Port, Name: first(p.Name, f.DBName), User: first(p.User, f.DBUser), Pass: first(p.Pass, f.DBPass),
			SSLMode: sslMode(first(p.SSL.Value, f.DBSSL.Value)),
		}
		if c.Postgres.Port == 0 {
			c.Postgres.Port = f.DBPort
		}
	default:
		return c, fmt.Errorf("database.type is %q: want sqlite or postgres", kind)
	}
	return c, nil
}

// sslMode translates the values that Headscale accepts besides those of PostgreSQL.
func sslMode(ssl string) string {
	switch ssl {
	case "", "false":
		return "disable"
	case "true":
		return "require"
	}
	return ssl
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
