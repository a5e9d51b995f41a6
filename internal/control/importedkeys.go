package control

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Limits for imported keys that have not been used yet. Only a slow hash verifies them.
const (
	// wrongBurst and wrongEvery limit the wrong keys of one network.
	wrongBurst, wrongEvery = 10, 10 * time.Second
	// wrongNetworks limits how many networks are counted. The others share one allowance.
	wrongNetworks = 4096
	// slowWait is how long a request waits for its turn.
	slowWait = 5 * time.Second
)

// slowKeys verifies imported keys. It computes one hash at a time.
type slowKeys struct {
	turn chan struct{}

	mu       sync.Mutex
	networks map[string]*bucket // guarded by mu; a network without an entry has its full allowance
}

func newSlowKeys() *slowKeys {
	return &slowKeys{turn: make(chan struct{}, 1), networks: map[string]*bucket{}}
}

// verify computes the hash of a key, if the network of addr has not presented too many wrong ones. It returns
// false if the key is wrong.
func (s *slowKeys) verify(ctx context.Context, addr string, u identity.Unverified) (mesh.Secret, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, slowWait)
	defer cancel()
	allowance, err := s.charge(identity.Network(addr), time.Now())
	if err != nil {
		return mesh.Secret{}, false, err
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		s.refund(allowance)
		return mesh.Secret{}, false, &TooFast{After: slowWait, Text: "too many keys are being verified"}
	}
	defer func() { <-s.turn }()
	fast, ok := u.Verify()
	if ok {
		s.refund(allowance)
	}
	return fast, ok, nil
}

func (s *slowKeys) charge(network string, now time.Time) (*bucket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.networks[network]
	if !ok && len(s.networks) >= wrongNetworks {
		maps.DeleteFunc(s.networks, func(_ string, b *bucket) bool { return b.refill(now, wrongEvery) })
		if len(s.networks) >= wrongNetworks {
			network = ""
			b, ok = s.networks[network]
		}
	}
	if !ok {
		b = &bucket{at: now}
		s.networks[network] = b
	}
	if !b.take(now, 1, wrongBurst, wrongEvery) {
		return nil, &TooFast{After: wrongEvery, Text: "too many wrong keys from this address"}
	}
	return b, nil
}

func (s *slowKeys) refund(b *bucket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.refund(1)
}

// VerifyImported returns the imported API key with this text, which has not been used yet. It returns false if
// there is none, and a TooFast if the caller has presented too many wrong keys. From now on, the key is verified
// like all others.
func (s *APIKeys) VerifyImported(ctx context.Context, a mesh.Actor, text string) (*mesh.APIKey, bool, error) {
	k, unverified, ok := identity.UnverifiedAPIKey(s.ledger.World().Snapshot, text, s.ledger.Now())
	if !ok {
		return nil, false, nil
	}
	hash, ok, err := s.slow.verify(ctx, a.Addr, unverified)
	if err != nil || !ok {
		return nil, false, err
	}
	used, err := commit(ctx, s.core, mesh.Actor{Kind: mesh.ActorServer}, func(w *policy.World, _ mesh.Time) (*mesh.APIKey, []mesh.Event, error) {
		now, ok := w.APIKeys.Get(k.ID)
		if !ok || now.Bcrypt != k.Bcrypt || now.Hash != (mesh.Secret{}) {
			return now, nil, nil
		}
		used := *now
		if used.Hash = hash; !wayBackOpen(w) {
			used.Bcrypt = ""
		}
		return &used, []mesh.Event{mesh.APIKeyPut{Key: &used}}, nil
	})
	if err != nil {
		// The key is right, and reads must work without the database.
		s.log.Warn("cannot replace the bcrypt hash of an imported API key", "key", identity.Mask(identity.KindAPI, k.Prefix), "error", err)
		return k, true, nil
	}
	return used, used != nil, nil
}

// verifyImported replaces the hash of the pre-auth key of a request, if it was imported and has not been used
// yet. A wrong key is left for the decision to refuse. Known nodes need no key.
func (s *Joins) verifyImported(ctx context.Context, a mesh.Actor, j Joining) error {
	w := s.ledger.World()
	k, unverified, ok := identity.UnverifiedPreAuthKey(w.Snapshot, j.PreAuthKey)
	if !ok {
		return nil
	}
	if _, known := w.Nodes.ByKey(j.NodeKey); known && j.Proven {
		return nil
	}
	hash, ok, err := s.slow.verify(ctx, a.Addr, unverified)
	if err != nil || !ok {
		return err
	}
	_, err = ledger.Commit(ctx, s.ledger, mesh.Actor{Kind: mesh.ActorServer}, func(w *policy.World, _ mesh.Time) (nothing, []mesh.Event, error) {
		now, ok := w.PreAuthKeys.Get(k.ID)
		if !ok || now.Bcrypt != k.Bcrypt || now.Hash != (mesh.Secret{}) {
			return nothing{}, nil, nil
		}
		used := *now
		if used.Hash = hash; !wayBackOpen(w) {
			used.Bcrypt = ""
		}
		return nothing{}, []mesh.Event{mesh.PreAuthKeyPut{Key: &used}}, nil
	})
	return err
}
