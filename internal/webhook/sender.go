package webhook

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

const (
	// readGap is the minimum time between two reads of the history, because most commits
	// contain no events for receivers.
	readGap   = 100 * time.Millisecond
	readAgain = time.Second // after the database failed
	// markEvery is how often the position of a webhook is saved while it skips every event.
	// Otherwise its position would be lost when old history is deleted.
	markEvery = 10 * time.Minute
	// patience is how long delivery of an event is retried.
	patience      = 24 * time.Hour
	firstRetry    = time.Second
	longestRetry  = time.Minute
	maxLastAnswer = 200
)

// Config configures a Sender. All fields except AllowLocal, Patience and Retry are
// required.
type Config struct {
	Ledger     *ledger.Ledger
	Webhooks   *control.Webhooks
	History    *control.History
	Log        *slog.Logger
	Registerer prometheus.Registerer
	// Secret returns the secret derived from a webhook's salt.
	Secret func(salt string) string
	// Encode returns an event as the API shows it.
	Encode func(history.AuditRow) []byte
	// Version is the version of the server.
	Version string
	// AllowLocal permits receivers at addresses that are local to the server.
	AllowLocal bool
	// Patience is how long delivery of an event is retried; defaults to 24h.
	Patience time.Duration
	// Retry is the wait after the first failure; defaults to 1s.
	Retry time.Duration
}

// Sender delivers events.
type Sender struct {
	ledger    *ledger.Ledger
	webhooks  *control.Webhooks
	log       *slog.Logger
	secret    func(string) string
	encode    func(history.AuditRow) []byte
	userAgent string
	client    *http.Client
	patience  time.Duration
	retry     time.Duration
	metrics   *metrics
	tail      *control.Tail[history.AuditRow]
}

// New returns a sender. It delivers in Run; Deliver works without it.
func New(c Config) *Sender {
	if c.Patience == 0 {
		c.Patience = patience
	}
	if c.Retry == 0 {
		c.Retry = firstRetry
	}
	return &Sender{
		ledger: c.Ledger, webhooks: c.Webhooks, log: c.Log, secret: c.Secret, encode: c.Encode, userAgent: "Fairlead/" + c.Version,
		client: newClient(c.AllowLocal, c.Webhooks.IsLocal), patience: c.Patience, retry: c.Retry, metrics: newMetrics(c.Registerer),
		tail: control.NewTail(c.History, func(r history.AuditRow) history.AuditRow { return r }, func(r history.AuditRow) history.Position { return r.Position }),
	}
}

// Run delivers until ctx ends. Each enabled webhook has its own goroutine, so that
// a receiver that is down does not delay the others.
func (c *Sender) Run(ctx context.Context) error {
	defer c.client.CloseIdleConnections()
	var g errgroup.Group
	cursor, followed, ended := c.ledger.Cursor(), map[mesh.WebhookID]bool{}, make(chan mesh.WebhookID)
	for {
		more := cursor.More()
		for w := range c.ledger.World().Webhooks.All() {
			if w.Disabled || followed[w.ID] {
				continue
			}
			followed[w.ID] = true
			g.Go(func() error {
				c.follow(ctx, w.ID)
				select {
				case ended <- w.ID:
				case <-ctx.Done():
				}
				return nil
			})
		}
		select {
		case <-more:
			cursor.Skip()
		case id := <-ended:
			delete(followed, id)
		case <-ctx.Done():
			return g.Wait()
		}
	}
}

// enabled returns a webhook if it exists and is enabled.
func (c *Sender) enabled(id mesh.WebhookID) (*mesh.Webhook, bool) {
	w, ok := c.ledger.World().Webhooks.Get(id)
	return w, ok && !w.Disabled
}

// follow waits for events that a webhook subscribes to and delivers them, until the
// webhook is deleted or disabled.
func (c *Sender) follow(ctx context.Context, id mesh.WebhookID) {
	cursor := c.ledger.Cursor()
	var at history.Position // nothing up to here needs to be delivered
	var passed bool         // events were skipped since the position was saved
	saved := time.Now()
	for ctx.Err() == nil {
		more := cursor.More()
		w, ok := c.enabled(id)
		if !ok {
			return
		}
		if kept := position(w); kept.Compare(at) > 0 {
			at, passed, saved = kept, false, time.Now()
		}
		found, err := c.next(ctx, w, at)
		wait, news := readGap, more
		switch {
		case err != nil:
			wait, news = readAgain, nil
		case found.row != nil, passed && time.Since(saved) > markEvery:
			wait, news = c.deliver(ctx, id), nil
			saved = time.Now()
		default:
			at, passed = found.to, passed || found.passed
			wait = markEvery
		}
		select {
		case <-news:
			pause(ctx, readGap)
		case <-time.After(wait):
		case <-ctx.Done():
		}
		cursor.Skip()
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// position returns the position up to which events were delivered to a webhook, skipped or
// given up.
func position(w *mesh.Webhook) history.Position {
	return history.Position{Rev: w.Progress.Rev, Index: w.Progress.Index}
}

// search is the result of looking for the next event that a webhook subscribes to.
type search struct {
	row    *history.AuditRow // nil if there is none yet
	to     history.Position  // everything up to here was skipped
	passed bool              // whether anything was skipped
}

// next finds the first event after a position that a webhook subscribes to. If the
// history no longer reaches back that far, it returns a reset event.
func (c *Sender) next(ctx context.Context, w *mesh.Webhook, after history.Position) (search, error) {
	found := search{to: after}
	for {
		rows, to, err := c.tail.After(ctx, found.to)
		if errors.Is(err, history.ErrForgotten) {
			rev := c.ledger.World().Rev
			found.row = &history.AuditRow{Position: history.EndOf(rev), At: c.ledger.Now(), Kind: control.EventReset, Actor: mesh.Actor{Kind: mesh.ActorServer}}
			return found, nil
		}
		if err != nil || to == found.to {
			return found, err
		}
		for i := range rows {
			if control.EventWanted(w, rows[i]) {
				found.row = &rows[i]
				return found, nil
			}
			found.to, found.passed = rows[i].Position, true
		}
		found.to = to
	}
}
