package control

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	mathrand "math/rand/v2"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

const (
	// claimLifetime is longer than a replica takes to ask the provider twice, and to save
	// the result. A claim that is older belongs to a replica that died.
	claimLifetime = time.Minute
	// recheckRetry is how soon the provider is asked again if it gave no useful answer.
	recheckRetry = 5 * time.Minute
	// overdueAfter is how long after it was due a recheck counts as failed, although nobody
	// has asked: the provider is down, or no replica runs.
	overdueAfter = 2 * time.Minute
	// recheckReason is the reason of changes that a recheck makes.
	recheckReason = "recheck"
)

// Rechecks implements what the server does with the refresh tokens of people who signed in:
// it asks the provider regularly whether it still accepts them.
//
// With many providers, a refresh token works once. A replica therefore claims it in the
// ledger before it asks. If the replica dies before it has saved the answer, the token may
// be used up. The next refusal then only means that the person has to sign in again.
type Rechecks struct {
	*core
	tokens *identity.TokenSealer
	every  map[string]time.Duration // by issuer; zero means never
}

// SignedIn creates or updates the user of a person who signed in, and stores the refresh
// token.
func (s *Rechecks) SignedIn(ctx context.Context, a mesh.Actor, p Person, token string) (*mesh.User, error) {
	a.Kind, a.ID, a.Name = mesh.ActorUser, p.ID(), p.Label()
	every := s.interval(p.Issuer)
	return commitRoutes(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.User, []mesh.Event, error) {
		user, evs, err := s.decideUser(w, now, p)
		if err != nil {
			return nil, nil, err
		}
		if released, ok := release(user); ok {
			user, evs = released, append(evs, mesh.UserPut{User: released})
		}
		return user, append(evs, mesh.RecheckPut{Recheck: &mesh.Recheck{
			ID: user.ID, Issuer: p.Issuer, Token: s.tokens.SealToken(tokenOwner(user.ID), token), Due: now.Add(every), ConfirmedAt: now, ProviderSession: p.Session,
		}}), nil
	})
}

// Enabled reports whether refresh tokens of a provider are used.
func (s *Rechecks) Enabled(issuer string) bool { return s.tokens != nil && s.every[issuer] > 0 }

func tokenOwner(id mesh.UserID) string { return "user " + id.String() }

// interval returns the time until the next check, at most what is configured. It varies, so
// that people who signed in at the same time are not checked at the same time.
func (s *Rechecks) interval(issuer string) time.Duration {
	every := s.every[issuer]
	return every - mathrand.N(every/10+1) //nolint:gosec // it only spreads load
}

// Claim is the right to use a refresh token.
type Claim struct {
	User   mesh.UserID
	Issuer string
	Token  string

	// Failing says that the provider gave no useful answer the last time.
	Failing bool

	id    string
	cause mesh.SuspensionSource // why it was due; the recheck itself has only causes that are newer
}

// Claim claims refresh tokens that are due, the oldest first. Providers for which ask
// returns false are left out.
func (s *Rechecks) Claim(ctx context.Context, limit int, ask func(issuer string) bool) ([]Claim, error) {
	issuers, useful := map[string]bool{}, false
	for _, r := range s.due(s.ledger.World().Snapshot, s.ledger.Now(), nil) {
		if _, asked := issuers[r.Issuer]; !asked {
			issuers[r.Issuer] = ask(r.Issuer)
			useful = useful || issuers[r.Issuer]
		}
	}
	if !useful {
		return nil, nil
	}
	type result struct {
		claims []Claim
		lost   []mesh.UserID
	}
	out, err := commit(ctx, s.core, s.actor(), func(w *policy.World, now mesh.Time) (out result, evs []mesh.Event, _ error) {
		due := s.due(w.Snapshot, now, issuers)
		for _, r := range due[:min(limit, len(due))] {
			token, ok := s.tokens.OpenToken(tokenOwner(r.ID), r.Token)
			if !ok { // sealed with another key
				out.lost, evs = append(out.lost, r.ID), append(evs, mesh.RecheckGone{ID: r.ID})
				continue
			}
			claimed := *r
			claimed.Doubt = r.Doubt || r.Claim != ""
			claimed.Claim, claimed.ClaimedAt, claimed.Cause = rand.Text(), now, ""
			evs = append(evs, mesh.RecheckPut{Recheck: &claimed})
			out.claims = append(out.claims, Claim{User: r.ID, Issuer: r.Issuer, Token: token, Failing: r.FailingSince != 0, id: claimed.Claim, cause: r.Cause})
		}
		return out, evs, nil
	})
	for _, id := range out.lost {
		s.log.Warn("refresh token cannot be decrypted, because the server has another key now; the person is rechecked after the next sign-in", "user", id)
	}
	return out.claims, err
}

