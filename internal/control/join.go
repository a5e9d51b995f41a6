package control

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Joining is what a client asks with when it registers. It has proven its
// machine key.
type Joining struct {
	MachineKey key.MachinePublic
	NodeKey    key.NodePublic
	// OldNodeKey is a key that the client had before. Clients go on sending it
	// long after they changed it.
	OldNodeKey key.NodePublic
	// PreAuthKey is sent by clients that were given one, each time they start.
	PreAuthKey string
	// Followup is the link that the client was given: it waits for the answer.
	Followup string
	// Expiry is when the client wants its key to end; a moment in the past
	// logs it out, zero asks for nothing.
	Expiry     mesh.Time
	Ephemeral  bool
	Tags       []string
	CapVersion int
	Host       Host

	addr  string   // where it comes from
	trial comeback // limits the tags while a policy is on trial
}

// Joins are the use cases of devices that join.
type Joins struct {
	*core
	logins          *Logins
	randomAddresses bool
	nodeExpiry      time.Duration
	quotas          Quotas
	pace            joinPace
	registrations   prometheus.Counter
	refused         prometheus.Counter
}

func newJoins(shared *core, logins *Logins, c Config) *Joins {
	s := &Joins{
		core: shared, logins: logins, randomAddresses: c.RandomAddresses, nodeExpiry: c.NodeExpiry, quotas: c.Quotas,
		registrations: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mesh_node_registrations_total", Help: "Nodes created, or given a new key after authorisation, by this replica.",
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mesh_node_registrations_refused_total", Help: "Registrations that this replica refused, for their key or by the policy.",
		}),
	}
	c.Registerer.MustRegister(s.registrations, s.refused)
	return s
}

// Joined answers a client.
type Joined struct {
	// Node is nil when Link is set or the node is gone.
	Node *mesh.Node
	// User owns the node; nil for one with tags.
	User *mesh.User
	// KeyExpired says that the client must make a new node key.
	KeyExpired bool
	// Link is where a person lets the device in.
	Link string
	// Rejected is the reason of an administrator who said no.
	Rejected string
}

// leastSooner is by how much a device must want its key to end sooner for that to be
// worth a commit.
const leastSooner = time.Minute

// verdict is what decideJoin found.
type verdict struct {
	node       *mesh.Node
	registered bool // created, or given a new node key after authorisation
	keyExpired bool
	ask        bool // a person must let it in
	rejected   string
}

// Join lets a client in, knows it again, or logs it out.
func (s *Joins) Join(ctx context.Context, a mesh.Actor, j Joining) (Joined, error) {
	a.Kind, a.ID, j.addr = mesh.ActorNode, shortKey(j.MachineKey), a.Addr
	v, err := s.join(ctx, a, j)
	if err == nil && v.ask && s.logins.ownLink(j) {
		var answered bool
		if answered, err = s.logins.await(ctx, a, j); answered {
			v, err = s.join(ctx, a, j)
		}
	}
	out := Joined{Node: v.node, KeyExpired: v.keyExpired, Rejected: v.rejected}
	if err == nil && v.ask {
		out.Link, err = s.logins.link(j)
	}
	if err != nil {
		s.logRefusal(err, a, j, true)
		return Joined{}, err
	}
	if v.registered {
		s.logRegistration(a, v.node)
	}
	if v.node != nil {
		out.User, _ = s.ledger.World().User(v.node.Owner)
	}
	return out, nil
}

func (s *Joins) join(ctx context.Context, a mesh.Actor, j Joining) (v verdict, err error) {
	if j.NodeKey.IsZero() {
		return verdict{}, refuse(Invalid, "nodeKey", "the request has no node key")
	}
	j.Host = j.Host.bounded()
	err = s.withComeback(ctx, func(c comeback) (err error) {
		j.trial = c
		v, err = s.tryJoin(ctx, a, j)
		return err
	})
	return v, err
}

