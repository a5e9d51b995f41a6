package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// preAuthKeys handles the operations on pre-auth keys.
type preAuthKeys struct {
	*core
	control *control.PreAuthKeys
}

// ListPreAuthKeys implements GET /api/v1/preauthkey.
func (s *preAuthKeys) ListPreAuthKeys(w http.ResponseWriter, r *http.Request, p openapi.ListPreAuthKeysParams) {
	part, err := pageOf(p.Limit, p.Cursor)
	var owner mesh.UserID
	var snap *mesh.Snapshot
	if err == nil {
		owner, snap, err = s.filterUser(r, p.User)
	}
	var refusal *control.Refusal
	if number, _ := strconv.ParseInt(or(p.User), 10, 64); number > 0 && errors.As(err, &refusal) && refusal.Reason == control.NotFound {
		// Tools ask for the keys of a user by id even after they deleted the user. A name
		// that does not exist is more likely misspelt.
		owner, snap, err = mesh.UserID(number), s.ledger.World().Snapshot, nil
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	a, at := actor(r), s.ledger.Now()
	lister[*mesh.PreAuthKey, mesh.KeyID]{
		name: "preAuthKeys", id: func(k *mesh.PreAuthKey) mesh.KeyID { return k.ID },
		encode: func(k *mesh.PreAuthKey) []byte { return encoded(preAuthKeyShape(snap, k, "", at)) },
	}.reply(w, snap, part, where(snap.PreAuthKeys.All(), func(k *mesh.PreAuthKey) bool {
		return control.OwnsPreAuthKey(a, k) && (owner == 0 || k.User == owner) && matches(p.Valid, !k.Expiry.Reached(at) && (k.Reusable || !k.Used))
	}))
}

// unlessZero returns the id of a user. Tools whose ids are numbers send 0 for no user.
func unlessZero(user string) string {
	if user == "0" {
		return ""
	}
	return user
}

// CreatePreAuthKey implements POST /api/v1/preauthkey.
func (s *preAuthKeys) CreatePreAuthKey(w http.ResponseWriter, r *http.Request) {
	var in openapi.PreAuthKeyCreation
	if err := decode(w, r, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	if or(in.PreApproved) && !s.opens(w, r, operates(mesh.NounNodes)) {
		return
	}
	k, text, err := s.control.Create(r.Context(), actor(r), control.NewPreAuthKey{
		User: unlessZero(or(in.User)), Description: or(in.Description), Reusable: or(in.Reusable), Ephemeral: or(in.Ephemeral), PreApproved: or(in.PreApproved), Tags: in.ACLTags,
		Expiration: or(in.Expiration),
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	world := s.ledger.World()
	out := openapi.PreAuthKeyResult{PreAuthKey: preAuthKeyShape(world.Snapshot, k, text, s.ledger.Now()), Warnings: []string{}}
	for _, tag := range k.Tags {
		if world.Doc.KnowsTag(tag) != nil {
			out.Warnings = append(out.Warnings, fmt.Sprintf("%s is not defined in the policy's tagOwners, so no rule can name it: its nodes get only the access that rules give to everyone or to all tagged nodes", tag))
		}
	}
	reply(w, world.Snapshot, out)
}

func (*preAuthKeys) replayPreAuthKey(c replayed) (any, error) {
	k, ok := c.snap.PreAuthKeys.Get(identity.ParseRef(identity.KindPreAuth, c.receipt.Object).ID)
	if !ok || !control.OwnsPreAuthKey(actor(c.r), k) {
		return nil, errAbsent
	}
	return nil, &shownOnce{"pre-auth key", c.receipt.Object, preAuthKeyShape(c.snap, k, "", c.now)}
}

// ExpirePreAuthKey implements POST /api/v1/preauthkey/expire.
func (s *preAuthKeys) ExpirePreAuthKey(w http.ResponseWriter, r *http.Request) {
	var in openapi.PreAuthKeySelection
	err := decode(w, r, &in)
	var ref string
	if err == nil {
		ref, err = oneOf("id or key", in.ID, in.Key)
	}
	if err == nil {
		err = s.control.Expire(r.Context(), actor(r), ref, or(in.User))
	}
	s.done(w, r, err)
}

// DeletePreAuthKey implements DELETE /api/v1/preauthkey.
func (s *preAuthKeys) DeletePreAuthKey(w http.ResponseWriter, r *http.Request, p openapi.DeletePreAuthKeyParams) {
	s.done(w, r, s.control.Delete(r.Context(), actor(r), p.ID))
}

// oneOf returns the one field that is set.
func oneOf(names string, members ...*string) (ref string, err error) {
	for _, m := range members {
		switch {
		case or(m) == "":
		case ref != "":
			return "", &badRequest{"", "specify only one of " + names}
		default:
			ref = *m
		}
	}
	if ref == "" {
		return "", &badRequest{"", "specify the key by " + names}
	}
	return ref, nil
}
