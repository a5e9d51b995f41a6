package control

import (
	"context"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// minPrefix is the minimum length of a prefix that may refer to several keys.
const minPrefix = 4

// maxComment is the maximum length of an API key's comment, in bytes.
const maxComment = 120

// APIKeys implements the use cases for API keys.
type APIKeys struct{ *core }

// NewAPIKey is the input for creating an API key. A zero Expiration means 90 days from now.
type NewAPIKey struct {
	Access     mesh.Access
	User       mesh.UserID // the person who creates the key; zero if it belongs to nobody
	Comment    string
	Expiration time.Time
}

// Create adds an API key and returns it with its text, which is not stored.
func (s *APIKeys) Create(ctx context.Context, a mesh.Actor, in NewAPIKey) (*mesh.APIKey, string, error) {
	if err := checkText("comment", in.Comment, maxComment); err != nil {
		return nil, "", err
	}
	issued := identity.NewKey(identity.KindAPI)
	key, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.APIKey, []mesh.Event, error) {
		end, err := expiry(in.Expiration, APIKeyLifetime, now)
		if err != nil {
			return nil, nil, err
		}
		if _, ok := w.Users.Get(in.User); in.User != 0 && !ok {
			return nil, nil, refuse(Forbidden, "", "your user has been deleted")
		}
		key := &mesh.APIKey{
			ID: w.Counters.API + 1, Prefix: issued.Prefix, Hash: issued.Hash, Access: in.Access, User: in.User, Comment: in.Comment,
			Expiry: end, CreatedAt: now,
		}
		return key, []mesh.Event{mesh.APIKeyPut{Key: key}}, nil
	})
	if err != nil {
		return nil, "", err
	}
	s.logFor(a).Info("API key created", "key", identity.Mask(identity.KindAPI, key.Prefix), "role", key.Role, "scopes", key.Scopes)
	return key, issued.Text, nil
}

// findAPIKeys finds one key by id, prefix, masked text or full text. If several is set, ref
// may also be the beginning of a prefix and matches all keys with it.
func findAPIKeys(w *policy.World, ref string, several bool) ([]*mesh.APIKey, error) {
	r := identity.ParseRef(identity.KindAPI, ref)
	if k, ok := w.APIKeys.ByPrefix(r.Prefix); ok {
		return []*mesh.APIKey{k}, nil
	}
	var keys []*mesh.APIKey
	switch {
	case several && len(r.Prefix) < minPrefix:
		return nil, refuse(Invalid, "prefix", "specify at least %d characters of the prefix", minPrefix)
	case several:
		for k := range w.APIKeys.All() {
			if strings.HasPrefix(k.Prefix, r.Prefix) {
				keys = append(keys, k)
			}
		}
	default:
		if k, ok := w.APIKeys.Get(r.ID); ok {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, refuse(NotFound, "key", "unknown API key; list API keys with: fairlead apikeys list")
	}
	return keys, nil
}

// Expire expires the keys that match ref, and returns them. A zero time means now. Keys
// that expire earlier are left unchanged. If several is set, ref may be the beginning of a
// prefix.
func (s *APIKeys) Expire(ctx context.Context, a mesh.Actor, ref string, several bool, at time.Time) ([]*mesh.APIKey, error) {
	out, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (out expiredAPIKeys, evs []mesh.Event, err error) {
		if out.named, err = findAPIKeys(w, ref, several); err != nil {
			return out, nil, err
		}
		until := now
		if !at.IsZero() {
			if until = mesh.TimeOf(at); until <= now {
				return out, nil, refuse(Invalid, "at", "%s is in the past; omit the time to expire the API keys now", at.UTC().Format(time.RFC3339))
			}
		}
		for _, k := range out.named {
			if err := s.mayRevokeKey(w, a, k); err != nil {
				return out, nil, err
			}
			if !k.Expiry.Reached(until) {
				end := *k
				end.Expiry = until
				out.ended = append(out.ended, &end)
				evs = append(evs, mesh.APIKeyPut{Key: &end})
			}
		}
		return out, evs, nil
	})
	if err != nil {
		return nil, err
	}
	for _, k := range out.ended {
		s.logFor(a).Info("API key expired", "key", identity.Mask(identity.KindAPI, k.Prefix), "at", k.Expiry.Time())
	}
	return out.named, nil
}

// expiredAPIKeys holds the keys that a request refers to, and those that it expired.
type expiredAPIKeys struct{ named, ended []*mesh.APIKey }

// Answer returns the masked keys.
func (k expiredAPIKeys) Answer() string {
	masks := make([]string, len(k.named))
	for i, key := range k.named {
		masks[i] = identity.Mask(identity.KindAPI, key.Prefix)
	}
	return strings.Join(masks, ",")
}

// Delete removes a key.
func (s *APIKeys) Delete(ctx context.Context, a mesh.Actor, ref string) error {
	key, err := commit(ctx, s.core, a, func(w *policy.World, _ mesh.Time) (*mesh.APIKey, []mesh.Event, error) {
		keys, err := findAPIKeys(w, ref, false)
		if err != nil {
			return nil, nil, err
		}
		if err := s.mayRevokeKey(w, a, keys[0]); err != nil {
			return nil, nil, err
		}
		return keys[0], []mesh.Event{mesh.APIKeyGone{ID: keys[0].ID}}, nil
	})
	if err != nil {
		return err
	}
	s.logFor(a).Info("API key deleted", "key", identity.Mask(identity.KindAPI, key.Prefix))
	return nil
}
