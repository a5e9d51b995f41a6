package control

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Passkeys implements the use cases for people who sign in with a passkey: an administrator
// invites a user, who then creates a passkey.
type Passkeys struct {
	*core
	serverURL string
	err       error // why browsers offer no passkeys for this server
}

const (
	// InvitationLifetime is the default lifetime of invitations.
	InvitationLifetime = 7 * 24 * time.Hour
	// maxInvitation is their maximum lifetime.
	maxInvitation = 90 * 24 * time.Hour
	// maxPasskeys is how many passkeys a user may have.
	maxPasskeys = 20
	// LocalIssuer is the Issuer of a Person who has a passkey. The Subject is the user's id.
	LocalIssuer = mesh.ProviderLocal
	// InvitePath is followed by the text of an invitation.
	InvitePath = "/passkey/invite/"
)

// LocalPerson returns the person who signs in with passkeys of a user.
func LocalPerson(u *mesh.User) Person {
	return Person{Issuer: LocalIssuer, Subject: u.ID.String(), Username: u.Name, DisplayName: u.DisplayName}
}

// Invite creates an invitation for a user, and returns it with its link, which is not
// stored. It replaces earlier invitations of the user. A zero end means the default
// lifetime.
func (s *Passkeys) Invite(ctx context.Context, a mesh.Actor, ref string, end time.Time) (*mesh.Invitation, string, error) {
	if s.err != nil {
		return nil, "", refuse(Conflict, "", "%s", s.err.Error())
	}
	issued := identity.NewKey(identity.KindInvitation)
	var user *mesh.User
	out, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (_ *mesh.Invitation, evs []mesh.Event, err error) {
		if err := s.mayGiveAccess(w, a, "inviting a user", "whoever has the link gets all the access of the user"); err != nil {
			return nil, nil, err
		}
		if user, err = FindUser(w.Snapshot, ref); err != nil {
			return nil, nil, err
		}
		if user.Provider != "" && user.Provider != mesh.ProviderLocal {
			return nil, nil, refuse(Conflict, "user", "user %s signs in with an identity provider; only users without one can have passkeys", user.Name)
		}
		until, err := expiry(end, InvitationLifetime, now)
		if err != nil {
			return nil, nil, err
		}
		if until > now.Add(maxInvitation) {
			return nil, nil, refuse(Invalid, "expiration", "an invitation can be valid for at most %d days", maxInvitation/(24*time.Hour))
		}
		i := &mesh.Invitation{ID: w.Counters.Invitation + 1, Prefix: issued.Prefix, Hash: issued.Hash, User: user.ID, CreatedAt: now, Expiry: until}
		return i, append(dropInvitations(w.Snapshot, user.ID, false), mesh.InvitationPut{Invitation: i}), nil
	})
	if err != nil {
		return nil, "", err
	}
	s.logFor(a).Info("user invited to create a passkey", "user", user.Name, "until", out.Expiry.Time())
	return out, s.serverURL + InvitePath + issued.Text, nil
}

// dropInvitations returns the events that remove the invitations of a user, or the recovery
// codes.
func dropInvitations(s *mesh.Snapshot, user mesh.UserID, recovery bool) (evs []mesh.Event) {
	for i := range s.Invitations.All() {
		if i.User == user && i.Recovery == recovery {
			evs = append(evs, mesh.InvitationGone{ID: i.ID})
		}
	}
	return evs
}

// dropPasskeys returns the events that remove everything with which a user signs in without
// a provider.
func dropPasskeys(s *mesh.Snapshot, user mesh.UserID) (evs []mesh.Event) {
	for _, k := range s.Passkeys.Of(user) {
		evs = append(evs, mesh.PasskeyGone{ID: k.ID})
	}
	return slices.Concat(evs, dropInvitations(s, user, false), dropInvitations(s, user, true))
}

// endSessions returns the events that end the sessions of a user.
func endSessions(s *mesh.Snapshot, user mesh.UserID) []mesh.Event {
	return endSessionsIf(s, func(v *mesh.Session) bool { return v.User == user })
}

func endSessionsIf(s *mesh.Snapshot, ends func(*mesh.Session) bool) (evs []mesh.Event) {
	for v := range s.Sessions.All() {
		if ends(v) {
			evs = append(evs, mesh.SessionGone{ID: v.ID})
		}
	}
	return evs
}

// Invited returns the user for whom the holder of an invitation or recovery code may create
// a passkey.
func (s *Passkeys) Invited(text string) (*mesh.User, *mesh.Invitation, bool) {
	w := s.ledger.World()
	i, ok := identity.Invitation(w.Snapshot, text, s.ledger.Now())
	if !ok {
		return nil, nil, false
	}
	u, ok := w.Users.Get(i.User)
	return u, i, ok
}

// NewPasskey is a passkey that a browser has created.
type NewPasskey struct {
	Credential, PublicKey string
	Syncable              bool
	Uses                  int64
}

// CreatedPasskey is the result of creating a passkey. Recovery is the user's recovery code, which
// is not stored.
type CreatedPasskey struct {
	User     *mesh.User
	Recovery string
}

