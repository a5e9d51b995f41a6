package config

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// A key is one setting. The table that keysOf returns is the only place that defines it: parsing,
// environment names, suggestions for misspelled names, the hash and the reference are derived from
// it.
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
	return slices.Concat(serviceKeys(c), replicaKeys(c), acmeKeys(&c.ACME), nodeKeys(c), oidcKeys(&c.OIDC), databaseKeys(&c.Database), dnsKeys(&c.DNS), derpKeys(&c.DERP))
}

func replicaKeys(c *Config) []key {
	return []key{
		{
			"replica_name", scalar(&c.ReplicaName, "a name", parseReplicaName), "", none,
			"Name of this replica in `fairlead cluster status` and the console. Default: the host name. Set it if the host name changes with each start, or if several replicas run on one machine.",
		},
		{
			"replica_url", scalar(&c.ReplicaURL, "a URL", parseServerURL), "", none,
			"URL at which other replicas reach this one, such as `http://10.0.0.11:8080`, if several replicas share a PostgreSQL database. Default: the address in `listen_addr`. If `listen_addr` means all addresses, such as `0.0.0.0`, the default is the address from which this machine connects to the database.",
		},
	}
}

func serviceKeys(c *Config) []key {
	return []key{
		{
			"server_url", scalar(&c.ServerURL, "a URL", parseServerURL), "", none,
			"Public URL at which clients reach the server. With TLS, write `https://<domain>:443`. Default: `http://localhost:<port of listen_addr>`, with a warning.",
		},
		{
			"listen_addr", hostPort(&c.ListenAddr), "0.0.0.0:8080", none,
			"Address of the listener for clients, the relay, login pages, the API and health checks.",
		},
		{
			"metrics_listen_addr", hostPort(&c.MetricsListenAddr), "127.0.0.1:9090", none,
			"Address of the listener for metrics. Never make this listener public, because it requires no API key.",
		},
		{
			"unix_socket", scalar(&c.UnixSocket, "a file path", parseSocketPath), "/run/fairlead/fairlead.sock", none,
			"Local socket for the command line. Anyone who can open the socket is an administrator and needs no API key.",
		},
		{
			"tls_cert_path", filePath(&c.TLSCertPath), "", none,
			"Certificate chain for `listen_addr`, in PEM format; requires `tls_key_path`. Without a certificate, the server uses plain HTTP, and a proxy must terminate TLS.",
		},
		{
			"tls_key_path", filePath(&c.TLSKeyPath), "", none,
			"Private key of the certificate, in PEM format.",
		},
		{
			"trusted_proxies", list(&c.TrustedProxies, "addresses or ranges", parseProxy), "", none,
			"Proxies whose `X-Forwarded-For` and `X-Real-IP` headers are trusted. The server ignores these headers from other addresses, because they could be forged.",
		},
		{
			"api_compat_version", scalar(&c.APICompatVersion, "a version", parseVersion), "0.28.0", shared,
			"Headscale version that `/version` reports, for tools that adapt to the server's version.",
		},
		{
			"noise.private_key_path", filePath(&c.Noise.PrivateKeyPath), "/var/lib/fairlead/noise_private.key", none,
			"File with the private key by which clients identify the server.",
		},
		{
			"secrets_key_file", filePath(&c.SecretsKeyFile), "", none,
			"File with the key that encrypts secrets stored in PostgreSQL. The key must be the same on every replica. Not used with SQLite.",
		},
		{
			"policy.mode", oneOf(&c.Policy.Mode, "database", "file"), "", shared,
			"Where the access policy is stored. Default: `file` if `policy.path` is set, otherwise `database`. If the mode is `file` but `policy.path` is not set, the server uses `database`, and warns that all nodes can reach each other unless the database has a policy.",
		},
		{
			"policy.path", filePath(&c.Policy.Path), "", none,
			"Access policy file, for mode `file`. The server reloads the file when it changes and on SIGHUP. An invalid policy never takes effect.",
		},
		{
			"limits.connections", whole(&c.Limits.Connections, 0, 1_000_000), "0", none,
			"Maximum number of open unauthenticated connections: those on which neither the machine key of a registered node nor an API key was used. Above the limit, the server closes the connection that has been idle longest. `0` allows 20,000, or fewer if the process has few file descriptors or little memory, but at least 1,000. Unauthenticated connections may use up to half of the memory. Each connection counts as 32 KiB, or as 64 KiB if the server terminates TLS itself. The amount of memory is the smallest of `GOMEMLIMIT`, the cgroup limit and the machine's memory. With a `GOMEMLIMIT` of 450 MiB, as in the Compose stack, the limit is 7,200.",
		},
		{
			"limits.connections_per_network", whole(&c.Limits.ConnectionsPerNetwork, 1, 1_000_000), "6000", none,
			"Maximum number of open unauthenticated connections from one source network: an IPv4 address or an IPv6 /64. The server lowers this limit if necessary, so that 2,000 connections remain for other networks, or half of `limits.connections` if that is less. With the default, 5,000 nodes behind one address can reconnect at once if the server has 440 MiB of memory, or 875 MiB if it terminates TLS itself. For connections through `trusted_proxies`, the forwarded address counts.",
		},
		{
			"history.retention", duration(&c.History.Retention, 24*time.Hour, 0), "365d", shared,
			"Time for which the server keeps the audit log and past events.",
		},
		{
			"webhooks.allow_local", boolean(&c.Webhooks.AllowLocal), "false", none,
			"Whether webhooks may be sent to local addresses: this machine's own addresses, loopback and link-local addresses, cloud metadata endpoints such as 169.254.169.254, and addresses in `prefixes`.",
		},
		{
			"log.level", level(&c.Log.Level), "info", none,
			"Log level. `debug` and `trace` produce large logs.",
		},
		{
			"log.format", oneOf(&c.Log.Format, "text", "json"), "text", none,
			"Log format.",
		},
	}
}

