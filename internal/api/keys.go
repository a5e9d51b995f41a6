package api

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// ListPreAuthKeys implements GET /api/v1/preauthkey.
func (s *Server) ListPreAuthKeys(w http.ResponseWriter, r *http.Request, p openapi.ListPreAuthKeysParams) {
	part, err := pageOf(p.Limit, p.Cursor)
	var owner mesh.UserID
	var snap *mesh.Snapshot
	if err == nil {
		owner, snap, err = s.filterUser(r, p.User)
	}
	var refusal *control.Refusal
	if number, _ := strconv.ParseInt(or(p.User), 10, 64); number > 0 && errors.As(err, &refusal) && refusal.Reason == control.NotFound {
		// Tools ask for the keys of users by id, also after they deleted the user. A
		// name that is not there is more likely misspelt.
		owner, snap, err = mesh.UserID(number), s.ledger.World().Snapshot, nil
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	at := s.ledger.Now()
	lister[*mesh.PreAuthKey, mesh.KeyID]{
		name: "preAuthKeys", id: func(k *mesh.PreAuthKey) mesh.KeyID { return k.ID },
		encode: func(k *mesh.PreAuthKey) []byte { return encoded(preAuthKeyShape(snap, k, "", at)) },
	}.reply(w, snap, part, where(snap.PreAuthKeys.All(), func(k *mesh.PreAuthKey) bool {
		return (owner == 0 || k.User == owner) && matches(p.Valid, !k.Expiry.Reached(at) && (k.Reusable || !k.Used))
	}))
}

// filterUser is the user whose things are asked for and the snapshot to look
// for them in; zero means everybody's.
func (s *Server) filterUser(r *http.Request, ref *string) (mesh.UserID, *mesh.Snapshot, error) {
	if or(ref) == "" {
		return 0, s.ledger.World().Snapshot, nil
	}
	u, snap, err := s.findUser(r, *ref)
	if err != nil {
		return 0, nil, err
	}
	return u.ID, snap, nil
}

func (s *Server) findUser(r *http.Request, ref string) (*mesh.User, *mesh.Snapshot, error) {
	return search(r, s.ledger, func(snap *mesh.Snapshot) (*mesh.User, error) { return control.FindUser(snap, ref) })
}

// unlessZero reads the id of a user in the form of tools whose ids are numbers: they
// send 0 for none.
func unlessZero(user string) string {
	if user == "0" {
		return ""
	}
	return user
}

// CreatePreAuthKey implements POST /api/v1/preauthkey.
func (s *Server) CreatePreAuthKey(w http.ResponseWriter, r *http.Request) {
	var in openapi.PreAuthKeyCreation
	if err := decode(w, r, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	k, text, err := s.control.PreAuthKeys.Create(r.Context(), actor(r), control.NewPreAuthKey{
		User: unlessZero(or(in.User)), Reusable: or(in.Reusable), Ephemeral: or(in.Ephemeral), Tags: in.ACLTags, Expiration: or(in.Expiration),
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	world := s.ledger.World()
	out := openapi.PreAuthKeyResult{PreAuthKey: preAuthKeyShape(world.Snapshot, k, text, s.ledger.Now()), Warnings: []string{}}
	for _, tag := range k.Tags {
		if world.Doc.KnowsTag(tag) != nil {
			out.Warnings = append(out.Warnings, fmt.Sprintf("the policy's tagOwners does not declare %s, so no rule can name it: it gives nodes only what rules give to everyone or to all tagged nodes", tag))
		}
	}
	reply(w, world.Snapshot, out)
}

// ExpirePreAuthKey implements POST /api/v1/preauthkey/expire.
func (s *Server) ExpirePreAuthKey(w http.ResponseWriter, r *http.Request) {
	var in openapi.PreAuthKeySelection
	err := decode(w, r, &in)
	var ref string
	if err == nil {
		ref, err = oneOf("id or key", in.ID, in.Key)
	}
	if err == nil {
		err = s.control.PreAuthKeys.Expire(r.Context(), actor(r), ref, or(in.User))
	}
	s.done(w, r, err)
}

// DeletePreAuthKey implements DELETE /api/v1/preauthkey.
func (s *Server) DeletePreAuthKey(w http.ResponseWriter, r *http.Request, p openapi.DeletePreAuthKeyParams) {
	s.done(w, r, s.control.PreAuthKeys.Delete(r.Context(), actor(r), p.ID))
}

// done answers a request that returns nothing.
func (s *Server) done(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, s.ledger.World().Snapshot, openapi.Empty{})
}

// oneOf takes the one member that is given.
func oneOf(names string, members ...*string) (ref string, err error) {
	for _, m := range members {
		switch {
		case or(m) == "":
		case ref != "":
			return "", &badRequest{"", "give only one of " + names}
		default:
			ref = *m
		}
	}
	if ref == "" {
		return "", &badRequest{"", "name a key by " + names}
	}
	return ref, nil
}

// ListAPIKeys implements GET /api/v1/apikey.
func (s *Server) ListAPIKeys(w http.ResponseWriter, r *http.Request, p openapi.ListAPIKeysParams) {
	part, err := pageOf(p.Limit, p.Cursor)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap, at := s.ledger.World().Snapshot, s.ledger.Now()
	lister[*mesh.APIKey, mesh.KeyID]{
		name: "apiKeys", id: func(k *mesh.APIKey) mesh.KeyID { return k.ID },
		encode: func(k *mesh.APIKey) []byte {
			newest := *k
			newest.LastUse = s.control.Observations.LastUse(k)
			return encoded(apiKeyShape(&newest, at))
		},
	}.reply(w, snap, part, where(snap.APIKeys.All(), func(k *mesh.APIKey) bool { return matches(p.Valid, !k.Expiry.Reached(at)) }))
}

// CreateAPIKey implements POST /api/v1/apikey.
func (s *Server) CreateAPIKey(w http.ResponseWriter, r *http.Request) {
	var in openapi.APIKeyCreation
	if err := decode(w, r, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	opens, err := accessIn(in)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if has := access(r); !has.Covers(opens) {
		s.forbid(w, r, fmt.Sprintf("a key cannot open more than the one that makes it; give it some of the scopes %v", has.Scopes))
		return
	}
	k, text, err := s.control.APIKeys.Create(r.Context(), actor(r), control.NewAPIKey{Access: opens, Comment: or(in.Comment), Expiration: or(in.Expiration)})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	shape := apiKeyShape(k, s.ledger.Now())
	reply(w, s.ledger.World().Snapshot, openapi.APIKeyResult{
		APIKey: text, ID: shape.ID, Prefix: shape.Prefix, Role: shape.Role, Scopes: shape.Scopes, Expiration: shape.Expiration,
	})
}

func accessIn(in openapi.APIKeyCreation) (opens mesh.Access, err error) {
	if opens.Role, err = mesh.ParseRole(string(cmp.Or(or(in.Role), openapi.RoleAdmin))); err != nil {
		return opens, &badRequest{"role", err.Error()}
	}
	if opens.Scopes, err = mesh.ParseScopes(in.Scopes); err != nil {
		return opens, &badRequest{"scopes", err.Error()}
	}
	return opens, nil
}

// ExpireAPIKeys implements POST /api/v1/apikey/expire. A prefix may stand for
// several keys; an id or a key names one.
func (s *Server) ExpireAPIKeys(w http.ResponseWriter, r *http.Request) {
	var in openapi.APIKeySelection
	err := decode(w, r, &in)
	var ref string
	if err == nil {
		ref, err = oneOf("id, key or prefix", in.ID, in.Key, in.Prefix)
	}
	var keys []*mesh.APIKey
	if err == nil {
		keys, err = s.control.APIKeys.Expire(r.Context(), actor(r), ref, or(in.Prefix) != "", or(in.At))
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	out := openapi.APIKeyExpiry{Expired: []string{}}
	for _, k := range keys {
		out.Expired = append(out.Expired, identity.Mask(identity.KindAPI, k.Prefix))
	}
	reply(w, s.ledger.World().Snapshot, out)
}

// DeleteAPIKey implements DELETE /api/v1/apikey/{prefix}. With an id in the
// query the prefix in the path is a placeholder.
func (s *Server) DeleteAPIKey(w http.ResponseWriter, r *http.Request, prefix string, p openapi.DeleteAPIKeyParams) {
	ref := prefix
	if or(p.ID) != "" {
		ref = *p.ID
	}
	s.done(w, r, s.control.APIKeys.Delete(r.Context(), actor(r), ref))
}
