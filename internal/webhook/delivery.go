package webhook

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

const (
	// leaseFor is how long a lease is valid after its last renewal, and renewEvery how
	// often it is renewed.
	leaseFor   = 10 * time.Second
	renewEvery = 4 * time.Second
	// saveEvery is how often the position is saved. If the replica crashes, events
	// sent since then are delivered again.
	saveEvery = time.Second
	// linger is how long the lease is kept while there is nothing to deliver.
	linger = time.Second
	// leaveLimit is how long releasing the lease may take.
	leaveLimit = 2 * time.Second
	// maxLetters is how many dead letters may wait to be saved.
	maxLetters = 256
)

// delivery is the work on one webhook while this replica holds its lease.
type delivery struct {
	*Sender
	id mesh.WebhookID

	mu      sync.Mutex
	at      mesh.WebhookProgress // guarded by mu; current progress
	since   time.Time            // guarded by mu; start of the current series of failures
	unsaved bool                 // guarded by mu; whether at has to be saved
	letters []mesh.DeadLetter    // guarded by mu; to be saved
}

var errLost = errors.New("webhook lease lost")

// deliver takes the lease of a webhook and delivers as long as there is something to
// deliver. It returns how long to wait before the next try.
func (c *Sender) deliver(ctx context.Context, id mesh.WebhookID) time.Duration {
	r := &delivery{Sender: c, id: id}
	began := time.Now()
	wait, err := r.takeLease(ctx)
	switch {
	case err != nil:
		return readAgain
	case wait > 0:
		return wait
	}
	held, lose := context.WithCancel(ctx)
	defer lose()
	var g errgroup.Group
	g.Go(func() error {
		defer lose()
		r.holdLease(held, began)
		return nil
	})
	r.run(held)
	lose()
	_ = g.Wait() // it never fails
	c.metrics.waiting(id, 0)
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
	defer cancel()
	if err := r.save(leaving, 0); err != nil {
		c.log.Debug("cannot save the position of a webhook; some events may be delivered twice", "webhook", id, "error", err)
	}
	return 0
}

// takeLease takes the lease. If another replica holds it, wait is the time until it
// expires.
func (r *delivery) takeLease(ctx context.Context) (wait time.Duration, err error) {
	self := string(r.ledger.Cluster().Self().ID)
	_, err = r.ledger.Commit(ctx, mesh.Actor{Kind: mesh.ActorReplica, ID: self}, func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
		hook, ok := w.Webhooks.Get(r.id)
		if !ok || hook.Disabled {
			return nil, errLost
		}
		if wait = 0; hook.Progress.Replica != self && hook.Progress.Until > now {
			wait = hook.Progress.Until.Sub(now)
			return nil, nil
		}
		r.at = hook.Progress
		r.at.Replica, r.at.Until = self, now.Add(leaseFor)
		r.since = time.Now().Add(-r.timeSpent(r.at.Failures))
		return []mesh.Event{mesh.WebhookMoved{ID: r.id, Progress: r.at}}, nil
	})
	return wait, err
}

// holdLease saves the position and renews the lease until ctx ends or the lease is
// lost. The lease is considered valid from the time at which its renewal was requested,
// because the database may count from then.
func (r *delivery) holdLease(ctx context.Context, renewed time.Time) {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		r.mu.Lock()
		unsaved := r.unsaved
		r.mu.Unlock()
		if !unsaved && time.Since(renewed) < renewEvery {
			continue
		}
		asked := time.Now()
		limited, cancel := context.WithDeadline(ctx, renewed.Add(leaseFor))
		err := r.save(limited, leaseFor)
		cancel()
		switch {
		case err == nil:
			renewed = asked
		case errors.Is(err, errLost), time.Since(renewed) >= leaseFor:
			return
		}
	}
}

// save saves progress and dead letters, and extends the lease, or releases it if hold is
// 0.
func (r *delivery) save(ctx context.Context, hold time.Duration) error {
	r.mu.Lock()
	at, letters := r.at, r.letters
	r.unsaved = false
	r.mu.Unlock()
	self := string(r.ledger.Cluster().Self().ID)
	_, err := r.ledger.Commit(ctx, mesh.Actor{Kind: mesh.ActorReplica, ID: self}, func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
		hook, ok := w.Webhooks.Get(r.id)
		if !ok || hook.Progress.Replica != self {
			return nil, errLost
		}
		next := at
		if next.Replica, next.Until = "", 0; hold > 0 {
			next.Replica, next.Until = self, now.Add(hold)
		}
		if kept := position(hook); kept.Compare(history.Position{Rev: at.Rev, Index: at.Index}) > 0 { // it was disabled and enabled in the meantime
			next.Rev, next.Index = kept.Rev, kept.Index
		}
		evs := []mesh.Event{mesh.WebhookMoved{ID: r.id, Progress: next}}
		for i, l := range letters {
			l.ID, l.At = w.Counters.DeadLetter+mesh.DeadLetterID(i+1), now
			evs = append(evs, mesh.DeadLetterPut{Letter: &l})
		}
		return evs, nil
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.unsaved = true
		return err
	}
	r.letters = r.letters[len(letters):]
	return nil
}

