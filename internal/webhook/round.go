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
	// leaseFor is how long a replica alone may speak to a receiver after it last
	// said so, and renewEvery how often it says so.
	leaseFor   = 10 * time.Second
	renewEvery = 4 * time.Second
	// saveEvery is how often the place is noted: after the death of the replica
	// the receiver hears again what was sent since.
	saveEvery = time.Second
	// linger is how long a round goes on when there is nothing to deliver.
	linger = time.Second
	// leaveLimit is how long the end of a round may take.
	leaveLimit = 2 * time.Second
	// maxLetters is how many events that were given up wait to be noted.
	maxLetters = 256
)

// round is a time in which this replica alone speaks to one receiver.
type round struct {
	*Courier
	id mesh.WebhookID

	mu      sync.Mutex
	at      mesh.WebhookProgress // guarded by mu; as it is now
	since   time.Time            // guarded by mu; the receiver fails, if it does
	news    bool                 // guarded by mu; at is to be noted
	letters []mesh.DeadLetter    // guarded by mu; to be noted
}

var errLost = errors.New("another replica speaks to the receiver")

// round speaks to a receiver as long as there is something to say. It returns
// how long to wait before the next one.
func (c *Courier) round(ctx context.Context, id mesh.WebhookID) time.Duration {
	r := &round{Courier: c, id: id}
	began := time.Now()
	wait, err := r.take(ctx)
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
		r.keep(held, began)
		return nil
	})
	r.run(held)
	lose()
	_ = g.Wait() // it has no error
	c.metrics.waiting(id, 0)
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
	defer cancel()
	if err := r.save(leaving, 0); err != nil {
		c.log.Debug("the end of a round is not noted; the receiver may hear some events again", "webhook", id, "error", err)
	}
	return 0
}

// take takes the lease, or says how long another replica has it.
func (r *round) take(ctx context.Context) (wait time.Duration, err error) {
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
		r.since = time.Now().Add(-r.spent(r.at.Failures))
		return []mesh.Event{mesh.WebhookMoved{ID: r.id, Progress: r.at}}, nil
	})
	return wait, err
}

// keep notes the place and renews the lease until ctx ends or the lease is lost.
// What counts is when the last renewal was asked for: it is the earliest moment
// from which the database may count.
func (r *round) keep(ctx context.Context, renewed time.Time) {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		r.mu.Lock()
		news := r.news
		r.mu.Unlock()
		if !news && time.Since(renewed) < renewEvery {
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

// save notes how far the receiver has been told, and holds the lease for some
// time, or gives it back.
func (r *round) save(ctx context.Context, hold time.Duration) error {
	r.mu.Lock()
	at, letters := r.at, r.letters
	r.news = false
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
		if kept := place(hook); kept.Compare(history.Position{Rev: at.Rev, Index: at.Index}) > 0 { // it was disabled and enabled meanwhile
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
		r.news = true
		return err
	}
	r.letters = r.letters[len(letters):]
	return nil
}

// run delivers one event after the other until none comes for a while.
func (r *round) run(ctx context.Context) {
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
		if waiting >= maxLetters && ctx.Err() == nil { // they are noted before there are more
			pause(ctx, saveEvery)
			continue
		}
		found, err := r.next(ctx, w, later(after, place(w)))
		if err != nil {
			return
		}
		r.move(found.to)
		if found.row != nil {
			if !r.bring(ctx, w, *found.row) {
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

// move notes a place in memory; it is worth no commit of its own.
func (r *round) move(to history.Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at.Rev, r.at.Index = to.Rev, to.Index
}

// bring tries until the receiver has taken an event, or it is given up. It is
// false when the round must end.
func (r *round) bring(ctx context.Context, w *mesh.Webhook, row history.AuditRow) bool {
	r.metrics.waiting(r.id, row.At)
	for tries := 1; ; tries++ {
		answer := r.Deliver(ctx, w, row)
		switch {
		case answer.Delivered:
			r.delivered(row)
			return true
		case ctx.Err() != nil: // the lease is lost, or the service stops
			return false
		case answer.Status == http.StatusGone:
			r.failed(w, answer)
			if err := r.webhooks.Disable(ctx, r.id, "the receiver answered "+answer.Problem); err != nil {
				r.log.Warn("cannot disable a webhook whose receiver is gone; trying again", "webhook", r.id, "error", err)
			}
			return false
		}
		failures := r.failed(w, answer)
		hopeless := r.hopeless(row)
		if hopeless {
			r.giveUp(row, tries)
		}
		changed, ok := r.backOff(ctx, w, failures)
		switch {
		case !ok:
			return false
		case hopeless:
			return true
		case !control.EventWanted(changed, row):
			r.move(row.Position)
			return true
		}
		w = changed
	}
}

// hopeless says that an event that was just refused is not tried again. Its age
// alone does not count: it may have waited for the service, or for others.
func (r *round) hopeless(row history.AuditRow) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.since) > r.patience && time.Since(row.At.Time()) > r.patience
}

// retryAfter is how long to wait after so many failures in a row, about.
func (c *Courier) retryAfter(failures int) time.Duration {
	return min(longestRetry, c.retry<<min(failures-1, 20))
}

// spent is how long it took a receiver to fail so many times in a row, about.
// Progress keeps the number; the time in which no replica ran does not count.
func (c *Courier) spent(failures int) (d time.Duration) {
	for i := range failures {
		d += c.retryAfter(i + 1)
	}
	return d
}

// backOff waits longer after each failure, or until the webhook is changed: then
// somebody has perhaps mended it. It is false when the round must end.
func (r *round) backOff(ctx context.Context, w *mesh.Webhook, failures int) (*mesh.Webhook, bool) {
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

func (r *round) delivered(row history.AuditRow) {
	r.metrics.deliveries.WithLabelValues(outcomeDelivered).Inc()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.Failures > 0 {
		r.log.Info("the receiver of a webhook works again", "webhook", r.id, "failures", r.at.Failures)
	}
	r.at.Rev, r.at.Index, r.at.Failures, r.at.LastSuccess = row.Position.Rev, row.Position.Index, 0, r.ledger.Now()
	r.news = true
}

// failed returns how many attempts in a row have failed.
func (r *round) failed(w *mesh.Webhook, answer control.WebhookAnswer) int {
	r.metrics.deliveries.WithLabelValues(outcomeFailed).Inc()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.Failures == 0 {
		r.since = time.Now()
		r.log.Warn("the receiver of a webhook does not take events; trying again for a day", "webhook", w.ID, "description", w.Description, "problem", answer.Problem)
	}
	r.at.Failures++
	r.at.LastFailure, r.at.LastAnswer, r.news = r.ledger.Now(), cut(answer.Problem), true
	return r.at.Failures
}

// giveUp leaves an event to people.
func (r *round) giveUp(row history.AuditRow, tries int) {
	r.metrics.deliveries.WithLabelValues(outcomeDead).Inc()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Warn("an event is given up; look with: fairlead webhooks failed", "webhook", r.id, "event", row.Position.String(), "name", control.EventName(row), "problem", r.at.LastAnswer)
	r.letters = append(r.letters, mesh.DeadLetter{
		Webhook: r.id, Rev: row.Position.Rev, Index: row.Position.Index, Event: control.EventName(row), Attempts: tries, Answer: r.at.LastAnswer,
	})
	r.at.Rev, r.at.Index, r.news = row.Position.Rev, row.Position.Index, true
}

func cut(text string) string {
	if len(text) > maxLastAnswer {
		text = text[:maxLastAnswer]
	}
	return shown([]byte(text))
}