// due returns the tokens that are due, the oldest first, of the issuers that are true. If
// issuers is nil, it returns those of all.
func (s *Rechecks) due(w *mesh.Snapshot, now mesh.Time, issuers map[string]bool) (due []*mesh.Recheck) {
	stranger := strangers(w)
	for r := range w.Rechecks.All() {
		switch {
		case !r.Due.Reached(now) || !s.Enabled(r.Issuer) || issuers != nil && !issuers[r.Issuer]:
		case r.Claim != "" && now < r.ClaimedAt.Add(claimLifetime): // a replica is asking
		default:
			if u, ok := w.Users.Get(r.ID); ok && !u.Suspended() && !stranger(u) {
				due = append(due, r)
			}
		}
	}
	slices.SortFunc(due, func(a, b *mesh.Recheck) int { return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID)) })
	return due
}

func (s *Rechecks) actor() mesh.Actor {
	return mesh.Actor{Kind: mesh.ActorServer, Reason: recheckReason}
}

// held returns the recheck that a claim is about. It returns false if the person has signed in again in the
// meantime, or another replica has taken over.
func held(w *policy.World, c Claim) (mesh.Recheck, *mesh.User, bool) {
	r, ok := w.Rechecks.Get(c.User)
	u, known := w.Users.Get(c.User)
	if !ok || !known || r.Claim != c.id {
		return mesh.Recheck{}, nil, false
	}
	next := *r
	next.Claim, next.ClaimedAt = "", 0
	return next, u, true
}

// nextDue returns when the provider is asked next after a claim has ended. If there is a
// cause, the person was signed out after the provider was asked, and it is asked at once.
func nextDue(r mesh.Recheck, now mesh.Time, every time.Duration) mesh.Time {
	if r.Cause != "" {
		return now
	}
	return now.Add(every)
}

// Confirm stores the token that replaces the one of a claim, after the provider has
// accepted it.
func (s *Rechecks) Confirm(ctx context.Context, c Claim, token string) error {
	every := s.interval(c.Issuer)
	_, err := commit(ctx, s.core, s.actor(), func(w *policy.World, now mesh.Time) (none nothing, evs []mesh.Event, _ error) {
		r, u, ok := held(w, c)
		if !ok {
			return none, nil, nil
		}
		r.Token, r.Due, r.ConfirmedAt, r.FailingSince, r.Doubt, r.Refused = s.tokens.SealToken(tokenOwner(c.User), token), nextDue(r, now, every), now, 0, false, false
		evs = append(evs, mesh.RecheckPut{Recheck: &r})
		if released, ok := release(u); ok {
			evs = append(evs, mesh.UserPut{User: released})
		}
		return none, evs, nil
	})
	return err
}

// Update updates the user of a claim with what the provider says about the person now.
func (s *Rechecks) Update(ctx context.Context, c Claim, p Person) error {
	_, err := commitRoutes(ctx, s.core, s.actor(), func(w *policy.World, now mesh.Time) (none nothing, evs []mesh.Event, _ error) {
		if u, ok := userOf(w.Snapshot, p); !ok || u.ID != c.User || u.Suspended() {
			return none, nil, nil
		}
		_, evs, err := s.decideUser(w, now, p)
		return none, evs, err
	})
	return err
}

