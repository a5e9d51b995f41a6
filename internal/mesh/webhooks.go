package mesh

// Webhook is a URL that events are delivered to.
type Webhook struct {
	ID          WebhookID `json:"id"`
	URL         string    `json:"url"`
	Description string    `json:"description,omitempty"`
	// Events lists names of events, or prefixes of names that end in .*; none means all.
	Events   []string `json:"events,omitempty"`
	Disabled bool     `json:"disabled,omitempty"`
	// The signing secret is derived from Salt and a key that is stored elsewhere.
	Salt      string `json:"salt"`
	CreatedAt Time   `json:"createdAt"`
	UpdatedAt Time   `json:"updatedAt"`

	// Progress changes often and has events of its own. WebhookPut does not change it.
	Progress WebhookProgress `json:"-"`
}

// WebhookProgress is how far events were delivered, and by which replica.
type WebhookProgress struct {
	// Rev and Index are the position in the history of the last event that was delivered
	// or given up on.
	Rev   Revision `json:"rev"`
	Index int      `json:"index" column:"idx"`
	// Replica is the only replica that may deliver, until Until.
	Replica string `json:"replica,omitempty"`
	Until   Time   `json:"until,omitempty"`
	// Failures counts the failed attempts since the last success.
	Failures    int  `json:"failures,omitempty"`
	LastSuccess Time `json:"lastSuccess,omitempty"`
	LastFailure Time `json:"lastFailure,omitempty"`
	// LastAnswer describes the last failure.
	LastAnswer string `json:"lastAnswer,omitempty"`
}

// WebhookPut adds or replaces a webhook, except its Progress.
type WebhookPut struct {
	Webhook *Webhook `json:"webhook"`
}

// Kind names the event in the log.
func (WebhookPut) Kind() Kind          { return KindWebhookPut }
func (e WebhookPut) valid() bool       { return e.Webhook != nil && valid(e.Webhook.ID) }
func (e WebhookPut) count(c *Counters) { c.Webhook = max(c.Webhook, e.Webhook.ID) }
func (e WebhookPut) apply(d *Draft) {
	w := *e.Webhook
	w.Progress = WebhookProgress{}
	if old, ok := d.s.Webhooks.Get(w.ID); ok {
		w.Progress = old.Progress
	}
	d.s.Webhooks.put(d.e, w.ID, &w)
}

// WebhookGone removes a webhook.
type WebhookGone struct {
	ID WebhookID `json:"id"`
}

// Kind names the event in the log.
func (WebhookGone) Kind() Kind       { return KindWebhookGone }
func (e WebhookGone) valid() bool    { return valid(e.ID) }
func (e WebhookGone) apply(d *Draft) { d.s.Webhooks.put(d.e, e.ID, nil) }

// WebhookMoved replaces the progress of a webhook. It does nothing if the webhook has
// been deleted.
type WebhookMoved struct {
	ID       WebhookID       `json:"id"`
	Progress WebhookProgress `json:"progress"`
}

// Kind names the event in the log.
func (WebhookMoved) Kind() Kind    { return KindWebhookMoved }
func (e WebhookMoved) valid() bool { return valid(e.ID) }
func (e WebhookMoved) apply(d *Draft) {
	change(d.e, &d.s.Webhooks, e.ID, func(w *Webhook) { w.Progress = e.Progress })
}

// DeadLetter is an event that could not be delivered in time. It is stored only in the
// history, not in snapshots.
type DeadLetter struct {
	ID      DeadLetterID `json:"id"`
	Webhook WebhookID    `json:"webhook"`
	// Rev and Index are the position of the event in the history, and Event its
	// name.
	Rev      Revision `json:"rev"`
	Index    int      `json:"index" column:"idx"`
	Event    string   `json:"event"`
	Attempts int      `json:"attempts"`
	Answer   string   `json:"answer,omitempty"`
	At       Time     `json:"at"` // when delivery was given up
}

// DeadLetterPut adds an event that could not be delivered in time.
type DeadLetterPut struct {
	Letter *DeadLetter `json:"letter"`
}

// Kind names the event in the log.
func (DeadLetterPut) Kind() Kind          { return KindDeadLetterPut }
func (e DeadLetterPut) valid() bool       { return e.Letter != nil && valid(e.Letter.ID) }
func (e DeadLetterPut) count(c *Counters) { c.DeadLetter = max(c.DeadLetter, e.Letter.ID) }
func (DeadLetterPut) apply(*Draft)        {} // it is only in the history

// DeadLetterGone removes an event that was delivered after all.
type DeadLetterGone struct {
	ID DeadLetterID `json:"id"`
}

// Kind names the event in the log.
func (DeadLetterGone) Kind() Kind    { return KindDeadLetterGone }
func (e DeadLetterGone) valid() bool { return valid(e.ID) }
func (DeadLetterGone) apply(*Draft)  {} // it is only in the history
