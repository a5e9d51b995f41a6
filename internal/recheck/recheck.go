// Package recheck regularly asks identity providers whether people still have their accounts: it exchanges the refresh
// tokens that are due, and reports the answers to the use cases.
//
// It decides only what an answer means. Which tokens are due, and what follows from an answer, is decided in control. Every
// replica runs it; a claim in the ledger makes sure that only one of them uses a token.
package recheck

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/oidc"
	"github.com/fairlead-mesh/fairlead/internal/periodic"
)

const (
	// lookEvery is how often the server looks for tokens that are due.
	lookEvery = time.Second
	// maxAtOnce is how many tokens a replica exchanges at the same time, and maxPerLook how many before it looks again
	// whether the provider can be reached.
	maxAtOnce  = 8
	maxPerLook = 256
	// askLimit is longer than two requests to a provider take, and UserInfo. saveLimit is how long a result may take to
	// be saved.
	askLimit  = 40 * time.Second
	saveLimit = 15 * time.Second
)

// Config configures a Loop. Every field is required.
type Config struct {
	Rechecks   *control.Rechecks
	Providers  []*oidc.Provider
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Loop asks providers about the people whose turn it is.
type Loop struct {
	rechecks  *control.Rechecks
	providers map[string]*oidc.Provider // by issuer
	log       *slog.Logger
	results   *prometheus.CounterVec
}

// New returns a loop.
func New(c Config) *Loop {
	l := &Loop{rechecks: c.Rechecks, providers: map[string]*oidc.Provider{}, log: c.Log}
	for _, p := range c.Providers {
		l.providers[p.Issuer()] = p
	}
	l.results = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mesh_rechecks_total", Help: "Refresh tokens of people that were exchanged, by result.",
	}, []string{"result"})
	c.Registerer.MustRegister(l.results, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "mesh_rechecks_failing", Help: "People who cannot be rechecked at the moment, because the identity provider gives no useful answer.",
	}, func() float64 { return float64(l.rechecks.Unchecked().People) }))
	for _, r := range []string{confirmed, refused, failed} {
		l.results.WithLabelValues(r)
	}
	return l
}

// The results that are counted.
const (
	confirmed = "confirmed"
	refused   = "refused"
	failed    = "failed"
)

// Run asks about people until ctx ends. A request in progress is completed, so that its answer is not lost.
func (l *Loop) Run(ctx context.Context) error {
	return periodic.Run(ctx, lookEvery, func() { l.look(ctx) })
}

func (l *Loop) look(ctx context.Context) {
	reachable := func(issuer string) bool {
		p := l.providers[issuer]
		return p != nil && p.Check(ctx) == nil // an outage says nothing about people, and could use up their tokens
	}
	_ = l.rechecks.Discard(ctx) // the ledger reports its errors itself, and the next look tries again
	for range maxPerLook / maxAtOnce {
		if ctx.Err() != nil {
			return
		}
		claims, err := l.rechecks.Claim(ctx, maxAtOnce, reachable)
		if err != nil || len(claims) == 0 { // the ledger reports its errors itself
			return
		}
		var wait sync.WaitGroup
		for _, c := range claims {
			wait.Go(func() { l.ask(context.WithoutCancel(ctx), c) })
		}
		wait.Wait()
	}
}

// ask exchanges one refresh token. A refusal counts only if the provider repeats it at once. The same token is used
// for both requests: a refused token has not been used up.
func (l *Loop) ask(ctx context.Context, c control.Claim) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	p := l.providers[c.Issuer]
	renewal, err := p.Refresh(ctx, c.Token)
	if outcome(err) == oidc.Refused {
		renewal, err = p.Refresh(ctx, c.Token)
	}
	saving, done := context.WithTimeout(context.WithoutCancel(ctx), saveLimit)
	defer done()
	if err == nil {
		l.results.WithLabelValues(confirmed).Inc()
		// The token comes first: the one before it may no longer work.
		if err := l.rechecks.Confirm(saving, c, renewal.Token); err != nil {
			l.log.Error("new refresh token not saved; the person may have to sign in again", "user", c.User, "error", err)
			return
		}
		l.update(ctx, p, c, renewal)
		return
	}
	var saved error
	switch outcome(err) {
	case oidc.Refused:
		l.results.WithLabelValues(refused).Inc()
		_, saved = l.rechecks.Reject(saving, c, true)
	case oidc.Rejected:
		var r control.Rejection
		if r, saved = l.rechecks.Reject(saving, c, false); r == control.RejectionLater {
			l.failed(c, err)
		}
		l.results.WithLabelValues(failed).Inc()
	case oidc.Unknown, oidc.Unsent, oidc.Deferred:
		l.results.WithLabelValues(failed).Inc()
		l.failed(c, err)
		saved = l.rechecks.Postpone(saving, c, outcome(err) == oidc.Unknown)
	}
	if saved != nil {
		l.log.Error("result of a recheck not saved", "user", c.User, "error", saved)
	}
}

// outcome returns how a refresh ended; Unsent if it succeeded.
func outcome(err error) oidc.Outcome {
	failure := new(oidc.RefreshError)
	if errors.As(err, &failure) {
		return failure.Outcome
	}
	return oidc.Unsent
}

// update saves the groups of the person, which may have changed.
func (l *Loop) update(ctx context.Context, p *oidc.Provider, c control.Claim, renewal oidc.Renewal) {
	who, err := p.Identify(ctx, renewal)
	if err != nil {
		return // the provider says nothing about the person, which is allowed
	}
	groups, _ := control.GroupNames(who.Groups)
	person := control.Person{
		Issuer: who.Issuer, Subject: who.Subject, Email: who.Email, DisplayName: who.DisplayName, PictureURL: who.Picture,
		Groups: groups, GroupsUnknown: who.GroupsUnknown,
	}
	if err := l.rechecks.Update(ctx, c, person); err != nil {
		l.log.Warn("user not updated after a recheck", "user", c.User, "error", err)
	}
}

// failed logs that a person could not be rechecked, the first time only.
func (l *Loop) failed(c control.Claim, err error) {
	if !c.Failing {
		l.log.Warn("recheck failed; the person keeps access and the server retries", "user", c.User, "issuer", c.Issuer, "reason", err)
	}
}

// Warning says how many people cannot be rechecked, or returns "". It names nobody, because strangers read it.
func (l *Loop) Warning() string {
	who := l.rechecks.Unchecked()
	people := "1 person"
	switch {
	case who.People == 0:
		return ""
	case who.People > 1:
		people = fmt.Sprintf("%d people", who.People)
	}
	return fmt.Sprintf("%s could not be rechecked since %s, because the identity provider does not answer as it should. They keep their access. The log says why; search for \"recheck failed\"",
		people, who.Since.Time().UTC().Format(time.RFC3339))
}
