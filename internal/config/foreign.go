package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A foreignKey is a key of Headscale's configuration that Fairlead does not have. It is ignored with a
// warning, unless ignoring it would make the mesh less secure.
type foreignKey struct {
	path   string
	same   []string                // values that match what the server does anyway
	refuse func(value string) bool // reports whether to reject a value not in same; nil ignores all values
	doc    string                  // what Fairlead does instead
	moved  string                  // the key with the same meaning, which is set instead
}

// alreadySo is the warning about a value that changes nothing.
const alreadySo = "ignored: the server always behaves this way"

func foreignKeys() []foreignKey {
	return slices.Concat(ignoredKeys(), formerKeys())
}

// ignoredKeys returns the keys of Headscale 0.23 and later that Fairlead does not have. Some values are
// rejected instead of ignored.
func ignoredKeys() []foreignKey {
	const (
		ownPings    = "the server detects lost connections itself"
		noGRPC      = "gRPC is not supported"
		ownDatabase = "the server tunes its database automatically; log.level controls logging"
	)
	off, on := []string{"", "false"}, []string{"true"}
	return []foreignKey{
		{path: "auto_update.enabled", same: off, doc: "clients decide when they update"},
		{path: "cli", doc: "set FAIRLEAD_CLI_SERVER and FAIRLEAD_CLI_API_KEY for the command line"},
		{path: "database.debug", doc: ownDatabase},
		{path: "database.gorm", doc: ownDatabase},
		{path: "database.sqlite.wal_autocheckpoint", doc: ownDatabase},
		{path: "database.sqlite.write_ahead_log", doc: ownDatabase},
		{path: "derp.server.automatically_add_embedded_derp_region", same: on, doc: "the embedded relay is always in the relay map"},
		{path: "derp.server.stun.enabled", same: on, doc: "the embedded relay always answers STUN, at derp.server.stun_listen_addr"},
		{path: "disable_check_updates", doc: "the server never checks for updates"},
		{path: "dns.use_username_in_magic_dns", same: off, doc: "node names never contain user names"},
		{path: "ephemeral_node_inactivity_timeout", moved: "node.ephemeral.inactivity_timeout"},
		{path: "grpc_allow_insecure", doc: noGRPC},
		{path: "grpc_listen_addr", doc: noGRPC},
		{path: "logtail.enabled", same: off, doc: "the server never makes clients upload logs"},
		{path: "noise.ping_after_idle", doc: ownPings},
		{path: "noise.ping_timeout", doc: ownPings},
		{path: "oidc.enabled", same: on, doc: "people can sign in if oidc.issuer is set; remove the oidc section to disable it"},
		{path: "oidc.expiry", doc: "set node.expiry, which applies to all nodes without tags", same: []string{"0"}},
		{path: "oidc.map_legacy_users", same: off, doc: "a person is found by issuer and subject only, never by name or email address"},
		{path: "oidc.only_start_if_oidc_is_available", same: off, doc: "the server starts without the provider, and keeps trying to reach it"},
		{path: "oidc.pkce.method", same: []string{"s256"}, doc: "PKCE always uses S256"},
		{path: "oidc.strip_email_domain", doc: "users are named as at the provider, or by their whole email address"},
		{path: "preauth_keys.revoked_retention", doc: "pre-auth keys are kept until you delete them"},
		{path: "tuning", doc: "there are no tuning settings"},
		{
			path: "unix_socket_permission", same: []string{"0770", "0o770"}, refuse: withoutGroup,
			doc: "the socket has mode 0770, so every member of its group is an administrator; check the group and remove the key",
		},
	}
}

// formerKeys returns the keys that Headscale 0.23 replaced. They are rejected: most set locations or access
// rules, and a server that ignored those would not behave as configured.
func formerKeys() []foreignKey {
	former := func(path, doc string) foreignKey { return foreignKey{path: path, refuse: always, doc: doc} }
	replaced := func(path, by string) foreignKey { return former(path, "was replaced in Headscale 0.23; use "+by) }
	return []foreignKey{
		replaced("acl_policy_path", "policy.path"),
		replaced("db_host", "database.postgres.host"),
		replaced("db_name", "database.postgres.name"),
		replaced("db_pass", "database.postgres.pass"),
		replaced("db_path", "database.sqlite.path"),
		replaced("db_port", "database.postgres.port"),
		replaced("db_ssl", "database.postgres.ssl"),
		replaced("db_type", "database.type, with sqlite instead of sqlite3"),
		replaced("db_user", "database.postgres.user"),
		replaced("dns_config", "dns, with nameservers as nameservers.global, restricted_nameservers as nameservers.split and domains as search_domains"),
		replaced("ip_prefixes", "prefixes.v4 and prefixes.v6"),
		former("private_key_path", "was removed in Headscale 0.23; remove the key. Clients identify the server by noise.private_key_path"),
	}
}

func always(string) bool { return true }

// withoutGroup reports whether a file mode gives the group less than full access, or is invalid.
func withoutGroup(mode string) bool {
	bits, err := strconv.ParseUint(strings.TrimPrefix(mode, "0o"), 8, 32)
	return err != nil || bits&0o070 != 0o070
}

func (l *loader) readForeign(f foreignKey, n *yaml.Node, at place) {
	isText := n.Kind == yaml.ScalarNode
	switch {
	case isText && n.Tag == "!!null": // not set
	case f.moved != "":
		l.warnMinor(at, f.path, "is now called "+f.moved)
		if _, both := l.given[f.moved]; !both {
			l.set(l.keys[f.moved], n, at)
		}
	case isText && slices.Contains(f.same, strings.ToLower(n.Value)):
		l.warnMinor(at, f.path, alreadySo)
	case f.refuse != nil && f.refuse(n.Value):
		l.problem(at, f.path, errors.New(f.doc))
	case f.same == nil:
		l.warnMinor(at, f.path, "ignored: "+f.doc)
	default:
		l.warn(at, f.path, "ignored: "+f.doc)
	}
}
