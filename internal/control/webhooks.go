package control

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

const (
	// maxWebhooks limits the number of deliveries that one change can cause.
	maxWebhooks           = 50
	maxWebhookURL         = 2000
	maxWebhookDescription = 200
	maxWebhookEvents      = 50
)

// Webhooks implements the use cases for webhooks.
type Webhooks struct {
	*core
	audit      *History
	secrets    *identity.WebhookSecrets
	deliver    func(context.Context, *mesh.Webhook, history.AuditRow) WebhookAnswer
	allowLocal bool
	sending    sync.Map // by mesh.WebhookID: a test or redelivery that waits for the receiver
}

// WebhookAnswer is the result of sending one event to a receiver.
type WebhookAnswer struct {
	Delivered bool
	Status    int           // HTTP status; zero if there was no response
	Took      time.Duration // until the response or the timeout
	Reply     string        // the beginning of the response body; not stored, because it may contain the URL
	Problem   string        // why it counts as not delivered
}

// WebhookChange is a change to a webhook; nil fields stay unchanged.
type WebhookChange struct {
	URL, Description *string
	Events           *[]string
	Enabled          *bool
}

func (c WebhookChange) check(s *Webhooks) error {
	if c.URL != nil {
		if err := s.checkURL(*c.URL); err != nil {
			return err
		}
	}
	if c.Description != nil {
		if err := checkText("description", *c.Description, maxWebhookDescription); err != nil {
			return err
		}
	}
	if c.Events == nil {
		return nil
	}
	if len(*c.Events) > maxWebhookEvents {
		return refuse(Invalid, "events", "events has more than %d names; use a wildcard such as node.* for all events of a kind", maxWebhookEvents)
	}
	for i, name := range *c.Events {
		if !KnownEvent(name) {
			return refuse(Invalid, fmt.Sprintf("events[%d]", i), "unknown event %.50q: use a name such as node.created, a wildcard such as node.*, or one of %v", name, eventTypes())
		}
	}
	return nil
}

// checkURL checks a receiver's URL. Host names are resolved and checked at delivery,
// because their addresses may change.
func (s *Webhooks) checkURL(text string) error {
	if err := checkText("url", text, maxWebhookURL); err != nil {
		return err
	}
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "https" && u.Scheme != "http", u.Hostname() == "":
		return refuse(Invalid, "url", "url must be a URL such as https://receiver.example.com/mesh")
	case u.User != nil:
		return refuse(Invalid, "url", "url must not contain a user name or password: receivers authenticate the server by its signature")
	case u.Fragment != "":
		return refuse(Invalid, "url", "url must not have a fragment (#), which is never sent")
	}
	host := u.Hostname()
	addr, err := netip.ParseAddr(host)
	if !s.allowLocal && (err == nil && s.IsLocal(addr) || strings.EqualFold(host, "localhost")) {
		return refuse(Invalid, "url", "%s is a local address or an address of the mesh; use another address, or set webhooks.allow_local to allow it", host)
	}
	return nil
}

// apply returns the changed copy of a webhook.
func (c WebhookChange) apply(w mesh.Webhook, now mesh.Time) *mesh.Webhook {
	if c.URL != nil {
		w.URL = *c.URL
	}
	if c.Description != nil {
		w.Description = *c.Description
	}
	if c.Events != nil {
		w.Events = slices.Compact(slices.Sorted(slices.Values(*c.Events)))
	}
	if c.Enabled != nil {
		w.Disabled = !*c.Enabled
	}
	w.UpdatedAt = now
	return &w
}

// fromNow moves a webhook's progress to the end of the revision that is being committed.
func fromNow(w *policy.World, p mesh.WebhookProgress) mesh.WebhookProgress {
	p.Rev, p.Index, p.Failures = w.Rev+1, math.MaxInt32, 0
	return p
}

