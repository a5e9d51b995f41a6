package config

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// A key is one setting. This table is the only place that defines it: reading, environment names,
// nearest-name search, hash and reference are derived from it.
type key struct {
	path     string
	value           // its field and the accepted values
	fallback string // the default as written in a file; empty if there is none
	marks    mark
	doc      string
}

// mark holds further properties of a key.
type mark uint8

const (
	shared mark = 1 << iota // replicas must agree on it
	none   mark = 0
)

func (k key) has(m mark) bool { return k.marks&m != 0 }

// variable returns the environment variable that overrides the key.
func (k key) variable() string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(k.path, ".", "_"))
}

// keysOf returns all keys, bound to the fields of c.
func keysOf(c *Config) []key {
	return slices.Concat(serviceKeys(c), nodeKeys(c), databaseKeys(&c.Database), dnsKeys(&c.DNS), derpKeys(&c.DERP))
}

func serviceKeys(c *Config) []key {
	return []key{
		{
			"server_url", scalar(&c.ServerURL, "a URL", parseServerURL), "", none,
			"Public URL of the service, for clients; with TLS `https://<domain>:443`. Without it `http://localhost:<port of listen_addr>` is assumed, with a warning.",
		},
		{
			"listen_addr", hostPort(&c.ListenAddr), "0.0.0.0:8080", none,
			"Listener for clients, relay, login pages, API and health.",
		},
		{
			"replica_url", scalar(&c.ReplicaURL, "a URL", parseServerURL), "", none,
			"Where other replicas reach this one, such as `http://10.0.0.11:8080`, for several replicas over one PostgreSQL. Without it: the address of `listen_addr`, or where that is every address, the one from which this machine reaches the database.",
		},
		{
			"metrics_listen_addr", hostPort(&c.MetricsListenAddr), "127.0.0.1:9090", none,
			"Listener for metrics. Never make it public.",
		},
		{
			"unix_socket", scalar(&c.UnixSocket, "a file path", parseSocketPath), "/run/fairlead/fairlead.sock", none,
			"Local socket of the command line. Who may open it administers the service without a key.",
		},
		{
			"tls_cert_path", filePath(&c.TLSCertPath), "", none,
			"Certificate chain for `listen_addr`, in PEM; with `tls_key_path`. Without both, plain HTTP is served and a proxy terminates TLS.",
		},
		{
			"tls_key_path", filePath(&c.TLSKeyPath), "", none,
			"Private key of the certificate, in PEM.",
		},
		{
			"trusted_proxies", list(&c.TrustedProxies, "addresses or ranges", parseProxy), "", none,
			"Proxies whose `X-Forwarded-For` and `X-Real-IP` are believed. Everyone else could invent a client address.",
		},
		{
			"api_compat_version", scalar(&c.APICompatVersion, "a version", parseVersion), "0.28.0", shared,
			"Version that `/version` names to tools that choose their behaviour by it.",
		},
		{
			"noise.private_key_path", filePath(&c.Noise.PrivateKeyPath), "/var/lib/fairlead/noise_private.key", none,
			"The server's identity towards clients.",
		},
		{
			"secrets_key_file", filePath(&c.SecretsKeyFile), "", none,
			"File with the key that seals the secrets kept in PostgreSQL; the same on every replica. SQLite does not use it.",
		},
		{
			"policy.mode", oneOf(&c.Policy.Mode, "database", "file"), "", shared,
			"Where the access policy is kept. Without it: `file` when `policy.path` is set, else `database`. `file` without a path means `database`, with a warning: without a policy everyone may reach everyone.",
		},
		{
			"policy.path", filePath(&c.Policy.Path), "", none,
			"File of the access policy, for mode `file`. It is read again when it changes and on SIGHUP; a text that is no policy changes nothing.",
		},
		{
			"limits.connections", whole(&c.Limits.Connections, 0, 1_000_000), "0", none,
			"How many connections may be open that have not authenticated: neither the machine key of a registered node nor an API key was used on them. Over the limit, the one that has been quiet longest is closed. `0` allows 20,000, or fewer if the process may open fewer file descriptors or has little memory: these connections may use half of it, at 32 KiB each, or 64 KiB if the server terminates TLS itself (`tls_cert_path`), but at least 1,000 are allowed. The memory is the least of `GOMEMLIMIT`, the cgroup limit and what the machine has. With a `GOMEMLIMIT` of 450 MiB, as in the Compose stack, the limit is 7,200.",
		},
		{
			"limits.connections_per_network", whole(&c.Limits.ConnectionsPerNetwork, 1, 1_000_000), "6000", none,
			"The same limit for one source network, an IPv4 address or an IPv6 /64. It always leaves 2,000 connections for other networks, or half of `limits.connections` if that is less. The default lets 5,000 nodes behind one address reconnect at once if the server has 440 MiB of memory, or 875 MiB if it terminates TLS itself. Behind `trusted_proxies` the forwarded address counts.",
		},
		{
			"history.retention", duration(&c.History.Retention, 24*time.Hour, 0), "365d", shared,
			"How long the audit trail and past events are kept.",
		},
		{
			"webhooks.allow_local", boolean(&c.Webhooks.AllowLocal), "false", none,
			"Whether receivers of webhooks may be on this machine, on its link or in the mesh: addresses of its interfaces, loopback and link-local ones, those where clouds keep passwords, and those under `prefixes`.",
		},
		{
			"log.level", level(&c.Log.Level), "info", none,
			"`debug` and `trace` write large logs.",
		},
		{
			"log.format", oneOf(&c.Log.Format, "text", "json"), "text", none,
			"Form of the log lines.",
		},
	}
}

