package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// UpdaterConfig is the configuration of an Updater. All fields except Frequency are required.
type UpdaterConfig struct {
	Source *Source
	// Frequency is how often the source is read; zero means once.
	Frequency time.Duration
	// Current returns the current map as encoded by Encode, or nil if there is none.
	Current func() []byte
	// Publish replaces the current map.
	Publish    func(context.Context, []byte) error
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Updater keeps the relay map in sync with its source. If the source fails, the map does not change.
type Updater struct {
	config   UpdaterConfig
	failures prometheus.Counter
	failing  string // the kind of the last logged failure; empty after a success
}

const (
	firstRetry = 10 * time.Second
	lastRetry  = time.Hour
)

// NewUpdater returns an Updater that has not read the source yet.
func NewUpdater(c UpdaterConfig) (*Updater, error) {
	failures := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "mesh_relay_map_failures_total", Help: "Failed attempts to load a relay map from derp.urls and derp.paths.",
	})
	if err := c.Registerer.Register(failures); err != nil {
		return nil, fmt.Errorf("registering relay map metrics: %w", err)
	}
	return &Updater{config: c, failures: failures}, nil
}

// Run reads the source at once and then periodically until ctx ends, or only once if the frequency is zero.
// It retries sooner if the source fails. A source without any regions does not change the current map.
func (u *Updater) Run(ctx context.Context) error {
	if len(u.config.Source.URLs)+len(u.config.Source.Paths) == 0 {
		return nil
	}
	retry := firstRetry
	for {
		wait := u.config.Frequency
		switch err := u.update(ctx); {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			u.fail(err)
			wait = retry
			if u.config.Frequency > 0 {
				wait = min(wait, u.config.Frequency)
			}
			retry = min(2*retry, lastRetry)
		default:
			u.succeed()
			if wait == 0 {
				return nil
			}
			retry = firstRetry
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(jittered(wait)):
		}
	}
}

// jittered keeps replicas that started together from sending requests at the same time.
func jittered(d time.Duration) time.Duration { return d - d/20 + rand.N(d/10) }

func (u *Updater) update(ctx context.Context) error {
	m, err := u.config.Source.Load(ctx)
	if err != nil {
		return err
	}
	text, err := Encode(m)
	if err != nil || bytes.Equal(text, u.config.Current()) {
		return err
	}
	if err := u.config.Publish(ctx, text); err != nil {
		return failed("relay map", "not published", err)
	}
	u.config.Log.Info("relay map changed", "regions", len(m.Regions))
	return nil
}

// fail logs the first of several failures of the same kind.
func (u *Updater) fail(err error) {
	u.failures.Inc()
	kind := err.Error()
	if e := new(sourceError); errors.As(err, &e) {
		kind = e.source + e.kind
	}
	if kind != u.failing {
		u.config.Log.Warn("relay map not updated, keeping the previous one", "error", err)
		u.failing = kind
	}
}

func (u *Updater) succeed() {
	if u.failing != "" {
		u.config.Log.Info("relay map is up to date again")
		u.failing = ""
	}
}
