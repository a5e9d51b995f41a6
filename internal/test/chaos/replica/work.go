package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/test/chaos"
)

// keyRing holds the newest pre-auth keys of all replicas. There are few, so that many workers use the same
// one at once.
type keyRing struct {
	mu   sync.Mutex
	keys []string // guarded by mu
}

const ringSize = 16

func (k *keyRing) add(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys = append(k.keys, text)
	k.keys = k.keys[max(0, len(k.keys)-ringSize):]
}

func (k *keyRing) any() (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.keys) == 0 {
		return "", errNothing
	}
	return k.keys[rand.IntN(len(k.keys))], nil
}

var (
	errNothing = errors.New("there is nothing to do it to") // the command is not issued
	errGone    = errors.New("it is gone")                   // the command is refused
)

// worker issues one command after the other.
type worker struct {
	*replica
	caller string
	seq    int64
	verbs  []verb
	total  int
	own    []mesh.KeyID // API keys that only this worker touches
}

// verb is one kind of command. It returns the acknowledged event, or nil if only success was reported.
type verb struct {
	name   string
	weight int
	idle   bool // it may have nothing to do
	do     func(context.Context, mesh.Actor) (mesh.Event, error)
}

func newWorker(r *replica, n int) *worker {
	w := &worker{replica: r, caller: fmt.Sprintf("%s/%d", r.name, n)}
	w.verbs = []verb{
		{"create user", 16, false, w.createUser},
		{"rename user", 6, true, w.renameUser},
		{"delete user", 2, false, w.deleteUser},
		{"create pre-auth key", 12, false, w.createPreAuthKey},
		{"expire pre-auth key", 2, true, w.expirePreAuthKey},
		{"delete pre-auth key", 2, false, w.deletePreAuthKey},
		{"create API key", 6, false, w.createAPIKey},
		{"expire API key", 2, true, w.expireAPIKey},
		{"delete API key", 5, false, w.deleteAPIKey},
		{"register node", 40, true, w.register},
		{"report endpoints", 60, false, w.change(func(n *mesh.Node, _ mesh.Time) mesh.Event {
			return mesh.NodeNet{ID: n.ID, Net: meshgen.Net(rand.IntN(1000))}
		})},
		{"come online", 20, false, w.change(func(n *mesh.Node, now mesh.Time) mesh.Event {
			return mesh.Online{ID: n.ID, Replica: r.name, Conn: rand.Int64(), At: now}
		})},
		{"go offline", 16, false, w.change(func(n *mesh.Node, now mesh.Time) mesh.Event { return mesh.Offline{ID: n.ID, At: now} })},
		{"remove node", 8, false, w.change(func(n *mesh.Node, _ mesh.Time) mesh.Event { return mesh.NodeGone{ID: n.ID} })},
	}
	for _, v := range w.verbs {
		w.total += v.weight
	}
	return w
}

func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		switch w.step(w.draw()) {
		case chaos.Failed, chaos.Unknown, chaos.Broken:
			select {
			case <-ctx.Done():
			case <-time.After(retryEvery):
			}
		case chaos.Done, chaos.Refused:
		}
	}
}

func (w *worker) draw() verb {
	n := rand.IntN(w.total)
	for _, v := range w.verbs {
		if n -= v.weight; n < 0 {
			return v
		}
	}
	return w.verbs[0]
}

// step issues one command and reports its outcome. The command is not cancelled when the workers stop, so that
// its outcome is known.
func (w *worker) step(v verb) chaos.Outcome {
	patience := 30 * time.Second
	if rand.IntN(50) == 0 {
		patience = 2 * time.Millisecond // some callers do not wait
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w.seq++
	event, err := v.do(ctx, mesh.Actor{Kind: mesh.ActorServer, RequestID: chaos.RequestID(w.caller, w.seq)})
	if errors.Is(err, errNothing) {
		w.seq--
		return chaos.Refused
	}
	a := chaos.Answer{Caller: w.caller, Seq: w.seq, Verb: v.name, Outcome: outcome(err), Idle: v.idle}
	if err != nil {
		a.Error = err.Error()
	} else if event != nil {
		effect, err := mesh.EncodeEvents([]mesh.Event{event})
		if err != nil {
			found(chaos.Error, "%v", err)
		}
		a.Effect = string(effect)
	}
	say(chaos.Message{Answer: &a})
	return a.Outcome
}

// outcome converts an error according to the contracts of control, ledger and store.
func outcome(err error) chaos.Outcome {
	var refusal *control.Refusal
	switch {
	case err == nil:
		return chaos.Done
	case errors.Is(err, store.ErrUnknownOutcome):
		return chaos.Unknown
	case errors.As(err, &refusal), errors.Is(err, errGone), errors.Is(err, mesh.ErrNoAddress):
		return chaos.Refused
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, ledger.ErrStopped), errors.Is(err, context.DeadlineExceeded):
		return chaos.Failed
	}
	return chaos.Broken
}

