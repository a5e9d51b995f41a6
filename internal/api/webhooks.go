package api

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// webhooks handles the operations on webhooks.
type webhooks struct {
	*core
	control *control.Webhooks
}

// ListWebhooks implements GET /api/v1/webhooks.
func (s *webhooks) ListWebhooks(w http.ResponseWriter, r *http.Request) {
	snap := s.ledger.World().Snapshot
	out := openapi.WebhookList{Webhooks: []openapi.Webhook{}}
	for hook := range snap.Webhooks.All() {
		out.Webhooks = append(out.Webhooks, webhookFor(r, hook))
	}
	reply(w, snap, out)
}

// CreateWebhook implements POST /api/v1/webhooks.
func (s *webhooks) CreateWebhook(w http.ResponseWriter, r *http.Request) {
	var in openapi.WebhookCreation
	if err := decode(w, r, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	if !s.opens(w, r, reads(mesh.NounHistory)) { // because the receiver gets the history
		return
	}
	hook, secret, err := s.control.Create(r.Context(), actor(r), control.WebhookChange{
		URL: &in.URL, Description: in.Description, Events: &in.Events, Enabled: in.Enabled,
	})
	s.replySecret(w, r, hook, secret, err)
}

func (s *webhooks) replySecret(w http.ResponseWriter, r *http.Request, hook *mesh.Webhook, secret string, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, s.ledger.World().Snapshot, openapi.WebhookSecretResult{Webhook: webhookShape(hook), Secret: secret})
}

func (s *webhooks) replayWebhookSecret(c replayed) (any, error) {
	result, err := s.replayWebhook(c)
	if err != nil {
		return nil, err
	}
	return nil, &shownOnce{"webhook secret", c.receipt.Object, result.(openapi.WebhookResult).Webhook}
}

// GetWebhook implements GET /api/v1/webhooks/{webhookId}.
func (s *webhooks) GetWebhook(w http.ResponseWriter, r *http.Request, webhookID string) {
	id, err := webhookRef(webhookID)
	var hook *mesh.Webhook
	if err == nil {
		hook, err = s.control.Find(r.Context(), id)
	}
	s.replyWebhook(w, r, hook, err)
}

func (s *webhooks) replyWebhook(w http.ResponseWriter, r *http.Request, hook *mesh.Webhook, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, s.ledger.World().Snapshot, openapi.WebhookResult{Webhook: webhookFor(r, hook)})
}

func (*webhooks) replayWebhook(c replayed) (any, error) {
	id, err := webhookRef(c.receipt.Object)
	if err != nil {
		return nil, err
	}
	w, ok := c.snap.Webhooks.Get(id)
	if !ok {
		return nil, errAbsent
	}
	return openapi.WebhookResult{Webhook: webhookFor(c.r, w)}, nil
}

// ChangeWebhook implements PATCH /api/v1/webhooks/{webhookId}.
func (s *webhooks) ChangeWebhook(w http.ResponseWriter, r *http.Request, webhookID string) {
	var in openapi.WebhookChange
	err := decode(w, r, &in)
	if err == nil && (in.URL != nil || in.Events != nil) && !s.opens(w, r, reads(mesh.NounHistory)) {
		return
	}
	var id mesh.WebhookID
	if err == nil {
		id, err = webhookRef(webhookID)
	}
	var hook *mesh.Webhook
	if err == nil {
		hook, err = s.control.Change(r.Context(), actor(r), id, control.WebhookChange{
			URL: in.URL, Description: in.Description, Events: in.Events, Enabled: in.Enabled,
		})
	}
	s.replyWebhook(w, r, hook, err)
}

// DeleteWebhook implements DELETE /api/v1/webhooks/{webhookId}.
func (s *webhooks) DeleteWebhook(w http.ResponseWriter, r *http.Request, webhookID string) {
	id, err := webhookRef(webhookID)
	if err == nil {
		err = s.control.Delete(r.Context(), actor(r), id)
	}
	s.done(w, r, err)
}

// RotateWebhookSecret implements POST /api/v1/webhooks/{webhookId}/rotate.
func (s *webhooks) RotateWebhookSecret(w http.ResponseWriter, r *http.Request, webhookID string) {
	id, err := webhookRef(webhookID)
	var hook *mesh.Webhook
	var secret string
	if err == nil {
		hook, secret, err = s.control.Rotate(r.Context(), actor(r), id)
	}
	s.replySecret(w, r, hook, secret, err)
}

// TestWebhook implements POST /api/v1/webhooks/{webhookId}/test.
func (s *webhooks) TestWebhook(w http.ResponseWriter, r *http.Request, webhookID string) {
	id, err := webhookRef(webhookID)
	var answer control.WebhookAnswer
	if err == nil {
		answer, err = s.control.Test(r.Context(), actor(r), id)
	}
	s.replyDelivery(w, r, answer, err)
}