// Create adds a webhook and returns it with its secret. The webhook receives events from
// now on.
func (s *Webhooks) Create(ctx context.Context, a mesh.Actor, c WebhookChange) (*mesh.Webhook, string, error) {
	if c.URL == nil {
		return nil, "", refuse(Invalid, "url", "url is required")
	}
	if err := c.check(s); err != nil {
		return nil, "", err
	}
	salt := s.secrets.NewSalt()
	made, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.Webhook, []mesh.Event, error) {
		if w.Webhooks.Len() >= maxWebhooks {
			return nil, nil, refuse(Conflict, "", "there are already %d webhooks, the maximum; delete one with: fairlead webhooks delete", maxWebhooks)
		}
		made := c.apply(mesh.Webhook{ID: w.Counters.Webhook + 1, Salt: salt, CreatedAt: now}, now)
		made.Progress = fromNow(w, mesh.WebhookProgress{})
		return made, []mesh.Event{mesh.WebhookPut{Webhook: made}, mesh.WebhookMoved{ID: made.ID, Progress: made.Progress}}, nil
	})
	if err != nil {
		return nil, "", err
	}
	s.logFor(a).Info("webhook created", "webhook", made.ID)
	return made, s.secrets.Secret(salt), nil
}

// findWebhook finds a webhook by its id.
func findWebhook(s *mesh.Snapshot, id mesh.WebhookID) (*mesh.Webhook, error) {
	w, ok := s.Webhooks.Get(id)
	if !ok {
		return nil, refuse(NotFound, "webhook", "unknown webhook %d; list webhooks with: fairlead webhooks list", id)
	}
	return w, nil
}

// edit applies a change to a copy of a webhook and commits it.
func (s *Webhooks) edit(ctx context.Context, a mesh.Actor, id mesh.WebhookID, edit func(mesh.Webhook, mesh.Time) *mesh.Webhook) (*mesh.Webhook, error) {
	changed, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.Webhook, []mesh.Event, error) {
		old, err := findWebhook(w.Snapshot, id)
		if err != nil {
			return nil, nil, err
		}
		changed := edit(*old, now)
		evs := []mesh.Event{mesh.WebhookPut{Webhook: changed}}
		if old.Disabled && !changed.Disabled { // events that happened while it was disabled are skipped
			changed.Progress = fromNow(w, old.Progress)
			evs = append(evs, mesh.WebhookMoved{ID: id, Progress: changed.Progress})
		}
		return changed, evs, nil
	})
	if err != nil {
		return nil, err
	}
	s.logFor(a).Info("webhook changed", "webhook", id, "enabled", !changed.Disabled, "reason", a.Reason)
	return changed, nil
}

// Change changes a webhook. A webhook that is enabled by it receives events from then on.
func (s *Webhooks) Change(ctx context.Context, a mesh.Actor, id mesh.WebhookID, c WebhookChange) (*mesh.Webhook, error) {
	if err := c.check(s); err != nil {
		return nil, err
	}
	return s.edit(ctx, a, id, c.apply)
}

// Rotate replaces the secret of a webhook and returns the new one. Events that the receiver
// refuses in the meantime are retried.
func (s *Webhooks) Rotate(ctx context.Context, a mesh.Actor, id mesh.WebhookID) (*mesh.Webhook, string, error) {
	salt := s.secrets.NewSalt()
	w, err := s.edit(ctx, a, id, func(w mesh.Webhook, now mesh.Time) *mesh.Webhook {
		w.Salt, w.UpdatedAt = salt, now
		return &w
	})
	if err != nil {
		return nil, "", err
	}
	return w, s.secrets.Secret(salt), nil
}

// Disable disables a webhook for a reason.
func (s *Webhooks) Disable(ctx context.Context, id mesh.WebhookID, reason string) error {
	_, err := s.edit(ctx, mesh.Actor{Kind: mesh.ActorServer, Reason: reason}, id, func(w mesh.Webhook, now mesh.Time) *mesh.Webhook {
		w.Disabled, w.UpdatedAt = true, now
		return &w
	})
	return err
}

// Delete deletes a webhook. Its undelivered events are deleted later.
func (s *Webhooks) Delete(ctx context.Context, a mesh.Actor, id mesh.WebhookID) error {
	_, err := s.ledger.Commit(ctx, a, func(w *policy.World, _ mesh.Time) ([]mesh.Event, error) {
		if _, err := findWebhook(w.Snapshot, id); err != nil {
			return nil, err
		}
		return []mesh.Event{mesh.WebhookGone{ID: id}}, nil
	})
	if err != nil {
		return err
	}
	s.logFor(a).Info("webhook deleted", "webhook", id)
	return nil
}