// tryJoin decides on the world at hand first: a client that is known, which is
// nearly every one, and a stranger, who may be hostile, usually take no lock.
func (s *Joins) tryJoin(ctx context.Context, a mesh.Actor, j Joining) (verdict, error) {
	addresses := s.addresses(rand.Uint64())
	w := s.ledger.World()
	v, evs, err := s.decideJoin(w, s.ledger.Now(), j, addresses)
	if err != nil || v.ask {
		if err := s.ledger.Sync(ctx); err != nil {
			return verdict{}, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
		}
		w = s.ledger.World()
		v, evs, err = s.decideJoin(w, s.ledger.Now(), j, addresses)
	}
	if err != nil {
		return v, err
	}
	if len(evs) == 0 {
		return s.settled(ctx, w, v)
	}
	if err := s.pace.charge(j.MachineKey, time.Now(), v.keyExpired); err != nil {
		return verdict{}, err
	}
	err = s.commitRoutes(ctx, a, func(w *policy.World, now mesh.Time) (evs []mesh.Event, err error) {
		v, evs, err = s.decideJoin(w, now, j, addresses)
		return evs, err
	})
	if err != nil {
		if errors.Is(err, ledger.ErrUnavailable) { // the device will try again and again
			s.pace.refund(j.MachineKey)
		}
		return verdict{}, err
	}
	return v, nil
}

// settled returns a verdict that changes nothing. "You are registered" and "you are
// logged out" may answer a client that retries because its first request got no
// answer, so they count as acknowledgements, and what they rest on must be durable.
// A refusal, a rejection or the wish for a login promises nothing.
func (s *Joins) settled(ctx context.Context, w *policy.World, v verdict) (verdict, error) {
	var err error
	switch {
	case v.node != nil:
		err = s.ledger.ConfirmChange(ctx, w.Rev, v.node.UpdatedAt)
	case v.keyExpired: // the node is gone; strangers can ask this too, for one commit per commit of another replica
		err = s.ledger.Confirm(ctx, w.Rev)
	}
	if err != nil {
		return verdict{}, err
	}
	return v, nil
}

// addressPicker picks the addresses of a new node.
type addressPicker func(*mesh.Snapshot) (v4, v6 netip.Addr, err error)

// addresses picks the addresses of a new node.
func (s *Joins) addresses(draw uint64) func(w *mesh.Snapshot) (v4, v6 netip.Addr, err error) {
	return func(w *mesh.Snapshot) (v4, v6 netip.Addr, err error) {
		start4, start6 := w.Counters.V4, w.Counters.V6
		if s.randomAddresses {
			start4, start6 = mesh.AddrAt(s.prefixV4, draw), mesh.AddrAt(s.prefixV6, draw)
		}
		if v4, err = w.NextAddr(s.prefixV4, start4); err != nil {
			return v4, v6, fmt.Errorf("%s: %w", s.prefixV4, err)
		}
		if v6, err = w.NextAddr(s.prefixV6, start6); err != nil {
			return v4, v6, fmt.Errorf("%s: %w", s.prefixV6, err)
		}
		return v4, v6, nil
	}
}

// decideJoin is the whole table of what a registration means.
func (s *Joins) decideJoin(w *policy.World, now mesh.Time, j Joining, addresses addressPicker) (verdict, []mesh.Event, error) {
	n, known := w.NodeByKey(j.NodeKey)
	switch {
	case known && n.MachineKey != j.MachineKey:
		return verdict{}, nil, refuse(Conflict, "nodeKey", "another machine has this node key; log out and in again to make a new one")
	case known:
		v, evs := decideKnown(n, now, j.Expiry)
		return v, evs, nil
	case j.Expiry.Reached(now): // logged out, and gone already
		return verdict{keyExpired: true}, nil, nil
	}
	g, err := grantFor(w, now, j)
	switch {
	case err != nil:
		return verdict{}, nil, err
	case g.rejected != "":
		return verdict{rejected: g.rejected}, nil, nil
	case g.method == "":
		return verdict{ask: true}, nil, nil
	}
	n, evs, err := s.admit(w, now, g, j, addresses)
	return verdict{node: n, registered: err == nil}, evs, err
}

