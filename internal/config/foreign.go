package config

import (
	"errors"
	"slices"

	"go.yaml.in/yaml/v3"
)

// A foreignKey is known from Headscale's configuration but not a key here. It is
// accepted, with a warning, where leaving it out changes nothing.
type foreignKey struct {
	path   string
	accept []string // values that ask for what happens anyway; nil accepts all
	doc    string   // what holds instead
	moved  string   // the key that has the same meaning, read in its place
}

func foreignKeys() []foreignKey {
	const (
		noGRPC   = "there is no gRPC interface"
		noACME   = "certificates come from tls_cert_path or from the proxy in front"
		ownWrite = "how the database file is written is not configurable"
	)
	off, on := []string{"", "false", "null", "~"}, []string{"true"}
	return []foreignKey{
		{path: "acme_email", doc: noACME},
		{path: "acme_url", doc: noACME},
		{path: "auto_update", doc: "clients decide by themselves when they update"},
		{path: "database.debug", doc: "log.level decides what is logged"},
		{path: "database.gorm", doc: ownWrite},
		{path: "database.sqlite.wal_autocheckpoint", doc: ownWrite},
		{path: "database.sqlite.write_ahead_log", doc: ownWrite},
		{path: "derp.server.automatically_add_embedded_derp_region", accept: on, doc: "the embedded relay is always in the relay map"},
		{path: "disable_check_updates", doc: "the service never looks for updates"},
		{path: "dns.extra_records_path", accept: off, doc: "write the records under dns.extra_records"},
		{path: "dns.override_local_dns", accept: on, doc: "dns.nameservers.global always takes the place of local nameservers; leave it empty to keep those"},
		{path: "ephemeral_node_inactivity_timeout", moved: "node.ephemeral.inactivity_timeout"},
		{path: "grpc_allow_insecure", doc: noGRPC},
		{path: "grpc_listen_addr", doc: noGRPC},
		{path: "logtail", doc: "clients are never told to send their logs elsewhere"},
		{path: "oidc", accept: off, doc: "sign-in with OpenID Connect does not exist yet; remove the section"},
		{path: "randomize_client_port", accept: off, doc: "is not supported"},
		{path: "taildrop.enabled", accept: on, doc: "sending files between nodes cannot be switched off here"},
		{path: "tls_letsencrypt_cache_dir", doc: noACME},
		{path: "tls_letsencrypt_challenge_type", doc: noACME},
		{path: "tls_letsencrypt_hostname", accept: off, doc: noACME},
		{path: "tls_letsencrypt_listen", doc: noACME},
		{path: "unix_socket_permission", doc: "the socket has mode 0770"},
	}
}

func (l *loader) readForeign(f foreignKey, n *yaml.Node, at place) {
	switch {
	case f.moved != "":
		l.warn(at, f.path, "is now spelled "+f.moved)
		if _, both := l.given[f.moved]; !both {
			l.set(l.keys[f.moved], n, at)
		}
	case f.accept != nil && (n.Kind != yaml.ScalarNode || !slices.Contains(f.accept, n.Value)):
		l.problem(at, f.path, errors.New(f.doc))
	default:
		l.warn(at, f.path, "ignored: "+f.doc)
	}
}
