package control

import (
	"context"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

const (
	// SessionLifetime is how long a session is valid by default.
	SessionLifetime = 24 * time.Hour
	// maxSessions is how many sessions one person may have. A new one ends the oldest.
	maxSessions = 50
	// maxSessionText is the maximum length of the description of a session, in bytes.
	maxSessionText = 120
)

// PersonActor completes the actor of a request that a person makes.
func PersonActor(a mesh.Actor, u *mesh.User) mesh.Actor {
	a.Kind, a.ID, a.Name, a.User = mesh.ActorUser, u.ProviderID, u.Name, u.ID
	return a
}

// Sessions implements the use cases for sessions of people who signed in.
type Sessions struct {
	*core
	lifetime time.Duration
	sealer   *identity.CookieSealer // nil if nobody can sign in
}

// NewSession is the input for creating a session.
type NewSession struct {
	User        mesh.UserID
	Client      mesh.SessionClient
	Description string
	// ProviderSession is as in mesh.Session.
	ProviderSession string
}

// Create adds a session and returns it with its token, which is not stored.
func (s *Sessions) Create(ctx context.Context, a mesh.Actor, in NewSession) (*mesh.Session, string, error) {
	if err := checkText("description", in.Description, maxSessionText); err != nil {
		return nil, "", err
	}
	issued := identity.NewKey(identity.KindSession)
	session, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.Session, []mesh.Event, error) {
		return decideSession(w, now, in, issued, s.lifetime)
	})
	if err != nil {
		return nil, "", err
	}
	s.logFor(a).Info("session created", "session", session.ID, "user", session.User, "client", session.Client)
	return session, issued.Text, nil
}

func decideSession(w *policy.World, now mesh.Time, in NewSession, issued identity.Issued, lifetime time.Duration) (*mesh.Session, []mesh.Event, error) {
	u, ok := w.Users.Get(in.User)
	if !ok {
		return nil, nil, refuse(NotFound, "user", "unknown user; sign in again")
	}
	if err := mayHaveSessions(u); err != nil {
		return nil, nil, err
	}
	var evs []mesh.Event
	var own []*mesh.Session // oldest first
	for v := range w.Sessions.All() {
		if v.User == in.User {
			own = append(own, v)
		}
	}
	for len(own) >= maxSessions {
		evs, own = append(evs, mesh.SessionGone{ID: own[0].ID}), own[1:]
	}
	session := &mesh.Session{
		ID: w.Counters.Session + 1, Prefix: issued.Prefix, Hash: issued.Hash, User: in.User, Client: in.Client, Description: in.Description,
		ProviderSession: in.ProviderSession, Expiry: now.Add(lifetime), CreatedAt: now,
	}
	return session, append(evs, mesh.SessionPut{Session: session}), nil
}

// mayHaveSessions refuses people who cannot sign in at the moment.
func mayHaveSessions(u *mesh.User) error {
	if u.NeedsApproval {
		return refuse(Conflict, "user", "an administrator has to approve user %s first (fairlead users approve %s)", u.Name, u.Name)
	}
	return checkNotSuspended(u)
}

// Revoke ends a session. If of is set, it must be a session of that user.
func (s *Sessions) Revoke(ctx context.Context, a mesh.Actor, id mesh.SessionID, of mesh.UserID) error {
	session, err := commit(ctx, s.core, a, func(w *policy.World, _ mesh.Time) (*mesh.Session, []mesh.Event, error) {
		session, ok := w.Sessions.Get(id)
		if !ok || of != 0 && session.User != of {
			return nil, nil, refuse(NotFound, "session", "unknown session: it may have expired or been revoked")
		}
		return session, []mesh.Event{mesh.SessionGone{ID: id}}, nil
	})
	if err != nil {
		return err
	}
	s.logFor(a).Info("session revoked", "session", session.ID, "user", session.User)
	return nil
}