// Create adds a passkey for the user of an invitation, which is then used up. Every passkey
// comes with a new recovery code. A passkey that was created with a recovery code replaces
// all others, because they are lost.
func (s *Passkeys) Create(ctx context.Context, a mesh.Actor, text string, in NewPasskey) (CreatedPasskey, error) {
	recovery := identity.NewRecoveryCode()
	var replaced int
	user, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.User, []mesh.Event, error) {
		i, ok := identity.Invitation(w.Snapshot, text, now)
		if !ok {
			return nil, nil, refuse(NotFound, "invitation", "the invitation was used already, has expired or was replaced; ask an administrator for a new one")
		}
		was, ok := w.Users.Get(i.User)
		if !ok {
			return nil, nil, ErrNoUser(i.User.String())
		}
		if was.Suspended() {
			return nil, nil, errSuspended()
		}
		if _, taken := w.Passkeys.ByCredential(in.Credential); taken {
			return nil, nil, refuse(Conflict, "passkey", "this passkey is in use already")
		}
		have := w.Passkeys.Of(was.ID)
		if !i.Recovery && len(have) >= maxPasskeys {
			return nil, nil, refuse(Conflict, "passkey", "user %s already has %d passkeys; ask an administrator to delete one", was.Name, len(have))
		}
		user, evs := *was, []mesh.Event{}
		if was.Provider == "" {
			user.Provider, user.ProviderID = mesh.ProviderLocal, LocalPerson(was).ID()
			evs = append(evs, mesh.UserPut{User: &user})
		}
		replaced = 0
		if i.Recovery {
			for _, k := range have {
				evs, replaced = append(evs, mesh.PasskeyGone{ID: k.ID}), replaced+1
			}
			evs = append(evs, endSessions(w.Snapshot, was.ID)...) // somebody else may have the lost passkeys
		} else {
			evs = append(evs, mesh.InvitationGone{ID: i.ID})
		}
		evs = append(evs, dropInvitations(w.Snapshot, was.ID, true)...)
		return &user, append(evs,
			mesh.PasskeyPut{Passkey: &mesh.Passkey{
				ID: w.Counters.Passkey + 1, User: was.ID, Credential: in.Credential, PublicKey: in.PublicKey, Syncable: in.Syncable, CreatedAt: now, Uses: in.Uses,
			}},
			mesh.InvitationPut{Invitation: &mesh.Invitation{
				ID: w.Counters.Invitation + 1, Prefix: recovery.Prefix, Hash: recovery.Hash, User: was.ID, Recovery: true, CreatedAt: now,
			}},
		), nil
	})
	if err != nil {
		return CreatedPasskey{}, err
	}
	s.logFor(a).Info("passkey created", "user", user.Name, "replaced", replaced)
	return CreatedPasskey{user, recovery.Text}, nil
}

// Owner returns a passkey and its user.
func (s *Passkeys) Owner(credential string) (*mesh.Passkey, *mesh.User, bool) {
	w := s.ledger.World()
	k, ok := w.Passkeys.ByCredential(credential)
	if !ok {
		return nil, nil, false
	}
	u, ok := w.Users.Get(k.User)
	return k, u, ok
}

// Of returns the passkeys of a user.
func (s *Passkeys) Of(user mesh.UserID) []*mesh.Passkey { return s.ledger.World().Passkeys.Of(user) }

// Any reports whether anyone can sign in with a passkey.
func (s *Passkeys) Any() bool { return s.ledger.World().Passkeys.Len() > 0 }

// Used records a sign-in with a passkey. The same challenge is accepted only once.
func (s *Passkeys) Used(ctx context.Context, a mesh.Actor, id mesh.PasskeyID, uses int64, challenge string) error {
	a.Once = mesh.SignInOnce("passkey "+id.String(), challenge, challenge)
	_, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.Passkey, []mesh.Event, error) {
		was, ok := w.Passkeys.Get(id)
		if !ok {
			return nil, nil, refuse(NotFound, "passkey", "the passkey was deleted")
		}
		k := *was
		k.LastUse, k.Uses = now, max(uses, was.Uses)
		return &k, []mesh.Event{mesh.PasskeyPut{Passkey: &k}}, nil
	})
	if done := (*ledger.AlreadyDone)(nil); errors.As(err, &done) {
		return refuse(Conflict, "passkey", "this sign-in was already used; start again")
	}
	return err
}

// Delete removes a passkey. The recovery code is removed with the last one: an
// administrator who deletes all passkeys of a user does not expect them to come back.
func (s *Passkeys) Delete(ctx context.Context, a mesh.Actor, ref string) error {
	k, err := commit(ctx, s.core, a, func(w *policy.World, _ mesh.Time) (*mesh.Passkey, []mesh.Event, error) {
		id, err := strconv.ParseInt(ref, 10, 64)
		k, ok := w.Passkeys.Get(mesh.PasskeyID(id))
		if err != nil || !ok {
			return nil, nil, refuse(NotFound, "passkey", "unknown passkey %q; list passkeys with: fairlead users passkeys list", ref)
		}
		evs := []mesh.Event{mesh.PasskeyGone{ID: k.ID}}
		if len(w.Passkeys.Of(k.User)) == 1 {
			if err := s.keepAdmin(w, a, k.User); err != nil {
				return nil, nil, err
			}
			evs = append(append(evs, dropInvitations(w.Snapshot, k.User, true)...), endSessions(w.Snapshot, k.User)...)
		}
		return k, evs, nil
	})
	if err != nil {
		return err
	}
	s.logFor(a).Info("passkey deleted", "passkey", k.ID, "user", k.User)
	return nil
}

// localUser returns the user of a person with a passkey. The user must still have one: a
// sign-in that was not confirmed yet ends when the last passkey is deleted.
func localUser(w *policy.World, p Person) (*mesh.User, error) {
	u, ok := w.Users.ByProviderID(mesh.ProviderLocal, p.ID())
	if !ok || len(w.Passkeys.Of(u.ID)) == 0 {
		return nil, refuse(Conflict, "user", "your passkey was deleted; ask an administrator for a new invitation")
	}
	if u.Suspended() {
		return nil, errSuspended()
	}
	return u, nil
}
