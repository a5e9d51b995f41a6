package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// The default lifetimes of keys, the maximum number of tags of one key, and the maximum
// length of its description in bytes.
const (
	PreAuthKeyLifetime = time.Hour
	APIKeyLifetime     = 90 * 24 * time.Hour
	maxTags            = 64
	maxKeyDescription  = 200
	maxYear            = 9999 // the last year that RFC 3339 can express
)

// PreAuthKeys implements the use cases for pre-auth keys.
type PreAuthKeys struct{ *core }

// NewPreAuthKey is the input for creating a pre-auth key.
type NewPreAuthKey struct {
	User        string // name or id; optional if there are tags
	Description string
	Reusable    bool
	Ephemeral   bool
	PreApproved bool
	Tags        []string
	Expiration  time.Time // zero means in an hour
}

// expiry returns when a key expires. Every key does. Tools send an unset time as the zero
// time or as the beginning of 1970.
func expiry(at time.Time, lifetime time.Duration, now mesh.Time) (mesh.Time, error) {
	if at.IsZero() || mesh.TimeOf(at) == 0 {
		return now.Add(lifetime), nil
	}
	switch end := mesh.TimeOf(at); {
	case end <= now:
		return 0, refuse(Invalid, "expiration", "the expiration %s is in the past", at.UTC().Format(time.RFC3339))
	case at.UTC().Year() > maxYear:
		return 0, refuse(Invalid, "expiration", "expiration must not be after the year %d", maxYear)
	default:
		return end, nil
	}
}

func checkTags(path string, tags []string) ([]string, error) {
	for i, tag := range tags {
		if err := lang.CheckTag(tag); err != nil {
			return nil, refuse(Invalid, fmt.Sprintf("%s[%d]", path, i), "%s", err.Error())
		}
	}
	tags = slices.Clone(tags)
	slices.Sort(tags)
	switch tags = slices.Compact(tags); {
	case len(tags) == 0:
		return nil, nil
	case len(tags) > maxTags:
		return nil, errManyTags(path)
	}
	return tags, nil
}

func errManyTags(path string) error {
	return refuse(Invalid, path, "at most %d tags are allowed", maxTags)
}

// checkTagsKnown refuses tags that the policy, if there is one, does not know.
func checkTagsKnown(w *policy.World, path string, tags []string) error {
	for _, tag := range tags {
		if err := w.Doc.KnowsTag(tag); err != nil {
			return refuse(Invalid, path, "%s", err.Error())
		}
	}
	return nil
}

// Create adds a pre-auth key and returns it with its text, which is not stored. Its tags
// need no entry in the policy's tagOwners: no rule can name an undeclared tag, so until the
// policy declares it, it allows only what all tagged nodes may do. Besides, anyone who may
// create keys may use every declared tag anyway.
func (s *PreAuthKeys) Create(ctx context.Context, a mesh.Actor, in NewPreAuthKey) (*mesh.PreAuthKey, string, error) {
	in, err := ownKey(a, in)
	if err != nil {
		return nil, "", err
	}
	tags, err := checkTags("aclTags", in.Tags)
	if err != nil {
		return nil, "", err
	}
	if err := checkText("description", in.Description, maxKeyDescription); err != nil {
		return nil, "", err
	}
	if in.User == "" && len(tags) == 0 {
		return nil, "", refuse(Invalid, "user", "a pre-auth key requires a user or tags")
	}
	issued := identity.NewKey(identity.KindPreAuth)
	key, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.PreAuthKey, []mesh.Event, error) {
		end, err := expiry(in.Expiration, PreAuthKeyLifetime, now)
		if err == nil {
			err = mayHaveKey(w, a, now, end)
		}
		if err != nil {
			return nil, nil, err
		}
		key := &mesh.PreAuthKey{
			ID: w.Counters.PreAuth + 1, Prefix: issued.Prefix, Hash: issued.Hash, Description: in.Description,
			Reusable: in.Reusable, Ephemeral: in.Ephemeral, PreApproved: in.PreApproved, Tags: tags, Expiry: end, CreatedAt: now,
		}
		if in.User != "" {
			user, err := OwnUser(w.Snapshot, a, in.User)
			if err != nil {
				return nil, nil, err
			}
			if err := checkNotSuspended(user); err != nil {
				return nil, nil, err
			}
			key.User = user.ID
		}
		return key, []mesh.Event{mesh.PreAuthKeyPut{Key: key}}, nil
	})
	if err != nil {
		return nil, "", err
	}
	s.logFor(a).Info("pre-auth key created", "key", identity.Mask(identity.KindPreAuth, key.Prefix))
	return key, issued.Text, nil
}

// FindPreAuthKey finds a key by id, prefix, masked text or full text.
func FindPreAuthKey(s *mesh.Snapshot, ref string) (*mesh.PreAuthKey, error) {
	r := identity.ParseRef(identity.KindPreAuth, ref)
	k, ok := s.PreAuthKeys.ByPrefix(r.Prefix)
	if !ok {
		k, ok = s.PreAuthKeys.Get(r.ID)
	}
	if !ok {
		return nil, ErrNoPreAuthKey(ref)
	}
	return k, nil
}

// findPreAuthKey is like OwnPreAuthKey, but if owner is given, it does not find keys of
// other users.
func findPreAuthKey(w *policy.World, a mesh.Actor, ref, owner string) (*mesh.PreAuthKey, error) {
	k, err := OwnPreAuthKey(w.Snapshot, a, ref)
	if err != nil || owner == "" {
		return k, err
	}
	user, err := OwnUser(w.Snapshot, a, owner)
	switch {
	case err != nil:
		return nil, err
	case user.ID != k.User:
		return nil, ErrNoPreAuthKey(ref)
	}
	return k, nil
}

// ErrNoPreAuthKey returns the refusal for a key that does not exist. It does not repeat its
// argument, which may be the text of a key.
func ErrNoPreAuthKey(string) error {
	return refuse(NotFound, "key", "unknown pre-auth key; list pre-auth keys with: fairlead preauthkeys list")
}

// Expire expires a key now. A key that has already expired is left unchanged.
func (s *PreAuthKeys) Expire(ctx context.Context, a mesh.Actor, ref, owner string) error {
	key, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.PreAuthKey, []mesh.Event, error) {
		key, err := findPreAuthKey(w, a, ref, owner)
		if err != nil || key.Expiry.Reached(now) {
			return nil, nil, err
		}
		ended := *key
		ended.Expiry = now
		return &ended, []mesh.Event{mesh.PreAuthKeyPut{Key: &ended}}, nil
	})
	if err != nil {
		return err
	}
	if key != nil {
		s.logFor(a).Info("pre-auth key expired", "key", identity.Mask(identity.KindPreAuth, key.Prefix))
	}
	return nil
}

// Delete removes a key. Nodes that joined with it stay.
func (s *PreAuthKeys) Delete(ctx context.Context, a mesh.Actor, ref string) error {
	key, err := commit(ctx, s.core, a, func(w *policy.World, _ mesh.Time) (*mesh.PreAuthKey, []mesh.Event, error) {
		key, err := findPreAuthKey(w, a, ref, "")
		if err != nil {
			return nil, nil, err
		}
		return key, []mesh.Event{mesh.PreAuthKeyGone{ID: key.ID}}, nil
	})
	if err != nil {
		return err
	}
	s.logFor(a).Info("pre-auth key deleted", "key", identity.Mask(identity.KindPreAuth, key.Prefix))
	return nil
}