func (s *webhooks) replyDelivery(w http.ResponseWriter, r *http.Request, a control.WebhookAnswer, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, s.ledger.World().Snapshot, openapi.WebhookDelivery{
		Delivered: a.Delivered, Status: a.Status, Millis: int(a.Took.Milliseconds()), Reply: a.Reply, Problem: a.Problem,
	})
}

// ListFailedEvents implements GET /api/v1/webhooks/{webhookId}/failed.
func (s *webhooks) ListFailedEvents(w http.ResponseWriter, r *http.Request, webhookID string, p openapi.ListFailedEventsParams) {
	id, err := webhookRef(webhookID)
	var before mesh.DeadLetterID
	if err == nil && or(p.Cursor) != "" {
		if before, err = letterRef(*p.Cursor); err != nil {
			err = &badRequest{"cursor", "invalid cursor: use the value of next from the previous response"}
		}
	}
	snap := s.ledger.World().Snapshot
	var letters []mesh.DeadLetter
	var more bool
	if err == nil {
		letters, more, err = s.control.DeadLetters(r.Context(), id, before, rowLimit(p.Limit))
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	out := openapi.FailedEventList{Events: []openapi.FailedEvent{}}
	for _, l := range letters {
		out.Events = append(out.Events, openapi.FailedEvent{
			ID: l.ID.String(), EventID: history.Position{Rev: l.Rev, Index: l.Index}.String(), Event: l.Event, Attempts: l.Attempts, Answer: l.Answer, At: l.At.Time(),
		})
	}
	if more {
		out.Next = letters[len(letters)-1].ID.String()
	}
	reply(w, snap, out)
}

// RedeliverEvent implements POST /api/v1/webhooks/{webhookId}/failed/{failedId}/redeliver.
func (s *webhooks) RedeliverEvent(w http.ResponseWriter, r *http.Request, webhookID, failedID string) {
	id, err := webhookRef(webhookID)
	var letter mesh.DeadLetterID
	if err == nil {
		letter, err = letterRef(failedID)
	}
	a := actor(r)
	a.Once = nil // a repeated request sends the event again
	var answer control.WebhookAnswer
	if err == nil {
		answer, err = s.control.Redeliver(r.Context(), a, id, letter)
	}
	s.replyDelivery(w, r, answer, err)
}

// webhookRef parses the id of a webhook. Text that is not an id is reported as not found.
func webhookRef(text string) (mesh.WebhookID, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 || id > mesh.MaxID {
		return 0, &control.Refusal{Reason: control.NotFound, Text: fmt.Sprintf("unknown webhook %.50q; list webhooks with: fairlead webhooks list", text)}
	}
	return mesh.WebhookID(id), nil
}

func letterRef(text string) (mesh.DeadLetterID, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 || id > mesh.MaxID {
		return 0, &control.Refusal{Reason: control.NotFound, Text: fmt.Sprintf("unknown failed event %.50q; list failed events with: fairlead webhooks failed", text)}
	}
	return mesh.DeadLetterID(id), nil
}

func webhookShape(w *mesh.Webhook) openapi.Webhook {
	p := w.Progress
	return openapi.Webhook{
		ID: w.ID.String(), URL: w.URL, Description: w.Description, Events: list(w.Events), Enabled: !w.Disabled,
		CreatedAt: w.CreatedAt.Time(), UpdatedAt: w.UpdatedAt.Time(),
		Delivery: openapi.WebhookState{Failures: p.Failures, LastSuccess: moment(p.LastSuccess), LastFailure: moment(p.LastFailure), LastAnswer: p.LastAnswer},
	}
}

// webhookFor shows read-only callers only the host of the URL, because the path of a
// receiver may contain secrets.
func webhookFor(r *http.Request, w *mesh.Webhook) openapi.Webhook {
	shape := webhookShape(w)
	if !access(r).Allows(mesh.NounWebhooks, mesh.RoleOperator) {
		shape.URL = hostOf(w.URL)
	}
	return shape
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}

// describeWebhook returns a webhook for the audit log, which is sent to other receivers. It
// therefore omits the receiver's response and all of the URL but the host.
func describeWebhook(s *mesh.Snapshot, id mesh.WebhookID) (kind, name string, shape []byte) {
	w, ok := s.Webhooks.Get(id)
	return "webhook", id.String(), shapeOf(ok, func() any {
		recorded := webhookShape(w)
		recorded.URL, recorded.Delivery = hostOf(w.URL), openapi.WebhookState{}
		return recorded
	})
}

// webhookEvent is the body of a delivery: a change, its event name and its event type.
type webhookEvent struct {
	openapi.Change
	Event string `json:"event"`
	Type  string `json:"type"`
}

// EncodeWebhookEvent encodes a change as the body of a delivery.
func EncodeWebhookEvent(row history.AuditRow) []byte {
	change := changeShape(row)
	change.ID = control.EventID(row)
	return encoded(webhookEvent{change, control.EventName(row), control.EventType(row)})
}
