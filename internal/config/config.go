package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// DefaultFile is read if no other file is named. It may be missing: then the configuration consists of the
// environment and the defaults.
const DefaultFile = "/etc/fairlead/config.yaml"

// LevelTrace is the log level trace, below slog's own four.
const LevelTrace = slog.LevelDebug - 4

// Config is a complete configuration: every key has a valid value. Fields are nested like the keys;
// docs/configuration.md describes each. Empty lists and maps are nil. A Config is not changed after Load.
type Config struct {
	ServerURL               string // scheme and host, no trailing slash
	ReplicaName             string // empty means the host name
	ReplicaURL              string // as above; empty means that it is detected
	ListenAddr              string
	MetricsListenAddr       string
	UnixSocket              string
	TLSCertPath             string // empty to serve plain HTTP
	TLSKeyPath              string
	ACME                    ACME
	TrustedProxies          []netip.Prefix
	APICompatVersion        string
	SecretsKeyFile          string
	NodeUpdateCheckInterval time.Duration
	RandomizeClientPort     bool         // clients use a random UDP port
	CacheNetworkMaps        bool         // clients store their map, and start with it
	ServerAddresses         []netip.Addr // at which clients reach the server without DNS

	Noise    Noise
	Prefixes Prefixes
	Database Database
	DNS      DNS
	DERP     DERP
	OIDC     OIDC
	Policy   Policy
	Node     Node
	Taildrop Taildrop
	History  History
	Limits   Limits
	Webhooks Webhooks
	Log      Log

	File     string    // the file that was read; empty if there was none
	Warnings []Problem // what was accepted but is probably a mistake; minor ones come first
}

// Limits keep strangers and devices from exhausting the server.
type Limits struct {
	Connections           int // unauthenticated ones; 0 derives it from the file descriptor limit
	ConnectionsPerNetwork int
	NodesPerUser          int // 0 means no limit
	NodesPerKey           int // 0 means no limit
}

// The values of ACME.Challenge: how an authority checks that the server has its hostname.
const (
	ChallengeHTTP = "HTTP-01"     // on port 80
	ChallengeTLS  = "TLS-ALPN-01" // on port 443
)

// ACME configures the certificate authority that issues the server's certificate, if Hostname is set.
type ACME struct {
	URL       string // of the authority's directory
	Email     string
	Hostname  string
	CacheDir  string
	Challenge string // HTTP-01 or TLS-ALPN-01
	Listen    string // for HTTP-01
}

// ServesTLS reports whether the server terminates TLS itself, so that no proxy needs to.
func (c *Config) ServesTLS() bool { return c.TLSCertPath != "" || c.ACME.Hostname != "" }

// Noise is the server's identity towards clients.
type Noise struct {
	PrivateKeyPath string
}

// Prefixes are the ranges from which nodes get their addresses; both are always valid.
type Prefixes struct {
	V4, V6     netip.Prefix
	Allocation string // sequential or random
}

// Database selects the engine and how to reach it.
type Database struct {
	Type     string // sqlite or postgres
	SQLite   SQLite
	Postgres Postgres
}

// SQLite applies when Database.Type is sqlite.
type SQLite struct {
	Path string
}

// Postgres applies, and has at least one host, when Database.Type is postgres.
type Postgres struct {
	Hosts           []string // names or addresses, each with or without a port, or one socket directory
	Port            int      // of the hosts without one
	Name            string
	User            string
	Pass            Secret
	SSLMode         string // as in libpq
	MaxOpenConns    int
	MaxIdleConns    int // at most MaxOpenConns
	ConnMaxIdleTime time.Duration
}

// Addresses returns the address of each host, with its port.
func (p Postgres) Addresses() []string {
	all := make([]string, len(p.Hosts))
	for i, host := range p.Hosts {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(host, strconv.Itoa(p.Port))
		}
		all[i] = host
	}
	return all
}

// DNS configures name resolution on clients.
type DNS struct {
	Pinned           bool // the API cannot change it
	MagicDNS         bool
	BaseDomain       string // lower case, no trailing dot; set if MagicDNS is
	Nameservers      Nameservers
	OverrideLocalDNS bool // the global nameservers replace those of the device
	SearchDomains    []string
	ExtraRecords     []Record
	ExtraRecordsPath string // a JSON file with further records; empty if there is none
}

// Nameservers are IP addresses or https URLs.
type Nameservers struct {
	Global []string
	Split  map[string][]string // by domain
}

