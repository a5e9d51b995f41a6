package control

import (
	"context"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// minPrefix is how much of a prefix may stand for all keys that begin so.
const minPrefix = 4

// maxComment is how long a comment on an API key may be, in bytes.
const maxComment = 120

// APIKeys are the use cases of API keys.
type APIKeys struct{ *core }

// NewAPIKey is what an API key is made from. A zero Expiration means in 90 days.
type NewAPIKey struct {
	Access     mesh.Access
	Comment    string
	Expiration time.Time
}

// Create adds an API key and returns it with its text, which is kept
// nowhere.
func (s *APIKeys) Create(ctx context.Context, a mesh.Actor, in NewAPIKey) (*mesh.APIKey, string, error) {
	if err := checkText("comment", in.Comment, maxComment); err != nil {
		return nil, "", err
	}
	issued := identity.NewKey(identity.KindAPI)
	var key *mesh.APIKey
	_, err := s.ledger.Commit(ctx, a, func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
		end, err := expiry(in.Expiration, APIKeyLifetime, now)
		if err != nil {
			return nil, err
		}
		key = &mesh.APIKey{
			ID: w.Counters.API + 1, Prefix: issued.Prefix, Hash: issued.Hash, Access: in.Access, Comment: in.Comment,
			Expiry: end, CreatedAt: now,
		}
		return []mesh.Event{mesh.APIKeyPut{Key: key}}, nil
	})
	if err != nil {
		return nil, "", err
	}
	s.logFor(a).Info("API key created", "key", identity.Mask(identity.KindAPI, key.Prefix), "role", key.Role, "scopes", key.Scopes)
	return key, issued.Text, nil
}

// findAPIKeys finds one key by id, prefix, masked or whole text, or, by the
// beginning of a prefix, all that match.
func findAPIKeys(w *policy.World, ref string, several bool) ([]*mesh.APIKey, error) {
	r := identity.ParseRef(identity.KindAPI, ref)
	if k, ok := w.APIKeyByPrefix(r.Prefix); ok {
		return []*mesh.APIKey{k}, nil
	}
	var keys []*mesh.APIKey
	switch {
	case several && len(r.Prefix) < minPrefix:
		return nil, refuse(Invalid, "prefix", "give at least %d characters of the prefix", minPrefix)
	case several:
		for k := range w.APIKeys() {
			if strings.HasPrefix(k.Prefix, r.Prefix) {
				keys = append(keys, k)
			}
		}
	default:
		if k, ok := w.APIKey(r.ID); ok {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, refuse(NotFound, "key", "there is no such API key; list them with: fairlead apikeys list")
	}
	return keys, nil
}

// Expire ends keys at a time, now when it is zero, and returns those that
// ref names; the ones that end before it stay as they are. With several, ref may
// be the beginning of a prefix.
func (s *APIKeys) Expire(ctx context.Context, a mesh.Actor, ref string, several bool, at time.Time) ([]*mesh.APIKey, error) {
	var keys, ended []*mesh.APIKey
	_, err := s.ledger.Commit(ctx, a, func(w *policy.World, now mesh.Time) (evs []mesh.Event, err error) {
		if keys, err = findAPIKeys(w, ref, several); err != nil {
			return nil, err
		}
		until := now
		if !at.IsZero() {
			if until = mesh.TimeOf(at); until <= now {
				return nil, refuse(Invalid, "at", "the time %s has passed; leave it out to expire the keys now", at.UTC().Format(time.RFC3339))
			}
		}
		ended = nil
		var masks []string
		for _, k := range keys {
			if err := mayEndKey(w, a, k); err != nil {
				return nil, err
			}
			masks = append(masks, identity.Mask(identity.KindAPI, k.Prefix))
			if !k.Expiry.Reached(until) {
				end := *k
				end.Expiry = until
				ended = append(ended, &end)
				evs = append(evs, mesh.APIKeyPut{Key: &end})
			}
		}
		a.Answers(strings.Join(masks, ","))
		return evs, nil
	})
	if err != nil {
		return nil, err
	}
	for _, k := range ended {
		s.logFor(a).Info("API key expired", "key", identity.Mask(identity.KindAPI, k.Prefix), "at", k.Expiry.Time())
	}
	return keys, nil
}

// Delete removes a key.
func (s *APIKeys) Delete(ctx context.Context, a mesh.Actor, ref string) error {
	var keys []*mesh.APIKey
	_, err := s.ledger.Commit(ctx, a, func(w *policy.World, _ mesh.Time) (_ []mesh.Event, err error) {
		if keys, err = findAPIKeys(w, ref, false); err != nil {
			return nil, err
		}
		if err := mayEndKey(w, a, keys[0]); err != nil {
			return nil, err
		}
		return []mesh.Event{mesh.APIKeyGone{ID: keys[0].ID}}, nil
	})
	if err != nil {
		return err
	}
	s.logFor(a).Info("API key deleted", "key", identity.Mask(identity.KindAPI, keys[0].Prefix))
	return nil
}