// Find finds a webhook, including one that another replica has just created.
func (s *Webhooks) Find(ctx context.Context, id mesh.WebhookID) (*mesh.Webhook, error) {
	w, err := findWebhook(s.ledger.World().Snapshot, id)
	if err != nil {
		if err := s.ledger.Sync(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
		}
		w, err = findWebhook(s.ledger.World().Snapshot, id)
	}
	return w, err
}

// sendNow sends one event to a receiver while the caller waits. It allows only one at a
// time per receiver, so that the server cannot be misused to flood others.
func (s *Webhooks) sendNow(ctx context.Context, w *mesh.Webhook, row history.AuditRow) (WebhookAnswer, error) {
	if _, busy := s.sending.LoadOrStore(w.ID, nil); busy {
		return WebhookAnswer{}, refuse(Conflict, "", "another test or redelivery of webhook %d is still in progress; try again in a moment", w.ID)
	}
	defer s.sending.Delete(w.ID)
	return s.deliver(ctx, w, row), nil
}

// Test sends a test event to a receiver, enabled or not, and returns the result.
func (s *Webhooks) Test(ctx context.Context, a mesh.Actor, id mesh.WebhookID) (WebhookAnswer, error) {
	w, err := s.Find(ctx, id)
	if err != nil {
		return WebhookAnswer{}, err
	}
	answer, err := s.sendNow(ctx, w, history.AuditRow{
		Position: history.Position{}, At: s.ledger.Now(), Actor: a, Kind: "webhook", Verb: "test", Object: id.String(),
	})
	if err != nil {
		return WebhookAnswer{}, err
	}
	s.logFor(a).Info("webhook tested", "webhook", id, "delivered", answer.Delivered, "status", answer.Status)
	return answer, nil
}

// DeadLetters returns the events that a receiver did not accept, newest first, with ids
// below before; zero means from the newest. A limit of zero means the default.
func (s *Webhooks) DeadLetters(ctx context.Context, id mesh.WebhookID, before mesh.DeadLetterID, limit int) (letters []mesh.DeadLetter, more bool, err error) {
	if limit, err = rowLimit(limit, maxRows); err != nil {
		return nil, false, err
	}
	if _, err := s.Find(ctx, id); err != nil {
		return nil, false, err
	}
	letters, err = s.history.DeadLetters(ctx, id, before, limit+1) // one more shows whether there is another page
	return letters[:min(limit, len(letters))], len(letters) > limit, err
}

// Redeliver resends an event that a receiver did not accept, and deletes it from the list
// if the receiver accepts it now.
func (s *Webhooks) Redeliver(ctx context.Context, a mesh.Actor, id mesh.WebhookID, letter mesh.DeadLetterID) (WebhookAnswer, error) {
	var none WebhookAnswer
	w, err := s.Find(ctx, id)
	if err != nil {
		return none, err
	}
	found, err := s.history.DeadLetters(ctx, id, letter+1, 1)
	if err != nil {
		return none, err
	}
	if len(found) == 0 || found[0].ID != letter {
		return none, refuse(NotFound, "letter", "webhook %d has no failed event %d; list failed events with: fairlead webhooks failed %d", id, letter, id)
	}
	at := history.Position{Rev: found[0].Rev, Index: found[0].Index}
	rows, err := s.audit.Changes(ctx, history.Position{Rev: at.Rev, Index: at.Index - 1}, at.Rev, 1)
	if errors.Is(err, history.ErrForgotten) || err == nil && (len(rows) == 0 || rows[0].Position != at) {
		return none, refuse(NotFound, "letter", "event %v is no longer stored: events are deleted after history.retention", at)
	}
	if err != nil {
		return none, err
	}
	answer, err := s.sendNow(ctx, w, rows[0])
	if err != nil {
		return none, err
	}
	answer.Reply = "" // only tests show it
	if answer.Delivered {
		_, err = s.ledger.Commit(ctx, a, func(*policy.World, mesh.Time) ([]mesh.Event, error) {
			return []mesh.Event{mesh.DeadLetterGone{ID: letter}}, nil
		})
	}
	s.logFor(a).Info("failed event redelivered", "webhook", id, "event", at.String(), "delivered", answer.Delivered, "status", answer.Status)
	return answer, err
}
