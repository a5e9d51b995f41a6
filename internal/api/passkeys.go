package api

import (
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// passkeys handles the operations on passkeys and the invitations to create them.
type passkeys struct {
	*core
	control *control.Passkeys
}

// InviteUser implements POST /api/v1/user/{id}/invitation.
func (s *passkeys) InviteUser(w http.ResponseWriter, r *http.Request, id openapi.UserRef) {
	var in openapi.InvitationCreation
	if err := decode(w, r, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	i, link, err := s.control.Invite(r.Context(), actor(r), id, or(in.Expiration))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, s.ledger.World().Snapshot, openapi.InvitationResult{ID: i.ID.String(), Link: link, Expiration: i.Expiry.Time()})
}

func (*passkeys) replayInvitation(c replayed) (any, error) {
	i, ok := c.snap.Invitations.Get(mesh.InvitationID(identity.ParseRef(identity.KindInvitation, c.receipt.Object).ID))
	if !ok {
		return nil, errAbsent
	}
	return nil, &shownOnce{"invitation", c.receipt.Object, invitationShape(i)}
}

// ListPasskeys implements GET /api/v1/passkey.
func (s *passkeys) ListPasskeys(w http.ResponseWriter, r *http.Request, p openapi.ListPasskeysParams) {
	part, err := pageOf(p.Limit, p.Cursor)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	user, snap, err := s.filterUser(r, p.User)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	lister[*mesh.Passkey, mesh.PasskeyID]{
		name: "passkeys", id: func(k *mesh.Passkey) mesh.PasskeyID { return k.ID },
		encode: func(k *mesh.Passkey) []byte { return encoded(passkeyShape(snap, k)) },
	}.reply(w, snap, part, where(snap.Passkeys.All(), func(k *mesh.Passkey) bool { return user == 0 || k.User == user }))
}

// DeletePasskey implements DELETE /api/v1/passkey/{id}.
func (s *passkeys) DeletePasskey(w http.ResponseWriter, r *http.Request, id string) {
	s.done(w, r, s.control.Delete(r.Context(), actor(r), id))
}

func passkeyShape(s *mesh.Snapshot, k *mesh.Passkey) openapi.Passkey {
	out := openapi.Passkey{ID: k.ID.String(), Syncable: k.Syncable, CreatedAt: k.CreatedAt.Time(), LastUsed: moment(k.LastUse)}
	if u, ok := s.Users.Get(k.User); ok {
		out.User = userShape(s, u)
	}
	return out
}

// invitationShape shows an invitation without its link, for the audit log.
func invitationShape(i *mesh.Invitation) map[string]any {
	return map[string]any{"id": i.ID.String(), "user": i.User.String(), "recovery": i.Recovery, "createdAt": i.CreatedAt.Time(), "expiration": moment(i.Expiry)}
}

func describePasskey(s *mesh.Snapshot, id mesh.PasskeyID) (kind, name string, shape []byte) {
	k, ok := s.Passkeys.Get(id)
	return "passkey", id.String(), shapeOf(ok, func() any { return passkeyShape(s, k) })
}

func describeInvitation(s *mesh.Snapshot, id mesh.InvitationID) (kind, name string, shape []byte) {
	i, ok := s.Invitations.Get(id)
	return "invitation", id.String(), shapeOf(ok, func() any { return invitationShape(i) })
}
