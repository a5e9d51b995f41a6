package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/acme"
)

const (
	renewalLook = time.Minute
	// obtainTimeout limits one attempt, and obtainRetry is the time between two. Let's Encrypt allows five failures an hour.
	obtainTimeout = 2 * time.Minute
	obtainRetry   = 15 * time.Minute
	// renewalPause is the part of its lifetime for which a new certificate is not renewed, even if it seems to expire soon, for
	// example because the clock is wrong: one thirtieth. Let's Encrypt issues five certificates a week for the same name.
	renewalPause = 30
)

// issued is a certificate that an ACME authority issues. It is renewed when a third of its lifetime is left.
type issued struct {
	issuer  *acme.Issuer
	log     *slog.Logger
	current atomic.Pointer[loaded]
	failed  atomic.Pointer[string] // why the last attempt failed; nil if it did not

	next time.Time // when to try again; used only by Run
}

// newIssued returns the stored certificate, or none until Run obtains one.
func newIssued(issuer *acme.Issuer, log *slog.Logger) *issued {
	c := &issued{issuer: issuer, log: log}
	pair, err := issuer.Load()
	if err == nil {
		err = c.use(pair)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("cannot load the stored certificate, requesting a new one", "error", err)
	}
	return c
}

func (c *issued) use(pair *tls.Certificate) error {
	l, err := newLoaded(*pair)
	if err == nil {
		c.current.Store(l)
	}
	return err
}

func (c *issued) inUse() *loaded { return c.current.Load() }

func (c *issued) config() *tls.Config {
	return tlsConfig(func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if proof := c.issuer.Proof(hello); proof != nil {
			return proof, nil
		}
		if l := c.current.Load(); l != nil {
			return &l.pair, nil
		}
		return nil, errors.New("no certificate has been issued yet")
	}, acme.ALPN)
}

// Run obtains and renews the certificate until ctx ends.
func (c *issued) Run(ctx context.Context) error {
	tick := time.NewTicker(renewalLook)
	defer tick.Stop()
	for {
		if now := time.Now(); c.due(now) {
			c.obtain(ctx, now)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (c *issued) due(now time.Time) bool {
	l := c.current.Load()
	return !now.Before(c.next) && (l == nil || l.until.Sub(now) < l.until.Sub(l.begins)/3)
}

func (c *issued) obtain(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, obtainTimeout)
	defer cancel()
	c.next = now.Add(obtainRetry)
	c.log.Info("requesting a certificate", "hostname", c.issuer.Host, "authority", c.issuer.Directory)
	pair, err := c.issuer.Obtain(ctx)
	if errors.Is(err, acme.ErrNotStored) {
		c.log.Error("certificate not stored, the next start will request another", "error", oneLine(err))
		err = nil
	}
	if err == nil {
		err = c.accept(pair, now)
	}
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return
		}
		reason := oneLine(err).Error()
		c.failed.Store(&reason)
		c.log.Error("no certificate was issued", "hostname", c.issuer.Host, "error", reason, "retry", c.next)
		return
	}
	c.log.Info("certificate issued", "hostname", c.issuer.Host, "expires", c.current.Load().until)
}

// accept puts a new certificate to use.
func (c *issued) accept(pair *tls.Certificate, now time.Time) error {
	if err := c.use(pair); err != nil {
		return err
	}
	c.failed.Store(nil)
	c.next = now.Add(max(obtainRetry, pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)/renewalPause))
	return nil
}

func (c *issued) warnings(now time.Time) []string {
	l, failed := c.current.Load(), c.failed.Load()
	switch {
	case l == nil && failed != nil:
		return []string{fmt.Sprintf("no TLS certificate for %s: %s", c.issuer.Host, *failed)}
	case l == nil:
		return []string{fmt.Sprintf("waiting for a TLS certificate for %s", c.issuer.Host)}
	}
	text := l.expired(now)
	switch {
	case text == "":
		return nil
	case failed != nil:
		// Strangers can read this, and the reason may contain addresses and paths. Without a certificate, only local callers can.
		return []string{text + " and was not renewed; see the server log"}
	}
	return []string{text}
}
