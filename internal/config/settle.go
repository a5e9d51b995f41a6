package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// settle fills in values that are derived from other keys, and performs the checks that involve more than
// one key.
func (l *loader) settle() {
	l.settleListeners()
	l.settleDatabase()
	l.settleDNS()
	l.settleProbes()
	l.settleServerAddresses()
	l.settlePolicy()
	l.settleRelay()
	l.settleOIDC()
}

// isGiven reports whether the file or the environment sets the key.
func (l *loader) isGiven(path string) bool {
	_, ok := l.given[path]
	return ok
}

// sound reports whether none of the keys had an invalid value. A check over invalid values would report a
// problem that does not exist.
func (l *loader) sound(paths ...string) bool {
	for _, p := range paths {
		if l.broken[p] {
			return false
		}
	}
	return true
}

// at returns where the key was set, or the file if it was not.
func (l *loader) at(path string) place {
	if p, ok := l.given[path]; ok {
		return p
	}
	return place{file: l.config.File}
}

func (l *loader) settleListeners() {
	c := l.config
	if (c.TLSCertPath == "") != (c.TLSKeyPath == "") {
		set, missing := "tls_cert_path", "tls_key_path"
		if c.TLSCertPath == "" {
			set, missing = missing, set
		}
		if l.sound(set, missing) {
			l.problem(l.at(set), set, fmt.Errorf("requires %s; set both or neither", missing))
		}
	}
	l.settleACME()
	if !l.sound("listen_addr", "metrics_listen_addr") {
		return
	}
	host, port, _ := net.SplitHostPort(c.ListenAddr)
	metricsHost, metricsPort, _ := net.SplitHostPort(c.MetricsListenAddr)
	if port == metricsPort && port != "0" && (host == metricsHost || isEveryHost(host) || isEveryHost(metricsHost)) {
		key := "metrics_listen_addr"
		if !l.isGiven(key) {
			key = "listen_addr"
		}
		l.problem(l.at(key), key, fmt.Errorf("listen_addr %s and metrics_listen_addr %s conflict; choose another port", c.ListenAddr, c.MetricsListenAddr))
	}
	if c.ServerURL == "" && l.sound("server_url") {
		c.ServerURL = "http://localhost:" + port
		if c.ServesTLS() {
			c.ServerURL = "https://localhost:" + port
		}
		l.warn(l.at("server_url"), "server_url", "not set; "+c.ServerURL+" only works on this machine: set the URL that clients use")
	}
	if u, err := url.Parse(c.ServerURL); err == nil && u.Hostname() == "mesh.example.com" {
		l.warn(l.at("server_url"), "server_url", "mesh.example.com is the placeholder from the example: set the URL that clients use")
	}
}

func (l *loader) settleACME() {
	const hostname, challenge, listener = "tls_letsencrypt_hostname", "tls_letsencrypt_challenge_type", "listen_addr"
	c, a := l.config, &l.config.ACME
	if a.CacheDir == "" {
		a.CacheDir = filepath.Join(filepath.Dir(c.Noise.PrivateKeyPath), "acme")
	}
	if a.Hostname == "" {
		return
	}
	if c.TLSCertPath != "" && l.sound("tls_cert_path") {
		l.problem(l.at(hostname), hostname, errors.New("tls_cert_path is also set; remove one of them"))
	}
	if u, err := url.Parse(c.ServerURL); err == nil && c.ServerURL != "" && !strings.EqualFold(u.Hostname(), a.Hostname) && l.sound("server_url") {
		l.warn(l.at(hostname), hostname, fmt.Sprintf("the certificate will not be valid for %s, the host of server_url", u.Hostname()))
	}
	if _, port, _ := net.SplitHostPort(c.ListenAddr); a.Challenge == ChallengeTLS && port != "443" && l.sound(listener, challenge) {
		l.warn(l.at(challenge), challenge, fmt.Sprintf("the authority connects to port 443; make sure that it leads to listen_addr %s", c.ListenAddr))
	}
}

func isEveryHost(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "" || err == nil && a.IsUnspecified()
}

func (l *loader) settleDatabase() {
	const typ, host, open, idle = "database.type", "database.postgres.host", "database.postgres.max_open_conns", "database.postgres.max_idle_conns"
	d := &l.config.Database
	if !l.isGiven(typ) && l.sound(typ) {
		file, server := l.firstGiven("database.sqlite."), l.firstGiven("database.postgres.")
		switch {
		case file != "" && server != "":
			l.problem(l.at(server), server, fmt.Errorf("%s is also set; add database.type: postgres, or database.type: sqlite, which ignores it", file))
		case server != "":
			d.Type = "postgres"
		}
	}
	pg := &d.Postgres
	if d.Type == "postgres" && len(pg.Hosts) == 0 && l.sound(host) {
		pg.Hosts = []string{"localhost"}
	}
	if pg.MaxIdleConns <= pg.MaxOpenConns || !l.sound(open, idle) {
		return
	}
	if l.isGiven(idle) {
		l.warn(l.at(idle), idle, fmt.Sprintf("%d is more than %s (%d), which is used instead", pg.MaxIdleConns, open, pg.MaxOpenConns))
	}
	pg.MaxIdleConns = pg.MaxOpenConns
}

