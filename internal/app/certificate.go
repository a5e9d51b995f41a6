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

// certificate is the TLS certificate of the server.
type certificate interface {
	// Run keeps the certificate current until ctx ends.
	Run(ctx context.Context) error
	// config returns the settings of a listener that serves the current certificate.
	config() *tls.Config
	// inUse returns the current certificate, or nil if there is none yet.
	inUse() *loaded
	// warnings returns what /health reports about the certificate.
	warnings(now time.Time) []string
}

// tlsConfig returns the settings of a listener whose certificates get returns.
func tlsConfig(get func(*tls.ClientHelloInfo) (*tls.Certificate, error), protocols ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: append([]string{"h2", "http/1.1"}, protocols...), GetCertificate: get}
}

// certificateExpiry returns when the certificate in use expires, in seconds since 1970; zero if there is none.
func (s *service) certificateExpiry() float64 {
	if s.certificate == nil {
		return 0
	}
	l := s.certificate.inUse()
	if l == nil {
		return 0
	}
	return float64(l.until.Unix())
}

// certificateFiles is a certificate that someone else issues. It is reloaded when its files change.
type certificateFiles struct {
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

func newLoaded(pair tls.Certificate) (*loaded, error) {
	l := &loaded{pair: pair}
	for _, der := range pair.Certificate {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		if l.begins.IsZero() {
			l.begins = cert.NotBefore
		}
		if l.until.IsZero() || cert.NotAfter.Before(l.until) {
			l.until = cert.NotAfter
		}
	}
	return l, nil
}

// expired returns a warning if the certificate has expired or soon will.
func (l *loaded) expired(now time.Time) string {
	at := l.until.UTC().Format(time.RFC3339)
	switch left := l.until.Sub(now); {
	case left <= 0:
		return "the TLS certificate expired at " + at
	case left < min(expiresSoon, l.until.Sub(l.begins)/4):
		return "the TLS certificate expires at " + at
	}
	return ""
}

// openCertificate loads a certificate, which must succeed the first time.
func openCertificate(certPath, keyPath string, log *slog.Logger) (*certificateFiles, error) {
	c := &certificateFiles{certPath: certPath, keyPath: keyPath, log: log}
	c.seen, _ = c.stat()
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("cannot load certificate: check tls_cert_path and tls_key_path: %w", err)
	}
	return c, nil
}

func (c *certificateFiles) inUse() *loaded { return c.current.Load() }

func (c *certificateFiles) config() *tls.Config {
	return tlsConfig(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &c.current.Load().pair, nil })
}

func (c *certificateFiles) load() error {
	pair, err := tls.LoadX509KeyPair(c.certPath, c.keyPath)
	if err != nil {
		return err
	}
	l, err := newLoaded(pair)
	if err != nil {
		return err
	}
	c.current.Store(l)
	return nil
}

// stat returns the state of both files, and whether it differs from what was seen.
func (c *certificateFiles) stat() (files [2]os.FileInfo, changed bool) {
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
func (c *certificateFiles) look() {
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

func (c *certificateFiles) Run(ctx context.Context) error {
	return periodic.Run(ctx, certificateLook, c.look)
}

func (c *certificateFiles) warnings(now time.Time) (texts []string) {
	if c.broken.Load() {
		texts = append(texts, "cannot load the new TLS certificate, so the previous one stays in use; see the server log")
	}
	if text := c.current.Load().expired(now); text != "" {
		texts = append(texts, text+": renew it")
	}
	return texts
}