func nodeKeys(c *Config) []key {
	v4, v6 := netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fd7a:115c:a1e0::/48")
	return []key{
		{
			"prefixes.v4", scalar(&c.Prefixes.V4, "a range inside "+v4.String(), parseMeshPrefix(v4)), v4.String(), shared,
			"IPv4 range of the nodes. Clients drop addresses outside the default.",
		},
		{
			"prefixes.v6", scalar(&c.Prefixes.V6, "a range inside "+v6.String(), parseMeshPrefix(v6)), v6.String(), shared,
			"IPv6 range of the nodes. Clients drop addresses outside the default.",
		},
		{
			"prefixes.allocation", oneOf(&c.Prefixes.Allocation, "sequential", "random"), "sequential", shared,
			"How the next address is chosen.",
		},
		{
			"node.expiry", duration(&c.Node.Expiry, 0, 0), "0", shared,
			"How long after its login a node must log in again; `0` is never.",
		},
		{
			"limits.nodes_per_user", whole(&c.Limits.NodesPerUser, 0, 1_000_000), "0", shared,
			"How many nodes a user may own, ephemeral and expired ones included; `0` is no limit. Nodes with tags belong to no user.",
		},
		{
			"limits.nodes_per_key", whole(&c.Limits.NodesPerKey, 0, 1_000_000), "0", shared,
			"How many nodes there may be that joined with the same reusable pre-auth key; `0` is no limit. Deleted nodes do not count.",
		},
		{
			"node.ephemeral.inactivity_timeout", duration(&c.Node.Ephemeral.InactivityTimeout, time.Minute, 0), "30m", shared,
			"How long an ephemeral node may be offline before it is deleted; at least a minute.",
		},
		{
			"node_update_check_interval", duration(&c.NodeUpdateCheckInterval, time.Second, time.Hour), "10s", none,
			"How often expiry, ephemeral nodes and lost connections are looked after; 1s to 1h.",
		},
	}
}

func databaseKeys(d *Database) []key {
	const pg = "database.postgres."
	return []key{
		{
			"database.type", oneOf(&d.Type, "sqlite", "postgres"), "sqlite", none,
			"`sqlite` for one process, `postgres` for one or many. Without it: `postgres` when a `database.postgres` key is set, else `sqlite`. Required when keys of both are set.",
		},
		{
			"database.sqlite.path", filePath(&d.SQLite.Path), "/var/lib/fairlead/db.sqlite", none,
			"The database file. Its directory must be writable too.",
		},
		{
			pg + "host", list(&d.Postgres.Hosts, "host names", parsePostgresHost), "", none,
			"Name or address of the server, several of them, or the directory of its socket. Without it: `localhost`.",
		},
		{pg + "port", whole(&d.Postgres.Port, 1, 65535), "5432", none, "Port on every host."},
		{pg + "name", text(&d.Postgres.Name), "fairlead", none, "Name of the database."},
		{pg + "user", text(&d.Postgres.User), "fairlead", none, "Name of the role."},
		{
			pg + "pass", secret(&d.Postgres.Pass), "", none,
			"Password of the role; the same as the server's `POSTGRES_PASSWORD`. Never shown in logs.",
		},
		{
			pg + "ssl", sslMode(&d.Postgres.SSLMode), "prefer", none,
			"TLS to the server. `true` means `require`, `false` means `disable`.",
		},
		{pg + "max_open_conns", whole(&d.Postgres.MaxOpenConns, 1, 1000), "10", none, "Size of the connection pool."},
		{
			pg + "max_idle_conns", whole(&d.Postgres.MaxIdleConns, 0, 1000), "10", none,
			"A released connection is closed if this many are idle already. A number above `max_open_conns` is reduced to it, with a warning.",
		},
		{
			pg + "conn_max_idle_time_secs", seconds(&d.Postgres.ConnMaxIdleTime, 1, 604800), "3600", none,
			"An idle connection is closed after this time.",
		},
	}
}