// decideKnown answers a machine that comes with a node key it registered. A
// pre-auth key is not looked at: programs send theirs at every start, and it may
// have been used up, ended or deleted since.
func decideKnown(n *mesh.Node, now, wish mesh.Time) (verdict, []mesh.Event) {
	changed := *n
	changed.UpdatedAt = now
	switch {
	case wish.Reached(now) && n.Ephemeral:
		return verdict{keyExpired: true}, []mesh.Event{mesh.NodeGone{ID: n.ID}}
	case wish.Reached(now) && !n.Lapsed:
		changed.Expiry, changed.Lapsed = now, true
		return verdict{node: &changed, keyExpired: true}, []mesh.Event{mesh.NodePut{Node: &changed}}
	case n.Lapsed || n.Expired(now):
		return verdict{node: n, keyExpired: true}, nil
	case wish != 0 && (n.Expiry == 0 || wish <= n.Expiry.Add(-leastSooner)):
		changed.Expiry = wish
		return verdict{node: &changed}, []mesh.Event{mesh.NodePut{Node: &changed}}
	}
	return verdict{node: n}, nil
}

// grant is what lets a node in: a pre-auth key, or the word of an administrator.
// Without a method there is none.
type grant struct {
	method   mesh.RegisterMethod
	user     mesh.UserID // zero for a key that has tags alone
	key      *mesh.PreAuthKey
	login    *mesh.Login
	retry    *mesh.Node // the node that this machine registered with the same single-use key
	rejected string
}

// retryWithin is how long a machine may come again with a single-use key that it has
// just used. "tailscale up --force-reauth" can register twice, with two node keys.
const retryWithin = time.Minute

func grantFor(w *policy.World, now mesh.Time, j Joining) (grant, error) {
	if j.PreAuthKey != "" {
		return grantOfKey(w, now, j.PreAuthKey, j.MachineKey)
	}
	l, ok := w.Login(j.NodeKey)
	switch {
	case !ok, l.MachineKey != j.MachineKey, l.Until.Reached(now):
		return grant{}, nil
	case l.Rejected != "":
		// The answer stays until its end: clients ask again and again.
		return grant{rejected: l.Rejected}, nil
	}
	return grant{method: mesh.RegisterApproved, user: l.User, login: l}, nil
}

// grantOfKey checks a pre-auth key. The machine key is that of the client if it has
// proven it, and zero otherwise.
func grantOfKey(w *policy.World, now mesh.Time, text string, proven key.MachinePublic) (grant, error) {
	k, ok := identity.PreAuthKey(w.Snapshot, text)
	var retry *mesh.Node
	switch {
	case !ok:
		return grant{}, errUnknownKey()
	case k.Expiry.Reached(now):
		return grant{}, refuse(BadKey, "preAuthKey", "the key has expired; ask your administrator for a new one")
	case k.Used && !k.Reusable:
		if retry = retryOf(w, now, k, proven); retry == nil {
			return grant{}, refuse(BadKey, "preAuthKey", "the key can be used once and was used; ask your administrator for a new one")
		}
	}
	return grant{method: mesh.RegisterAuthKey, user: k.User, key: k, retry: retry}, nil
}

// retryOf is the node that this machine has just registered with a single-use key, nil
// if it has none or may not come again.
func retryOf(w *policy.World, now mesh.Time, k *mesh.PreAuthKey, machine key.MachinePublic) *mesh.Node {
	if machine.IsZero() || k.LastUse.At.Add(retryWithin).Reached(now) {
		return nil
	}
	for _, n := range w.NodesByMachine(machine) {
		if n.PreAuthKey == k.ID && !n.Lapsed && !n.Expired(now) {
			return n
		}
	}
	return nil
}