// There are only a few names, so that workers compete for them.

func userName() string { return fmt.Sprintf("User%d", rand.IntN(24)) }

func hostname() string { return []string{"laptop", "phone", "build server"}[rand.IntN(3)] }

// pick returns one of the first count values at random.
func pick[T any](values iter.Seq[T], count int) (v T, err error) {
	if count == 0 {
		return v, errNothing
	}
	n := rand.IntN(count)
	for v = range values {
		if n--; n < 0 {
			return v, nil
		}
	}
	return v, nil
}

func (w *worker) anyUser() (*mesh.User, error) {
	s := w.ledger.World()
	return pick(s.Users.All(), s.Users.Len())
}

func (w *worker) createUser(ctx context.Context, a mesh.Actor) (mesh.Event, error) {
	u, err := w.service.Users.Create(ctx, a, control.NewUser{Name: userName(), DisplayName: "<\u00fc & \"quotes\">"})
	return mesh.UserPut{User: u}, err
}

func (w *worker) renameUser(ctx context.Context, a mesh.Actor) (mesh.Event, error) {
	was, err := w.anyUser()
	if err != nil {
		return nil, err
	}
	u, err := w.service.Users.Rename(ctx, a, was.ID.String(), userName(), "")
	return mesh.UserPut{User: u}, err
}

func (w *worker) deleteUser(ctx context.Context, a mesh.Actor) (mesh.Event, error) {
	u, err := w.anyUser()
	if err != nil {
		return nil, err
	}
	_, err = w.service.Users.Delete(ctx, a, u.ID.String(), "", false)
	return mesh.UserGone{ID: u.ID}, err
}

// createPreAuthKey creates a key and shares it with all replicas. Some keys are for one node, some for many,
// and some expire during the run.
func (w *worker) createPreAuthKey(ctx context.Context, a mesh.Actor) (mesh.Event, error) {
	u, err := w.anyUser()
	if err != nil {
		return nil, err
	}
	in := control.NewPreAuthKey{User: u.ID.String(), Reusable: rand.IntN(2) == 0, Ephemeral: rand.IntN(4) == 0}
	if rand.IntN(4) == 0 {
		in.Tags = []string{"tag:web", "tag:db"}
	}
	if rand.IntN(8) == 0 {
		in.Expiration = time.Now().Add(100 * time.Millisecond)
	}
	k, text, err := w.service.PreAuthKeys.Create(ctx, a, in)
	if err != nil {
		return nil, err
	}
	say(chaos.Message{Key: text})
	return mesh.PreAuthKeyPut{Key: k}, nil
}

func (w *worker) expirePreAuthKey(ctx context.Context, a mesh.Actor) (mesh.Event, error) {
	key, err := w.keys.any()
	if err != nil {
		return nil, err
	}
	return nil, w.service.PreAuthKeys.Expire(ctx, a, key, "")
}

func (w *worker) deletePreAuthKey(ctx context.Context, a mesh.Actor) (mesh.Event, error) {
	s := w.ledger.World()
	var n int
	for range s.PreAuthKeys.All() {
		n++
	}
	k, err := pick(s.PreAuthKeys.All(), n)
	if err != nil {
		return nil, err
	}
	return mesh.PreAuthKeyGone{ID: k.ID}, w.service.PreAuthKeys.Delete(ctx, a, k.ID.String())
}