// Postpone releases a claim after the provider gave no useful answer. used says that the
// token may have been used up.
func (s *Rechecks) Postpone(ctx context.Context, c Claim, used bool) error {
	wait := min(s.interval(c.Issuer), recheckRetry)
	_, err := commit(ctx, s.core, s.actor(), func(w *policy.World, now mesh.Time) (none nothing, _ []mesh.Event, _ error) {
		r, _, ok := held(w, c)
		if !ok {
			return none, nil, nil
		}
		r.Doubt, r.Due, r.Cause, r.FailingSince = r.Doubt || used, now.Add(wait), cmp.Or(r.Cause, c.cause), cmp.Or(r.FailingSince, now)
		return none, []mesh.Event{mesh.RecheckPut{Recheck: &r}}, nil
	})
	return err
}

// Rejection is what follows if a provider does not accept a refresh token.
type Rejection string

// The rejections.
const (
	// RejectionNone means that the claim had ended, and nothing was changed.
	RejectionNone Rejection = "none"
	// RejectionSuspended means that the user was suspended.
	RejectionSuspended Rejection = "suspended"
	// RejectionHeld means that an administrator has to decide.
	RejectionHeld Rejection = "held"
	// RejectionSignIn means that the token may have been used up by a request whose end is
	// unknown. The person's sessions end, and the next sign-in brings a new token.
	RejectionSignIn Rejection = "sign in again"
	// RejectionKept means that the user keeps the access: it is the last administrator, or
	// somebody whom an administrator has restored.
	RejectionKept Rejection = "kept"
	// RejectionLater means that the provider is asked again.
	RejectionLater Rejection = "later"
)

// Reject ends a claim after the provider has rejected the token. left says that the provider
// has said twice that the grant is no longer valid: only then is the user suspended. An answer
// that says nothing about the token is for Postpone.
func (s *Rechecks) Reject(ctx context.Context, c Claim, left bool) (Rejection, error) {
	type result struct {
		rejection Rejection
		user      *mesh.User
		source    mesh.SuspensionSource
	}
	every := s.interval(c.Issuer)
	out, err := commitRoutes(ctx, s.core, s.actor(), func(w *policy.World, now mesh.Time) (result, []mesh.Event, error) {
		r, u, ok := held(w, c)
		if !ok || u.Suspended() {
			return result{rejection: RejectionNone}, nil, nil
		}
		r.Due = nextDue(r, now, every)
		source := cmp.Or(c.cause, mesh.SuspendedByRecheck)
		put := mesh.RecheckPut{Recheck: &r}
		switch {
		case r.Doubt:
			evs := []mesh.Event{mesh.RecheckGone{ID: r.ID}}
			return result{RejectionSignIn, u, source}, append(evs, endSessions(w.Snapshot, u.ID)...), nil
		case !left:
			r.Cause, r.FailingSince = cmp.Or(r.Cause, c.cause), cmp.Or(r.FailingSince, now)
			return result{RejectionLater, u, source}, []mesh.Event{put}, nil
		}
		r.FailingSince = 0
		switch {
		case r.Refused:
			return result{RejectionKept, u, source}, []mesh.Event{mesh.RecheckGone{ID: r.ID}}, nil
		case s.keepAdmin(w, s.actor(), u.ID) != nil:
			return result{RejectionKept, u, source}, []mesh.Event{put}, nil
		case s.braked(w, now):
			if u.Held() {
				return result{RejectionNone, u, source}, []mesh.Event{put}, nil
			}
			return result{RejectionHeld, u, source}, []mesh.Event{put, mesh.UserPut{User: u.Hold(source, now)}}, nil
		}
		r.Refused = true
		return result{RejectionSuspended, u, source}, []mesh.Event{put, mesh.UserPut{User: u.Suspend(source, now)}}, nil
	})
	if err != nil {
		return "", err
	}
	switch out.rejection {
	case RejectionSuspended:
		s.log.Info("user suspended", "user", out.user.Name, "source", out.source, "nodes", s.ledger.World().Nodes.OwnedCount(out.user.ID))
	case RejectionHeld:
		s.logHeld(out.user, out.source)
	case RejectionSignIn:
		s.log.Warn("refresh token lost, because a replica or the provider did not finish an earlier recheck; the sessions of the person have ended, and the person is rechecked after the next sign-in", "user", out.user.Name)
	case RejectionKept:
		s.log.Warn("identity provider no longer accepts a person, who keeps access: it is the last administrator, or an administrator has restored the user", "user", out.user.Name)
	case RejectionNone, RejectionLater:
	}
	return out.rejection, nil
}