func nodeKeys(c *Config) []key {
	v4, v6 := netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fd7a:115c:a1e0::/48")
	return []key{
		{
			"prefixes.v4", scalar(&c.Prefixes.V4, "a range inside "+v4.String(), parseMeshPrefix(v4)), v4.String(), shared,
			"IPv4 range for node addresses. Clients drop addresses outside the default range.",
		},
		{
			"prefixes.v6", scalar(&c.Prefixes.V6, "a range inside "+v6.String(), parseMeshPrefix(v6)), v6.String(), shared,
			"IPv6 range for node addresses. Clients drop addresses outside the default range.",
		},
		{
			"prefixes.allocation", oneOf(&c.Prefixes.Allocation, "sequential", "random"), "sequential", shared,
			"How the address of a new node is chosen.",
		},
		{
			"node.expiry", duration(&c.Node.Expiry, 0, 0), "0", shared,
			"Time after which a node expires and must sign in again; `0` means never.",
		},
		{
			"node.approval_required", boolean(&c.Node.ApprovalRequired), "false", shared,
			"Whether a new node must wait until an administrator approves it. Nodes that join with a pre-approved key, or that an administrator approved with `fairlead auth approve`, do not wait. Nodes that already wait continue to wait if you set this to `false`.",
		},
		{
			"limits.nodes_per_user", whole(&c.Limits.NodesPerUser, 0, 1_000_000), "0", shared,
			"Maximum number of nodes per user, including ephemeral and expired ones; `0` means no limit. Tagged nodes do not count, because they belong to no user.",
		},
		{
			"limits.nodes_per_key", whole(&c.Limits.NodesPerKey, 0, 1_000_000), "0", shared,
			"Maximum number of nodes that joined with the same reusable pre-auth key; `0` means no limit. Deleted nodes do not count.",
		},
		{
			"node.ephemeral.inactivity_timeout", duration(&c.Node.Ephemeral.InactivityTimeout, time.Minute, 0), "30m", shared,
			"Time after which the server deletes an ephemeral node that is offline. The minimum is one minute.",
		},
		{
			"node.routes.ha.probe_interval", duration(&c.Node.Routes.ProbeInterval, 0, time.Hour), "5s", shared,
			"Interval between probes of routers that another router could replace, at least 2s; `0` means that routers are not probed. A router that misses two probes in a row loses its routes to another router.",
		},
		{
			"node.routes.ha.probe_timeout", duration(&c.Node.Routes.ProbeTimeout, time.Second, time.Hour), "3s", shared,
			"Time within which a router must respond to a probe, at least 1s and less than the interval.",
		},
		{
			"taildrop.enabled", boolean(&c.Taildrop.Enabled), "true", shared,
			"Whether nodes of the same user can send files to each other (Taildrop).",
		},
		{
			"randomize_client_port", boolean(&c.RandomizeClientPort), "false", shared,
			"Whether clients use a random UDP port for WireGuard instead of 41641. `randomizeClientPort` in the access policy has the same effect.",
		},
		{
			"cache_network_maps", boolean(&c.CacheNetworkMaps), "false", shared,
			"Whether clients store their network map on disk, so that they can start and reach their peers while the server is away. Clients before 1.98 ignore this. To choose devices, set the attribute `cache-network-maps` in the access policy instead.",
		},
		{
			"server_addresses", list(&c.ServerAddresses, "IP addresses", parseServerAddress), "", shared,
			"Addresses to which the name in `server_url` resolves, up to 8. Connected clients remember them, and reconnect to them even if DNS fails. With several replicas, these are the addresses of the load balancer. Default: clients use only DNS.",
		},
		{
			"node_update_check_interval", duration(&c.NodeUpdateCheckInterval, time.Second, time.Hour), "10s", none,
			"Interval between checks for expired nodes, inactive ephemeral nodes and lost connections. The interval can be from 1s to 1h.",
		},
	}
}