// Record is a name that clients resolve themselves.
type Record struct {
	Name  string
	Type  string // A or AAAA
	Value netip.Addr
}

// DERP configures the relays.
type DERP struct {
	URLs              []string
	Paths             []string
	AutoUpdateEnabled bool
	UpdateFrequency   time.Duration
	Server            DERPServer
}

// DERPServer is the embedded relay.
type DERPServer struct {
	Enabled        bool
	RegionID       int
	RegionCode     string
	RegionName     string
	VerifyClients  bool
	STUNListenAddr string
	STUNPublicPort int
	PrivateKeyPath string
	IPv4, IPv6     netip.Addr // invalid if clients should use DNS
}

// Policy configures where the access policy is stored.
type Policy struct {
	Mode string // file or database
	Path string // set when Mode is file
}

// Node holds the lifetimes of nodes, whether new ones need approval, and how routers are probed.
type Node struct {
	Expiry           time.Duration // 0 means never
	ApprovalRequired bool
	Ephemeral        Ephemeral
	Routes           Routes
}

// Routes configures the probes of routers that another router could replace.
type Routes struct {
	ProbeInterval time.Duration // 0 means that routers are not probed
	ProbeTimeout  time.Duration
}

// Taildrop configures the transfer of files between nodes.
type Taildrop struct {
	Enabled bool
}

// Ephemeral nodes are deleted after they have been offline for too long.
type Ephemeral struct {
	InactivityTimeout time.Duration
}

// History configures how long the audit log and the events are kept.
type History struct {
	Retention time.Duration
}

// Webhooks configures the receivers of events.
type Webhooks struct {
	AllowLocal bool // receivers may be on this machine, on its link or in the mesh
}

// Log configures what is logged and in which format.
type Log struct {
	Level  slog.Level
	Format string // text or json
}

// Secret is text that formatting, encoding and logging do not show. string(secret) is the value.
type Secret string

const redacted = "[redacted]"

// String hides the value; an empty secret shows as empty.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString hides the value from %#v.
func (s Secret) GoString() string { return fmt.Sprintf("%q", s.String()) }

// MarshalText hides the value from JSON, YAML and log handlers.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String lists every key with its value, one per line, without secrets.
func (c *Config) String() string {
	var b strings.Builder
	for _, k := range keysOf(c) {
		fmt.Fprintf(&b, "%s: %s\n", k.path, k.text())
	}
	return b.String()
}

// Secrets returns every secret that is set, for removing them from texts.
func (c *Config) Secrets() []string {
	var found []string
	for _, k := range keysOf(c) {
		for _, s := range k.secrets() {
			found = append(found, string(s))
		}
	}
	return found
}

// secrets returns the secrets in the value that are set.
func (k key) secrets() (found []Secret) {
	switch v := k.show().(type) {
	case Secret:
		if v != "" {
			found = append(found, v)
		}
	case []OIDCProvider:
		for _, p := range v {
			if p.ClientSecret != "" {
				found = append(found, p.ClientSecret)
			}
		}
	}
	return found
}

// LogValue implements slog.LogValuer with the content of String.
func (c *Config) LogValue() slog.Value {
	var attrs []slog.Attr
	for _, k := range keysOf(c) {
		attrs = append(attrs, slog.String(k.path, k.text()))
	}
	return slog.GroupValue(attrs...)
}

// Hash is equal on replicas whose settings agree where they must: in what clients are sent and in decisions
// about nodes. Addresses, paths and logging may differ. A value that equals its default is omitted, so that
// a release with a new key has the same hash as the one before it.
func (c *Config) Hash() string {
	sum := sha256.New()
	plain := keysOf(withDefaults())
	for i, k := range keysOf(c) {
		if k.has(shared) && k.text() != plain[i].text() {
			fmt.Fprintf(sum, "%s: %s\n", k.path, k.text())
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// Report returns what a check prints for a configuration without problems.
func (c *Config) Report() string {
	var b strings.Builder
	if c.File == "" {
		fmt.Fprintf(&b, "configuration ok: no file, defaults and environment only\n")
	} else {
		fmt.Fprintf(&b, "configuration ok: %s\n", c.File)
	}
	for _, w := range c.Warnings {
		fmt.Fprintf(&b, "  warning: %s\n", w)
	}
	return b.String()
}

// text returns the value as JSON, which is unambiguous and also YAML.
func (k key) text() string {
	b, err := json.Marshal(k.show())
	if err != nil {
		return err.Error()
	}
	return string(b)
}
