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
	// readGap is between two looks at the history: most commits are no news.
	readGap   = 100 * time.Millisecond
	readAgain = time.Second // after the database failed
	// markEvery is how often the place of a webhook is noted that asks for
	// nothing of what happens: what it has passed may be forgotten some day.
	markEvery = 10 * time.Minute
	// patience is how long an event is tried.
	patience      = 24 * time.Hour
	firstRetry    = time.Second
	longestRetry  = time.Minute
	maxLastAnswer = 200
)

// Config of a courier. All but AllowLocal, Patience and Retry are required.
type Config struct {
	Ledger     *ledger.Ledger
	Webhooks   *control.Webhooks
	History    *control.History
	Log        *slog.Logger
	Registerer prometheus.Registerer
	// Secret is the one that a webhook's salt stands for.
	Secret func(salt string) string
	// Encode gives an event in the form of the API.
	Encode func(history.AuditRow) []byte
	// Version is that of the service.
	Version string
	// AllowLocal lets receivers have an address that IsLocal to the service.
	AllowLocal bool
	// Patience is how long an event is tried; a day unless told.
	Patience time.Duration
	// Retry is how long the first wait after a failure is; a second unless told.
	Retry time.Duration
}

// Courier delivers events.
type Courier struct {
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

// New returns a courier. Run makes it deliver; Deliver works without it.
func New(c Config) *Courier {
	if c.Patience == 0 {
		c.Patience = patience
	}
	if c.Retry == 0 {
		c.Retry = firstRetry
	}
	return &Courier{
		ledger: c.Ledger, webhooks: c.Webhooks, log: c.Log, secret: c.Secret, encode: c.Encode, userAgent: "Fairlead/" + c.Version,
		client: newClient(c.AllowLocal, c.Webhooks.IsLocal), patience: c.Patience, retry: c.Retry, metrics: newMetrics(c.Registerer),
		tail: control.NewTail(c.History, func(r history.AuditRow) history.AuditRow { return r }, func(r history.AuditRow) history.Position { return r.Position }),
	}
}

// Run delivers until ctx ends. It follows each webhook that is enabled, so that
// a receiver that is down keeps nobody else waiting.
func (c *Courier) Run(ctx context.Context) error {
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

// enabled returns a webhook that is there and enabled.
func (c *Courier) enabled(id mesh.WebhookID) (*mesh.Webhook, bool) {
	w, ok := c.ledger.World().Webhooks.Get(id)
	return w, ok && !w.Disabled
}

// follow waits for events that a webhook asks for, and begins a round when there
// is one, until the webhook is gone or disabled.
func (c *Courier) follow(ctx context.Context, id mesh.WebhookID) {
	cursor := c.ledger.Cursor()
	var at history.Position // nothing up to here is to be delivered
	var passed bool         // something was, since the place was noted
	noted := time.Now()
	for ctx.Err() == nil {
		more := cursor.More()
		w, ok := c.enabled(id)
		if !ok {
			return
		}
		if kept := place(w); kept.Compare(at) > 0 {
			at, passed, noted = kept, false, time.Now()
		}
		found, err := c.next(ctx, w, at)
		wait, news := readGap, more
		switch {
		case err != nil:
			wait, news = readAgain, nil
		case found.row != nil, passed && time.Since(noted) > markEvery:
			wait, news = c.round(ctx, id), nil
			noted = time.Now()
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

// place is up to where a webhook has been told.
func place(w *mesh.Webhook) history.Position {
	return history.Position{Rev: w.Progress.Rev, Index: w.Progress.Index}
}

// finding is the next event that a webhook asks for, if there is one now.
type finding struct {
	row    *history.AuditRow
	to     history.Position // nothing between is asked for
	passed bool             // something was there
}

// next finds the first event after a position that a webhook asks for. When the
// history does not reach back to there, that is what the receiver is told.
func (c *Courier) next(ctx context.Context, w *mesh.Webhook, after history.Position) (finding, error) {
	found := finding{to: after}
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