func dnsKeys(d *DNS) []key {
	return []key{
		{
			"dns.magic_dns", boolean(&d.MagicDNS), "", shared,
			"Whether clients resolve the names of nodes. Without it: whether `dns.base_domain` is set.",
		},
		{
			"dns.base_domain", scalar(&d.BaseDomain, "a domain", parseBaseDomain), "", shared,
			"Suffix of node names. The host of `server_url` must not lie in it, or clients would look for the server inside the mesh.",
		},
		{
			"dns.nameservers.global", list(&d.Nameservers.Global, "IP addresses or https URLs", parseNameserver), "", shared,
			"Nameservers that clients use for everything instead of their own.",
		},
		{
			"dns.nameservers.split", perDomain(&d.Nameservers.Split), "", shared,
			"Nameservers for single domains; an empty list lets clients answer from `dns.extra_records` alone.",
		},
		{
			"dns.search_domains", list(&d.SearchDomains, "domains", mesh.ParseDomain), "", shared,
			"Domains tried after `dns.base_domain` for short names.",
		},
		{
			"dns.extra_records", records(&d.ExtraRecords), "", shared,
			"Names that clients answer by themselves; `type` is `A` or `AAAA`.",
		},
		{
			"dns.pinned", boolean(&d.Pinned), "false", shared,
			"Whether the API cannot change what this section says. Otherwise the section gives the start values.",
		},
	}
}

func derpKeys(d *DERP) []key {
	const server = "derp.server."
	return []key{
		{
			"derp.urls", list(&d.URLs, "URLs", parseURL("http", "https")), "", shared,
			"Relay maps to download, in JSON.",
		},
		{
			"derp.paths", list(&d.Paths, "file paths", parseText), "", shared,
			"Relay maps to read from files, in YAML or JSON.",
		},
		{
			"derp.auto_update_enabled", boolean(&d.AutoUpdateEnabled), "true", none,
			"Whether relay maps are read again from time to time.",
		},
		{
			"derp.update_frequency", duration(&d.UpdateFrequency, time.Minute, 0), "24h", none,
			"How often; at least a minute.",
		},
		{
			server + "enabled", boolean(&d.Server.Enabled), "", none,
			"Whether this server is also a relay. Without it: `true` if neither `derp.urls` nor `derp.paths` is set, because clients need a relay. Clients reach a relay over TLS only, so `server_url` should be https.",
		},
		{
			server + "region_id", whole(&d.Server.RegionID, 1, 65535), "999", none,
			"Number of the relay's region; 900 to 999 are free for own relays.",
		},
		{server + "region_code", text(&d.Server.RegionCode), "fairlead", none, "Short name of the region."},
		{server + "region_name", text(&d.Server.RegionName), "Fairlead embedded relay", none, "Name of the region that people see."},
		{
			server + "verify_clients", boolean(&d.Server.VerifyClients), "true", none,
			"Whether the relay serves only nodes of this mesh. With `false` it serves everyone, and connections of others count against `limits.connections`.",
		},
		{
			server + "stun_listen_addr", hostPort(&d.Server.STUNListenAddr), "0.0.0.0:3478", none,
			"UDP listener by which clients learn their public address.",
		},
		{
			server + "stun_public_port", whole(&d.Server.STUNPublicPort, 1, 65535), "", none,
			"UDP port that clients are told. Without it: the port of `stun_listen_addr`.",
		},
		{
			server + "private_key_path", filePath(&d.Server.PrivateKeyPath), "", none,
			"The relay's identity. Without it: `derp_server_private.key` beside `noise.private_key_path`.",
		},
		{
			server + "ipv4", scalar(&d.Server.IPv4, "an IPv4 address", parseAddr(netip.Addr.Is4, "an IPv4 address")), "", none,
			"Public address of the relay, for clients whose DNS does not work.",
		},
		{
			server + "ipv6", scalar(&d.Server.IPv6, "an IPv6 address", parseAddr(netip.Addr.Is6, "an IPv6 address")), "", none,
			"Public IPv6 address of the relay, likewise.",
		},
	}
}
