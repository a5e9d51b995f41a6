package api

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// apiKeys handles the operations on API keys.
type apiKeys struct {
	*core
	control      *control.APIKeys
	observations *control.Observations
}

// ListAPIKeys implements GET /api/v1/apikey.
func (s *apiKeys) ListAPIKeys(w http.ResponseWriter, r *http.Request, p openapi.ListAPIKeysParams) {
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
			newest.LastUse = s.observations.LastUse(k)
			return encoded(apiKeyShape(snap, &newest, at))
		},
	}.reply(w, snap, part, where(snap.APIKeys.All(), func(k *mesh.APIKey) bool { return matches(p.Valid, !k.Expiry.Reached(at)) }))
}

// CreateAPIKey implements POST /api/v1/apikey.
func (s *apiKeys) CreateAPIKey(w http.ResponseWriter, r *http.Request) {
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
		s.forbid(w, r, fmt.Sprintf("a new API key cannot have more permissions than the key that creates it; choose from the scopes %v", has.Scopes))
		return
	}
	k, text, err := s.control.Create(r.Context(), actor(r), control.NewAPIKey{Access: opens, User: actor(r).User, Comment: or(in.Comment), Expiration: or(in.Expiration)})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	shape := apiKeyShape(snap, k, s.ledger.Now())
	reply(w, snap, openapi.APIKeyResult{
		APIKey: text, ID: shape.ID, Prefix: shape.Prefix, Role: shape.Role, Scopes: shape.Scopes, Expiration: shape.Expiration,
	})
}

func (*apiKeys) replayAPIKey(c replayed) (any, error) {
	k, ok := c.snap.APIKeys.Get(identity.ParseRef(identity.KindAPI, c.receipt.Object).ID)
	if !ok {
		return nil, errAbsent
	}
	return nil, &shownOnce{"API key", c.receipt.Object, apiKeyShape(c.snap, k, c.now)}
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
func (s *apiKeys) ExpireAPIKeys(w http.ResponseWriter, r *http.Request) {
	var in openapi.APIKeySelection
	err := decode(w, r, &in)
	var ref string
	if err == nil {
		ref, err = oneOf("id, key or prefix", in.ID, in.Key, in.Prefix)
	}
	var keys []*mesh.APIKey
	if err == nil {
		keys, err = s.control.Expire(r.Context(), actor(r), ref, or(in.Prefix) != "", or(in.At))
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

func (*apiKeys) replayAPIKeyExpiry(c replayed) (any, error) {
	return openapi.APIKeyExpiry{Expired: strings.Split(c.receipt.Answer, ",")}, nil
}

// DeleteAPIKey implements DELETE /api/v1/apikey/{prefix}. With an id in the
// query the prefix in the path is a placeholder.
func (s *apiKeys) DeleteAPIKey(w http.ResponseWriter, r *http.Request, prefix string, p openapi.DeleteAPIKeyParams) {
	ref := prefix
	if or(p.ID) != "" {
		ref = *p.ID
	}
	s.done(w, r, s.control.Delete(r.Context(), actor(r), ref))
}

// Whoami implements GET /api/v1/whoami.
func (s *apiKeys) Whoami(w http.ResponseWriter, r *http.Request) {
	a, has, snap := actor(r), access(r), s.ledger.World().Snapshot
	out := openapi.Caller{Kind: string(a.Kind), Name: a.Name, Role: string(has.Role), Scopes: list(has.Scopes)}
	out.User = userOrNull(snap, a.User)
	if a.Kind == mesh.ActorKey {
		if k, ok := snap.APIKeys.ByPrefix(a.Name); ok {
			out.Name, out.Expiration = identity.Mask(identity.KindAPI, k.Prefix), moment(k.Expiry)
		}
	}
	if v, ok := snap.Sessions.Get(session(r)); ok {
		out.Expiration = moment(v.Expiry)
	}
	reply(w, snap, out)
}
