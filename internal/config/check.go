package config

import (
	"crypto/tls"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// Check checks what only the server needs and Load therefore skips, because all commands call Load: the key and
// certificate files, and whether there is a relay. It adds warnings, and returns an error if the server would
// not start.
func (c *Config) Check() error {
	if c.TLSCertPath != "" {
		if err := c.checkCertificate(); err != nil {
			return fmt.Errorf("cannot load certificate: check tls_cert_path and tls_key_path: %w", err) // the same text as when the server starts
		}
	}
	for _, p := range c.OIDC.All() {
		if _, err := p.ReadSecret(); err != nil {
			return err // the same text as when the server starts
		}
	}
	const group, others = 0o070, 0o007
	if a := c.ACME; a.Hostname != "" {
		c.checkKeyMode("tls_letsencrypt_cache_dir", filepath.Join(a.CacheDir, a.Hostname), others)
	}
	c.checkKeyMode("tls_key_path", c.TLSKeyPath, others) // its group may be the one that manages certificates
	c.checkKeyMode("noise.private_key_path", c.Noise.PrivateKeyPath, group|others)
	if d := c.DERP; d.Server.Enabled {
		c.checkKeyMode("derp.server.private_key_path", d.Server.PrivateKeyPath, group|others)
	} else if len(d.URLs)+len(d.Paths) == 0 {
		c.warn("derp.server.enabled", "no relay configured: devices cannot connect unless another replica is a relay. Set derp.server.enabled, derp.urls or derp.paths")
	}
	return nil
}

func (c *Config) checkCertificate() error {
	pair, err := tls.LoadX509KeyPair(c.TLSCertPath, c.TLSKeyPath)
	if err != nil {
		return err
	}
	if until := pair.Leaf.NotAfter; until.Before(time.Now()) {
		c.warn("tls_cert_path", fmt.Sprintf("the certificate expired at %s: renew it", until.UTC().Format(time.RFC3339)))
	}
	if u, err := url.Parse(c.ServerURL); err == nil && pair.Leaf.VerifyHostname(u.Hostname()) != nil {
		c.warn("tls_cert_path", fmt.Sprintf("the certificate is not valid for %s, the host of server_url", u.Hostname()))
	}
	return nil
}

// checkKeyMode warns about a key file that is readable by users who should not read it. A missing file is not a
// problem, because the server creates it.
func (c *Config) checkKeyMode(key, path string, forbidden fs.FileMode) {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&forbidden != 0 {
		c.warn(key, fmt.Sprintf("other users can read the private key (mode %04o); run: chmod %04o %s", info.Mode().Perm(), info.Mode().Perm()&^forbidden, path))
	}
}

func (c *Config) warn(key, text string) {
	c.Warnings = append(c.Warnings, Problem{File: c.File, Key: key, Text: text})
}