func databaseKeys(d *Database) []key {
	const pg = "database.postgres."
	return []key{
		{
			"database.type", scalar(&d.Type, "sqlite or postgres", parseDatabaseType), "sqlite", none,
			"`sqlite` for a single server, `postgres` for one or more replicas. Default: `postgres` if a `database.postgres` key is set, otherwise `sqlite`. Required if both `database.sqlite` and `database.postgres` keys are set.",
		},
		{
			"database.sqlite.path", filePath(&d.SQLite.Path), "/var/lib/fairlead/db.sqlite", none,
			"Database file. The server must also be able to write to the directory of this file.",
		},
		{
			pg + "host", list(&d.Postgres.Hosts, "host names", parsePostgresHost), "", none,
			"Host name or address of the PostgreSQL server, or the directory of its socket. If there are several servers with replication, a list of all of them: the server finds the primary, as with `target_session_attrs=read-write`. A host may have its own port: `[db1:5433, db2]`. Default: `localhost`.",
		},
		{pg + "port", whole(&d.Postgres.Port, 1, 65535), "5432", none, "Port of the PostgreSQL servers, unless it is part of `host`."},
		{pg + "name", text(&d.Postgres.Name), "fairlead", none, "Name of the database."},
		{pg + "user", text(&d.Postgres.User), "fairlead", none, "PostgreSQL role."},
		{
			pg + "pass", secret(&d.Postgres.Pass), "", none,
			"Password of the role. If PostgreSQL runs in a container, use the value of its `POSTGRES_PASSWORD`. The password is never logged.",
		},
		{
			pg + "ssl", sslMode(&d.Postgres.SSLMode), "prefer", none,
			"TLS mode of connections to PostgreSQL. `true` means `require`, and `false` means `disable`.",
		},
		{pg + "max_open_conns", whole(&d.Postgres.MaxOpenConns, 1, 1000), "10", none, "Maximum size of the connection pool."},
		{
			pg + "max_idle_conns", whole(&d.Postgres.MaxIdleConns, 0, 1000), "10", none,
			"Maximum number of idle connections in the pool. A value above `max_open_conns` is reduced to `max_open_conns`, with a warning.",
		},
		{
			pg + "conn_max_idle_time_secs", seconds(&d.Postgres.ConnMaxIdleTime, 1, 604800), "3600", none,
			"Time after which an idle connection is closed.",
		},
	}
}

func dnsKeys(d *DNS) []key {
	return []key{
		{
			"dns.magic_dns", boolean(&d.MagicDNS), "", shared,
			"Whether clients resolve node names themselves (MagicDNS). Default: `true` if `dns.base_domain` is set.",
		},
		{
			"dns.base_domain", scalar(&d.BaseDomain, "a domain", parseBaseDomain), "", shared,
			"Domain of node names. The host of `server_url` must not be in this domain, because clients would then look for the server inside the mesh.",
		},
		{
			"dns.nameservers.global", list(&d.Nameservers.Global, "IP addresses or https URLs", parseNameserver), "", shared,
			"Nameservers that clients use for all names. `dns.override_local_dns` determines whether they replace the nameservers of the device.",
		},
		{
			"dns.override_local_dns", boolean(&d.OverrideLocalDNS), "true", shared,
			"Whether `dns.nameservers.global` replaces the nameservers of the device. With `false`, devices keep their own nameservers, and use the global ones only if they cannot combine their own with MagicDNS or split DNS.",
		},
		{
			"dns.nameservers.split", perDomain(&d.Nameservers.Split), "", shared,
			"Nameservers for specific domains. With an empty list, clients resolve the domain only from `dns.extra_records`.",
		},
		{
			"dns.search_domains", list(&d.SearchDomains, "domains", mesh.ParseDomain), "", shared,
			"Search domains for short names. Clients try these domains after `dns.base_domain`.",
		},
		{
			"dns.extra_records", records(&d.ExtraRecords), "", shared,
			"Additional DNS records that clients resolve themselves; `type` is `A` or `AAAA`.",
		},
		{
			"dns.extra_records_path", filePath(&d.ExtraRecordsPath), "", none,
			"JSON file with further DNS records: a list of objects with `name`, `type` and `value`, at most 5,000. The server reloads the file when it changes. An invalid file never takes effect. The API does not change these records. The file must be the same on all replicas.",
		},
		{
			"dns.pinned", boolean(&d.Pinned), "false", shared,
			"Whether DNS settings are read-only in the API. If `false`, the keys in this section set only the initial values.",
		},
	}
}