// run delivers one event after the other until there has been none for a while.
func (r *delivery) run(ctx context.Context) {
	cursor := r.ledger.Cursor()
	for {
		more := cursor.More()
		w, ok := r.enabled(r.id)
		if !ok {
			return
		}
		r.mu.Lock()
		after, waiting := history.Position{Rev: r.at.Rev, Index: r.at.Index}, len(r.letters)
		r.mu.Unlock()
		if waiting >= maxLetters && ctx.Err() == nil { // save these before adding more
			pause(ctx, saveEvery)
			continue
		}
		found, err := r.next(ctx, w, later(after, position(w)))
		if err != nil {
			return
		}
		r.move(found.to)
		if found.row != nil {
			if !r.send(ctx, w, *found.row) {
				return
			}
			continue
		}
		r.metrics.waiting(r.id, 0)
		select {
		case <-more:
			cursor.Skip()
			pause(ctx, readGap)
		case <-time.After(linger):
			return
		case <-ctx.Done():
			return
		}
	}
}

func later(p, q history.Position) history.Position {
	if p.Compare(q) < 0 {
		return q
	}
	return p
}

// move changes the position in memory. It makes no commit of its own.
func (r *delivery) move(to history.Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at.Rev, r.at.Index = to.Rev, to.Index
}

// send sends an event, with retries, until the receiver accepts it or it
// expires. It returns false if delivery must end.
func (r *delivery) send(ctx context.Context, w *mesh.Webhook, row history.AuditRow) bool {
	r.metrics.waiting(r.id, row.At)
	for tries := 1; ; tries++ {
		answer := r.Deliver(ctx, w, row)
		switch {
		case answer.Delivered:
			r.delivered(row)
			return true
		case ctx.Err() != nil: // the lease is lost, or the server stops
			return false
		case answer.Status == http.StatusGone:
			r.failed(w, answer)
			if err := r.webhooks.Disable(ctx, r.id, "the receiver responded with "+answer.Problem); err != nil {
				r.log.Warn("cannot disable a webhook whose receiver responded with 410 Gone; retrying", "webhook", r.id, "error", err)
			}
			return false
		}
		failures := r.failed(w, answer)
		expired := r.expired(row)
		if expired {
			r.giveUp(row, tries)
		}
		changed, ok := r.backOff(ctx, w, failures)
		switch {
		case !ok:
			return false
		case expired:
			return true
		case !control.EventWanted(changed, row):
			r.move(row.Position)
			return true
		}
		w = changed
	}
}

// expired reports whether to give up on an event that was just rejected. Its age alone
// is not enough: it may have waited for the server or for earlier events.
func (r *delivery) expired(row history.AuditRow) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.since) > r.patience && time.Since(row.At.Time()) > r.patience
}

// retryAfter returns approximately how long to wait after this many failures in a row.
func (c *Sender) retryAfter(failures int) time.Duration {
	return min(longestRetry, c.retry<<min(failures-1, 20))
}

// timeSpent returns approximately how long it took a receiver to fail this many times
// in a row. Progress stores only the number; time in which no replica ran does not
// count.
func (c *Sender) timeSpent(failures int) (d time.Duration) {
	for i := range failures {
		d += c.retryAfter(i + 1)
	}
	return d
}

// backOff waits longer after each failure. It stops waiting when the webhook is edited,
// which may have fixed the problem. It returns false if delivery must end.
func (r *delivery) backOff(ctx context.Context, w *mesh.Webhook, failures int) (*mesh.Webhook, bool) {
	wait := r.retryAfter(failures)
	timer := time.NewTimer(wait*3/4 + rand.N(wait/2))
	defer timer.Stop()
	cursor := r.ledger.Cursor()
	for {
		more := cursor.More()
		now, ok := r.enabled(r.id)
		if !ok {
			return nil, false
		}
		if now.UpdatedAt != w.UpdatedAt {
			return now, true
		}
		select {
		case <-more:
			cursor.Skip()
			pause(ctx, readGap)
		case <-timer.C:
			return now, true
		case <-ctx.Done():
			return nil, false
		}
	}
}

func (r *delivery) delivered(row history.AuditRow) {
	r.metrics.deliveries.WithLabelValues(outcomeDelivered).Inc()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.Failures > 0 {
		r.log.Info("webhook delivery recovered", "webhook", r.id, "failures", r.at.Failures)
	}
	r.at.Rev, r.at.Index, r.at.Failures, r.at.LastSuccess = row.Position.Rev, row.Position.Index, 0, r.ledger.Now()
	r.unsaved = true
}

// failed records a failed attempt and returns how many in a row have failed.
func (r *delivery) failed(w *mesh.Webhook, answer control.WebhookAnswer) int {
	r.metrics.deliveries.WithLabelValues(outcomeFailed).Inc()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.Failures == 0 {
		r.since = time.Now()
		r.log.Warn("webhook delivery failed; retrying for 24h", "webhook", w.ID, "description", w.Description, "problem", answer.Problem)
	}
	r.at.Failures++
	r.at.LastFailure, r.at.LastAnswer, r.unsaved = r.ledger.Now(), shortened(answer.Problem), true
	return r.at.Failures
}

// giveUp makes an event a dead letter, which an administrator can redeliver.
func (r *delivery) giveUp(row history.AuditRow, tries int) {
	r.metrics.deliveries.WithLabelValues(outcomeDead).Inc()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Warn("giving up on webhook event; list failed events with: fairlead webhooks failed", "webhook", r.id, "event", row.Position.String(), "name", control.EventName(row), "problem", r.at.LastAnswer)
	r.letters = append(r.letters, mesh.DeadLetter{
		Webhook: r.id, Rev: row.Position.Rev, Index: row.Position.Index, Event: control.EventName(row), Attempts: tries, Answer: r.at.LastAnswer,
	})
	r.at.Rev, r.at.Index, r.unsaved = row.Position.Rev, row.Position.Index, true
}

func shortened(text string) string {
	if len(text) > maxLastAnswer {
		text = text[:maxLastAnswer]
	}
	return printable([]byte(text))
}
