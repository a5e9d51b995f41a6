package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/periodic"
)

const (
	certificateLook = 2 * time.Second
	// expiresSoon is how long before a certificate expires /health warns. A
	// certificate with a short lifetime counts as expiring soon in its last quarter.
	expiresSoon = 14 * 24 * time.Hour
)

// certificate is the TLS certificate of the server. It is reloaded when its files change.
type certificate struct {
	certPath, keyPath string
	log               *slog.Logger
	current           atomic.Pointer[loaded]
	broken            atomic.Bool // the files changed and cannot be loaded

	seen   [2]os.FileInfo // used only by look, like failed
	failed error          // the result of the last look
}

// loaded is a certificate in use, with the validity of the certificate and its issuers.
type loaded struct {
	pair          tls.Certificate
	begins, until time.Time
}

// openCertificate loads a certificate, which must succeed the first time.
func openCertificate(certPath, keyPath string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certPath: certPath, keyPath: keyPath, log: log}
	c.seen, _ = c.stat()
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("cannot load certificate: check tls_cert_path and tls_key_path: %w", err)
	}
	return c, nil
}

// expiry returns when the certificate in use expires, in seconds since 1970; zero
// if there is none.
func (c *certificate) expiry() float64 {
	if c == nil {
		return 0
	}
	return float64(c.current.Load().until.Unix())
}

// config returns the settings of a listener that serves the current certificate.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &c.current.Load().pair, nil },
	}
}

func (c *certificate) load() error {
	pair, err := tls.LoadX509KeyPair(c.certPath, c.keyPath)
	if err != nil {
		return err
	}
	l := &loaded{pair: pair}
	for _, der := range pair.Certificate {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return err
		}
		if l.begins.IsZero() {
			l.begins = cert.NotBefore
		}
		if l.until.IsZero() || cert.NotAfter.Before(l.until) {
			l.until = cert.NotAfter
		}
	}
	c.current.Store(l)
	return nil
}

// stat returns the state of both files, and whether it differs from what was seen.
func (c *certificate) stat() (files [2]os.FileInfo, changed bool) {
	for i, path := range []string{c.certPath, c.keyPath} {
		info, err := os.Stat(path)
		if err != nil {
			changed = true
			continue
		}
		was := c.seen[i]
		files[i] = info
		changed = changed || was == nil || !info.ModTime().Equal(was.ModTime()) || info.Size() != was.Size() || !os.SameFile(info, was)
	}
	return files, changed
}

// look reloads the files if they have changed. The files may be replaced one after the other: a failure
// counts only if the next look fails too.
func (c *certificate) look() {
	files, changed := c.stat()
	if !changed && c.failed == nil {
		return
	}
	err := c.load()
	switch {
	case err == nil:
		c.broken.Store(false)
		c.log.Info("certificate reloaded", "expires", c.current.Load().until)
	case c.failed != nil && (!c.broken.Load() || c.failed.Error() != err.Error()):
		c.broken.Store(true)
		c.log.Error("certificate not reloaded, keeping the previous one; check tls_cert_path and tls_key_path",
			"error", err, "expires", c.current.Load().until)
	}
	c.seen, c.failed = files, err
}

// Run watches the files until ctx ends.
func (c *certificate) Run(ctx context.Context) error {
	return periodic.Run(ctx, certificateLook, c.look)
}

// warnings returns what /health reports about the certificate.
func (c *certificate) warnings(now time.Time) (texts []string) {
	l := c.current.Load()
	if c.broken.Load() {
		texts = append(texts, "cannot load the new TLS certificate, so the previous one stays in use; see the server log")
	}
	switch left := l.until.Sub(now); {
	case left <= 0:
		texts = append(texts, fmt.Sprintf("the TLS certificate expired at %s: renew it", l.until.UTC().Format(time.RFC3339)))
	case left < min(expiresSoon, l.until.Sub(l.begins)/4):
		texts = append(texts, fmt.Sprintf("the TLS certificate expires at %s: renew it", l.until.UTC().Format(time.RFC3339)))
	}
	return texts
}