// admit gives the node key a node: the one that the machine already has for this
// grant, which keeps its id, addresses and name, or a new one.
func (s *Joins) admit(w *policy.World, now mesh.Time, g grant, j Joining, addresses addressPicker) (*mesh.Node, []mesh.Event, error) {
	tags, err := g.tags(w, j.Tags, j.trial)
	if err != nil {
		return nil, nil, err
	}
	n := &mesh.Node{ID: w.Counters.Node + 1, MachineKey: j.MachineKey, CreatedAt: now}
	var evs []mesh.Event
	if old := g.earlier(w, j, len(tags) > 0); old != nil {
		*n = *old
	} else {
		if n.IPv4, n.IPv6, err = addresses(w.Snapshot); err != nil {
			return nil, nil, err
		}
		evs = append(evs, mesh.AddressCursor{V4: n.IPv4, V6: n.IPv6})
	}
	j.Host.describe(w, n)
	n.NodeKey, n.CapVersion, n.Tags, n.Method, n.UpdatedAt = j.NodeKey, j.CapVersion, tags, g.method, now
	n.Ephemeral, n.PreAuthKey = j.Ephemeral, 0
	n.Owner, n.CreatedBy, n.Expiry, n.Lapsed = 0, 0, 0, false
	if len(tags) > 0 {
		n.CreatedBy = g.user
	} else {
		n.Owner = g.user
		if s.nodeExpiry > 0 {
			n.Expiry = now.Add(s.nodeExpiry)
		}
	}
	if j.Expiry != 0 && (n.Expiry == 0 || j.Expiry < n.Expiry) {
		n.Expiry = j.Expiry
	}
	if g.key != nil {
		n.Ephemeral, n.PreAuthKey = j.Ephemeral || g.key.Ephemeral, g.key.ID
	}
	if err := s.quotas.check(w, n); err != nil {
		return nil, nil, err
	}
	keepRoutes(w, now, n)
	return n, slices.Concat([]mesh.Event{mesh.NodePut{Node: n}}, evs, g.spent(now, j.addr)), nil
}

// tags are those of the key and those that the device asked for and may have.
func (g grant) tags(w *policy.World, asked []string, trial comeback) ([]string, error) {
	asked, err := checkTags("tags", asked)
	if err != nil {
		return nil, err
	}
	user, _ := w.User(g.user)
	for _, tag := range asked {
		if err := trial.mayTag(w, user, g.key, tag); err != nil {
			return nil, err
		}
	}
	if g.key != nil {
		asked = slices.Concat(g.key.Tags, asked)
	}
	slices.Sort(asked)
	if asked = slices.Compact(asked); len(asked) == 0 {
		return nil, nil
	}
	return asked, nil
}

// earlier is the node that this machine has for the same user, or for tags if
// the node is to be tagged. A machine on which several people sign in has a node
// for each; the key that the client had before tells which of two fits.
func (g grant) earlier(w *policy.World, j Joining, tagged bool) *mesh.Node {
	if g.retry != nil {
		return g.retry
	}
	var best *mesh.Node
	rank := 0
	for _, n := range w.NodesByMachine(j.MachineKey) {
		fits := g.user != 0 && (n.Owner == g.user || n.CreatedBy == g.user) || tagged && n.Tagged()
		r := 1
		if n.Tagged() == tagged {
			r = 2
		}
		if n.NodeKey == j.OldNodeKey {
			r = 3
		}
		if fits && r > rank {
			best, rank = n, r
		}
	}
	return best
}

// spent notes that the grant was used.
func (g grant) spent(now mesh.Time, from string) (evs []mesh.Event) {
	if g.login != nil {
		return []mesh.Event{mesh.LoginGone{ID: g.login.ID}}
	}
	if g.retry != nil {
		return nil // counted, and the minute began, with the first use
	}
	if !g.key.Used {
		used := *g.key
		used.Used = true
		evs = append(evs, mesh.PreAuthKeyPut{Key: &used})
	}
	return append(evs, mesh.PreAuthKeyUsed{ID: g.key.ID, Use: mesh.KeyUse{At: now, From: from, Count: g.key.LastUse.Count + 1}})
}