// Unchecked is who cannot be rechecked at the moment.
type Unchecked struct {
	People int
	// Since is when the first of them could not be rechecked.
	Since mesh.Time
}

// Unchecked returns how many people cannot be rechecked: the provider gives no useful answer,
// or nobody could ask it for a while.
func (s *Rechecks) Unchecked() (out Unchecked) {
	w, now := s.ledger.World().Snapshot, s.ledger.Now()
	stranger := strangers(w)
	for r := range w.Rechecks.All() {
		since := r.FailingSince
		if since == 0 && now > r.Due.Add(overdueAfter) {
			since = r.Due
		}
		if since == 0 || !s.Enabled(r.Issuer) {
			continue
		}
		if u, ok := w.Users.Get(r.ID); !ok || u.Suspended() || stranger(u) {
			continue // nobody asks about them
		}
		if out.People++; out.People == 1 || since < out.Since {
			out.Since = since
		}
	}
	return out
}

// Discard deletes the refresh tokens of providers for which rechecks are switched off. Tokens
// of providers that are not configured stay: a mistake in the configuration must not end the
// rechecks of everyone until they sign in again.
func (s *Rechecks) Discard(ctx context.Context) error {
	off := func(r *mesh.Recheck) bool {
		every, configured := s.every[r.Issuer]
		return configured && every == 0
	}
	found := func(w *mesh.Snapshot) (evs []mesh.Event) {
		for r := range w.Rechecks.All() {
			if off(r) {
				evs = append(evs, mesh.RecheckGone{ID: r.ID})
			}
		}
		return evs
	}
	if len(found(s.ledger.World().Snapshot)) == 0 {
		return nil
	}
	deleted, err := commit(ctx, s.core, s.actor(), func(w *policy.World, _ mesh.Time) (int, []mesh.Event, error) {
		evs := found(w.Snapshot)
		return len(evs), evs, nil
	})
	if err == nil && deleted > 0 {
		s.log.Info("refresh tokens deleted, because rechecks are switched off", "people", deleted)
	}
	return err
}

// LoggedOut ends the sessions of a person whom the provider has signed out, and makes the
// provider be asked about the person at once. If the person has no Subject, only the sessions
// with the person's Session end. id identifies the message of the provider, which counts once.
func (s *Rechecks) LoggedOut(ctx context.Context, a mesh.Actor, p Person, id string) error {
	u, ok := userOf(s.ledger.World().Snapshot, p)
	if p.Subject == "" {
		u, ok = userWith(s.ledger.World().Snapshot, p.Session)
	}
	if !ok {
		return nil // somebody who has never signed in here, or whose session has ended
	}
	a.Kind, a.Reason = mesh.ActorServer, string(mesh.SuspendedByLogout)
	a.Once = mesh.SignInOnce("logout "+u.ID.String(), p.Issuer+"\n"+id, p.ID())
	ended, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (int, []mesh.Event, error) {
		evs := endSessionsIf(w.Snapshot, func(v *mesh.Session) bool {
			return v.User == u.ID && (p.Subject != "" || v.ProviderSession == p.Session)
		})
		sessions := len(evs)
		if r, ok := w.Rechecks.Get(u.ID); ok {
			due := *r
			due.Due, due.Cause = now, mesh.SuspendedByLogout
			evs = append(evs, mesh.RecheckPut{Recheck: &due})
		}
		return sessions, evs, nil
	})
	var done *ledger.AlreadyDone
	switch {
	case errors.As(err, &done):
		return refuse(Conflict, "", "the logout token was already used")
	case err == nil:
		s.logFor(a).Info("person signed out by the identity provider", "user", u.Name, "sessions", ended)
	}
	return err
}

// userWith returns the user who has signed in with a session at a provider.
func userWith(w *mesh.Snapshot, session string) (*mesh.User, bool) {
	if session == "" {
		return nil, false
	}
	for v := range w.Sessions.All() {
		if v.ProviderSession == session {
			return w.Users.Get(v.User)
		}
	}
	for r := range w.Rechecks.All() {
		if r.ProviderSession == session {
			return w.Users.Get(r.ID)
		}
	}
	return nil, false
}