func (w *worker) createAPIKey(ctx context.Context, a mesh.Actor) (mesh.Event, error) {
	k, _, err := w.service.APIKeys.Create(ctx, a, control.NewAPIKey{Access: mesh.Access{Role: mesh.RoleOperator, Scopes: []string{"nodes"}}})
	if err != nil {
		return nil, err
	}
	if _, ok := w.ledger.World().APIKeys.Get(k.ID); !ok {
		found(chaos.Unseen, "%s does not see the API key %d that it created", w.caller, k.ID)
	}
	w.own = append(w.own, k.ID)
	return mesh.APIKeyPut{Key: k}, nil
}

func (w *worker) expireAPIKey(ctx context.Context, a mesh.Actor) (mesh.Event, error) {
	if len(w.own) == 0 {
		return nil, errNothing
	}
	_, err := w.service.APIKeys.Expire(ctx, a, w.own[rand.IntN(len(w.own))].String(), false, time.Time{})
	return nil, err
}

func (w *worker) deleteAPIKey(ctx context.Context, a mesh.Actor) (mesh.Event, error) {
	if len(w.own) == 0 {
		return nil, errNothing
	}
	id := w.own[0]
	w.own = w.own[1:]
	if err := w.service.APIKeys.Delete(ctx, a, id.String()); err != nil {
		return nil, err
	}
	if _, ok := w.ledger.World().APIKeys.Get(id); ok {
		found(chaos.Unseen, "%s still sees the API key %d that it deleted", w.caller, id)
	}
	return mesh.APIKeyGone{ID: id}, nil
}

// register chooses one of a few machines for each key: the same machine asks several replicas, and several
// machines compete for one key.
func (w *worker) register(ctx context.Context, a mesh.Actor) (mesh.Event, error) {
	key, err := w.keys.any()
	if err != nil {
		return nil, err
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // never fails
	machine := h.Sum64() + rand.Uint64N(4)
	joined, err := w.service.Joins.Join(ctx, a, control.Joining{
		PreAuthKey: key, MachineKey: meshgen.MachineKey(machine), NodeKey: meshgen.NodeKey(machine), Host: control.Host{Hostname: hostname(), OS: "linux"},
	})
	var refusal *control.Refusal
	if errors.As(err, &refusal) && refusal.Reason == control.BadKey {
		w.checkRefusal(ctx, key, refusal)
	}
	return mesh.NodePut{Node: joined.Node}, err
}

// checkRefusal checks a refused key under the lock. Workers get a key after it was acknowledged, and a key
// that is deleted, used or expired stays so. A key that is valid now was therefore refused without looking at
// the current state.
func (w *worker) checkRefusal(ctx context.Context, key string, refusal *control.Refusal) {
	_, _ = w.ledger.Commit(ctx, mesh.Actor{}, func(world *policy.World, now mesh.Time) ([]mesh.Event, error) {
		k, ok := identity.PreAuthKey(world.Snapshot, key)
		if ok && !k.Expiry.Reached(now) && (k.Reusable || !k.Used) {
			found(chaos.Unseen, "%s was refused at a replica although key %d is good: %s", w.caller, k.ID, refusal)
		}
		return nil, nil
	})
}

// change returns a command that is not a use case: it commits one event about an existing node.
func (w *worker) change(event func(*mesh.Node, mesh.Time) mesh.Event) func(context.Context, mesh.Actor) (mesh.Event, error) {
	return func(ctx context.Context, a mesh.Actor) (mesh.Event, error) {
		s := w.ledger.World()
		nodes := s.Nodes.Len()
		if rand.IntN(2) == 0 {
			nodes = min(nodes, 4) // some are busier than others
		}
		picked, err := pick(s.Nodes.All(), nodes)
		if err != nil {
			return nil, err
		}
		var ev mesh.Event
		rev, err := w.ledger.Commit(ctx, a, func(world *policy.World, now mesh.Time) ([]mesh.Event, error) {
			n, ok := world.Nodes.Get(picked.ID)
			if !ok {
				return nil, errGone
			}
			ev = event(n, now)
			return []mesh.Event{ev}, nil
		})
		if err != nil {
			return nil, err
		}
		if seen := w.ledger.World().Rev; seen < rev {
			found(chaos.Unseen, "%s is answered %d and sees %d", w.caller, rev, seen)
		}
		return ev, nil
	}
}