// acmeKeys have the names that Headscale gave them.
func acmeKeys(a *ACME) []key {
	return []key{
		{
			"tls_letsencrypt_hostname", scalar(&a.Hostname, "a domain", mesh.ParseDomain), "", none,
			"Hostname for which the server obtains and renews a certificate from Let's Encrypt or another ACME authority, instead of `tls_cert_path`. If several replicas share a hostname, a proxy must terminate TLS instead.",
		},
		{
			"tls_letsencrypt_challenge_type", oneOf(&a.Challenge, ChallengeHTTP, ChallengeTLS), ChallengeHTTP, none,
			"How the certificate authority verifies that the hostname belongs to this server. With `HTTP-01`, connections to port 80 must reach `tls_letsencrypt_listen`. With `TLS-ALPN-01`, connections to port 443 must reach `listen_addr`.",
		},
		{
			"tls_letsencrypt_listen", scalar(&a.Listen, "host:port", parseHTTPListener), "0.0.0.0:80", none,
			"Address of the listener for `HTTP-01` requests. This listener redirects other requests to HTTPS.",
		},
		{
			"tls_letsencrypt_cache_dir", filePath(&a.CacheDir), "", none,
			"Directory for the certificate and for the key of the ACME account. Default: `acme` in the directory of `noise.private_key_path`.",
		},
		{
			"acme_url", scalar(&a.URL, "a URL", parseURL("https")), "https://acme-v02.api.letsencrypt.org/directory", none,
			"Directory URL of the ACME authority.",
		},
		{
			"acme_email", text(&a.Email), "", none,
			"E-mail address at which the ACME authority can contact you.",
		},
	}
}

func derpKeys(d *DERP) []key {
	const server = "derp.server."
	return []key{
		{
			"derp.urls", list(&d.URLs, "URLs", parseURL("http", "https")), "", shared,
			"URLs from which to download relay maps, in JSON.",
		},
		{
			"derp.paths", list(&d.Paths, "file paths", parseText), "", shared,
			"Files with relay maps, in YAML or JSON.",
		},
		{
			"derp.auto_update_enabled", boolean(&d.AutoUpdateEnabled), "true", none,
			"Whether relay maps are reloaded regularly.",
		},
		{
			"derp.update_frequency", duration(&d.UpdateFrequency, time.Minute, 0), "24h", none,
			"Interval between reloads of relay maps, at least one minute.",
		},
		{
			server + "enabled", boolean(&d.Server.Enabled), "", none,
			"Whether this server is also a relay. Default: `true` if neither `derp.urls` nor `derp.paths` is set, because clients need a relay. Clients connect to relays over TLS only, so `server_url` should be https.",
		},
		{
			server + "region_id", whole(&d.Server.RegionID, 1, 65535), "999", none,
			"Region ID of the relay. The IDs from 900 to 999 are reserved for your own relays.",
		},
		{server + "region_code", text(&d.Server.RegionCode), "fairlead", none, "Short name of the relay's region."},
		{server + "region_name", text(&d.Server.RegionName), "Fairlead embedded relay", none, "Display name of the relay's region."},
		{
			server + "verify_clients", boolean(&d.Server.VerifyClients), "true", none,
			"Whether the relay serves only nodes of this mesh. With `false`, it serves everyone, and connections from strangers count towards `limits.connections`.",
		},
		{
			server + "stun_listen_addr", hostPort(&d.Server.STUNListenAddr), "0.0.0.0:3478", none,
			"Address of the UDP listener for STUN, which clients use to discover their public address.",
		},
		{
			server + "stun_public_port", whole(&d.Server.STUNPublicPort, 1, 65535), "", none,
			"UDP port at which clients reach STUN, as the relay map lists it. Default: the port of `stun_listen_addr`.",
		},
		{
			server + "private_key_path", filePath(&d.Server.PrivateKeyPath), "", none,
			"File with the relay's private key. Default: `derp_server_private.key` in the directory of `noise.private_key_path`.",
		},
		{
			server + "ipv4", scalar(&d.Server.IPv4, "an IPv4 address", parseAddr(netip.Addr.Is4, "an IPv4 address")), "", none,
			"Public IPv4 address of the relay, for clients whose DNS does not work.",
		},
		{
			server + "ipv6", scalar(&d.Server.IPv6, "an IPv6 address", parseAddr(netip.Addr.Is6, "an IPv6 address")), "", none,
			"Public IPv6 address of the relay, for clients whose DNS does not work.",
		},
	}
}