// firstGiven returns the first key of a section that is set, or "".
func (l *loader) firstGiven(section string, except ...string) string {
	for _, k := range l.known {
		if strings.HasPrefix(k, section) && !slices.Contains(except, k) && l.isGiven(k) {
			return k
		}
	}
	return ""
}

func (l *loader) settleDNS() {
	const magic, base = "dns.magic_dns", "dns.base_domain"
	d := &l.config.DNS
	if !l.isGiven(magic) {
		d.MagicDNS = d.BaseDomain != ""
	}
	if !l.sound(magic, base, "server_url") {
		return
	}
	if d.MagicDNS && d.BaseDomain == "" {
		l.problem(l.at(magic), base, errors.New("is required when dns.magic_dns is true"))
	}
	u, err := url.Parse(l.config.ServerURL)
	if err != nil || d.BaseDomain == "" {
		return
	}
	if host := strings.ToLower(u.Hostname()); host == d.BaseDomain || strings.HasSuffix(host, "."+d.BaseDomain) {
		l.problem(l.at(base), base, fmt.Errorf("must not contain %s, the host of server_url: clients would look for the server inside the mesh", host))
	}
}

func (l *loader) settleProbes() {
	const interval, timeout = "node.routes.ha.probe_interval", "node.routes.ha.probe_timeout"
	r := &l.config.Node.Routes
	switch {
	case r.ProbeInterval == 0 || !l.sound(interval, timeout):
	case r.ProbeInterval < 2*time.Second:
		l.problem(l.at(interval), interval, fmt.Errorf("must be 0 or at least 2s, got %s", r.ProbeInterval))
	case r.ProbeTimeout >= r.ProbeInterval:
		key := timeout
		if !l.isGiven(timeout) {
			key = interval
		}
		l.problem(l.at(key), key, fmt.Errorf("the timeout %s must be less than the interval %s", r.ProbeTimeout, r.ProbeInterval))
	}
}

// maxServerAddresses limits how long a client tries the addresses of the server before it asks DNS.
const maxServerAddresses = 8

func (l *loader) settleServerAddresses() {
	const key = "server_addresses"
	c := l.config
	if !l.sound(key, "prefixes.v4", "prefixes.v6") {
		return
	}
	if len(c.ServerAddresses) > maxServerAddresses {
		l.problem(l.at(key), key, fmt.Errorf("must be at most %d addresses, got %d", maxServerAddresses, len(c.ServerAddresses)))
		return
	}
	for i, a := range c.ServerAddresses {
		switch {
		case c.Prefixes.V4.Contains(a) || c.Prefixes.V6.Contains(a):
			l.problem(l.at(key), key, fmt.Errorf("%s is in the range of node addresses, which clients reach only after they have connected to the server", a))
		case slices.Contains(c.ServerAddresses[:i], a):
			l.problem(l.at(key), key, fmt.Errorf("%s is listed twice", a))
		}
	}
}

func (l *loader) settlePolicy() {
	const mode, path = "policy.mode", "policy.path"
	p := &l.config.Policy
	switch {
	case !l.sound(mode, path):
	case p.Mode == "" && p.Path != "":
		p.Mode = "file"
	case p.Mode == "":
		p.Mode = "database"
	case p.Mode == "file" && p.Path == "":
		// This is Headscale's own default. It causes a warning, because an empty path may be a mistake.
		l.warn(l.at(mode), path, "no policy file: all nodes can reach each other unless the database has a policy. Set policy.path, or remove policy.mode to store the policy in the database")
		p.Mode = "database"
	case p.Mode == "database" && p.Path != "":
		l.warn(l.at(path), path, "ignored, because policy.mode is database")
		p.Path = ""
	}
}

func (l *loader) settleRelay() {
	const enabled, server = "derp.server.enabled", "server_url"
	d := &l.config.DERP
	s := &d.Server
	if !l.isGiven(enabled) && l.sound("derp.urls", "derp.paths") {
		s.Enabled = len(d.URLs)+len(d.Paths) == 0
	}
	if s.PrivateKeyPath == "" {
		s.PrivateKeyPath = filepath.Join(filepath.Dir(l.config.Noise.PrivateKeyPath), "derp_server_private.key")
	}
	if s.STUNPublicPort == 0 {
		_, port, _ := net.SplitHostPort(s.STUNListenAddr)
		s.STUNPublicPort, _ = strconv.Atoi(port)
	}
	// Without a server_url, there is already another warning.
	if s.Enabled && l.sound(server) && (l.isGiven(enabled) || l.isGiven(server)) && !strings.HasPrefix(l.config.ServerURL, "https://") {
		l.warn(l.at(enabled), enabled, "clients connect to relays over TLS only; server_url should begin with https://")
	}
}
