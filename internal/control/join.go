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

// Joining is a request to register a device.
type Joining struct {
	// Proven reports that the device has proven its machine key, as clients do. A request
	// without this proof, for example from a provisioning system, can only create a node:
	// it cannot take over a node of a known machine.
	Proven     bool
	MachineKey key.MachinePublic
	NodeKey    key.NodePublic
	// OldNodeKey is a key that the client had earlier. Clients continue to send it long
	// after they replaced it.
	OldNodeKey key.NodePublic
	// PreAuthKey is sent by clients that have one, every time they start.
	PreAuthKey string
	// Followup is the login link that the client was given and is waiting on.
	Followup string
	// Expiry is when the client wants its key to expire. A time in the past is a logout,
	// zero means no preference.
	Expiry     mesh.Time
	Ephemeral  bool
	Tags       []string
	CapVersion int
	Host       Host

	addr  string         // the network address of the request
	trial previousPolicy // limits the tags while a policy is on trial
}

// Joins implements the use cases for devices that join the network.
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
			Name: "mesh_node_registrations_total", Help: "Node registrations on this replica: new nodes, and existing nodes that registered a new node key.",
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mesh_node_registrations_refused_total", Help: "Node registrations that this replica rejected because of their key or the policy.",
		}),
	}
	c.Registerer.MustRegister(s.registrations, s.refused)
	return s
}

// Joined is the result for a client.
type Joined struct {
	// Node is nil if Link or Rejected is set, or if the node has been deleted.
	Node *mesh.Node
	// User is the owner of the node; nil for a tagged node.
	User *mesh.User
	// KeyExpired tells the client to create a new node key.
	KeyExpired bool
	// Link is the page on which a person signs in, or learns how an administrator approves
	// the device.
	Link string
	// Rejected is why an administrator rejected the device.
	Rejected string
}

// leastSooner is how much earlier than its current expiry a key must be asked to expire
// for the change to be worth a commit.
const leastSooner = time.Minute

// verdict is the result of decideJoin.
type verdict struct {
	node       *mesh.Node
	registered bool // created, or given a new node key after authorization
	keyExpired bool
	ask        bool // an administrator must approve it
	rejected   string
}

// Answer returns the id of the node, if there is one.
func (v verdict) Answer() string {
	if v.node == nil {
		return ""
	}
	return v.node.ID.String()
}

// Join registers a device, resumes a known one, or logs it out.
func (s *Joins) Join(ctx context.Context, a mesh.Actor, j Joining) (Joined, error) {
	if err := j.check(s.ledger.World()); err != nil {
		return Joined{}, err
	}
	if j.Proven {
		a.Kind = mesh.ActorNode
	}
	if a.Kind == mesh.ActorNode {
		a.ID = shortKey(j.MachineKey)
	}
	j.addr = a.Addr
	if err := s.verifyImported(ctx, a, j); err != nil {
		return Joined{}, err
	}
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
		s.logRefusal(err, a, j)
		return Joined{}, err
	}
	if v.registered {
		s.logRegistration(a, v.node)
	}
	if v.node != nil {
		out.User, _ = s.ledger.World().Users.Get(v.node.Owner)
	}
	return out, nil
}

// check validates a request. The description that a client sends is trimmed, because nobody
// can change it. Other callers are told what is wrong.
func (j *Joining) check(w *policy.World) (err error) {
	if j.Proven {
		if j.NodeKey.IsZero() {
			return refuse(Invalid, "nodeKey", "the request has no node key")
		}
		j.Host = j.Host.bounded()
		return nil
	}
	switch {
	case j.MachineKey.IsZero():
		return refuse(Invalid, "machineKey", "machineKey is required: mkey: followed by 64 hexadecimal digits")
	case j.NodeKey.IsZero():
		return refuse(Invalid, "nodeKey", "nodeKey is required: nodekey: followed by 64 hexadecimal digits")
	}
	if err := j.Host.check(w); err != nil {
		return err
	}
	j.Tags, err = checkTags("tags", j.Tags)
	return err
}

// join decides and commits. It repeats both if the decision needs the policy before the
// trial.
func (s *Joins) join(ctx context.Context, a mesh.Actor, j Joining) (v verdict, err error) {
	err = s.withPreviousPolicy(ctx, func(c previousPolicy) (err error) {
		j.trial = c
		v, err = s.tryJoin(ctx, a, j)
		return err
	})
	return v, err
}

// tryJoin decides and commits once. It first decides without a lock, which suffices for
// known clients, which are almost all of them, and usually for unknown ones, which may be
// hostile.
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
	if len(evs) == 0 && a.Once == nil {
		return s.confirmUnchanged(ctx, w, v)
	}
	if j.Proven { // an unproven key could belong to anyone; those requests are limited by address
		if err := s.pace.charge(j.MachineKey, time.Now(), v.keyExpired); err != nil {
			return verdict{}, err
		}
	}
	v, err = commitRoutes(ctx, s.core, a, func(w *policy.World, now mesh.Time) (verdict, []mesh.Event, error) {
		return s.decideJoin(w, now, j, addresses)
	})
	if j.Proven && errors.Is(err, ledger.ErrUnavailable) { // the device will keep trying
		s.pace.refund(j.MachineKey)
	}
	return v, err
}

// confirmUnchanged returns a verdict that changes nothing, after making sure that it is
// based on durable state if necessary. "You are registered" and "you are logged out" may be
// sent to a client that retries because it got no response to its first request. They
// acknowledge that request, so its result must be durable. A refusal, a rejection or a
// login link promises nothing.
func (s *Joins) confirmUnchanged(ctx context.Context, w *policy.World, v verdict) (verdict, error) {
	var err error
	switch {
	case v.node != nil:
		err = s.ledger.ConfirmChange(ctx, w.Rev, v.node.UpdatedAt)
	case v.keyExpired: // the node is gone; unknown clients can cause this too, but at most once per commit of another replica
		err = s.ledger.Confirm(ctx, w.Rev)
	}
	if err != nil {
		return verdict{}, err
	}
	return v, nil
}

// addressPicker picks the addresses of a new node.
type addressPicker func(*mesh.Snapshot) (v4, v6 netip.Addr, err error)

// addresses returns an addressPicker. draw is the random number to use if addresses are
// random.
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

// decideJoin decides the result of any registration request.
func (s *Joins) decideJoin(w *policy.World, now mesh.Time, j Joining, addresses addressPicker) (verdict, []mesh.Event, error) {
	if !j.Proven {
		return s.decideUnproven(w, now, j, addresses)
	}
	n, known := w.Nodes.ByKey(j.NodeKey)
	switch {
	case known && n.MachineKey != j.MachineKey:
		return verdict{}, nil, refuse(Conflict, "nodeKey", "another device uses this node key; log out and in again to create a new one")
	case known:
		if n.Suspended() && !j.Expiry.Reached(now) {
			// Saying that the key has expired would make the client discard its key, and the
			// user would have to sign in again after the suspension.
			return verdict{}, nil, errSuspended()
		}
		v, evs := decideKnown(n, now, j.Expiry)
		return v, evs, nil
	case j.Expiry.Reached(now): // logged out, and deleted already
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

// decideUnproven creates a node with a pre-auth key. It refuses a known machine, except for
// a retry of the same request, which gets the same result.
func (s *Joins) decideUnproven(w *policy.World, now mesh.Time, j Joining, addresses addressPicker) (verdict, []mesh.Event, error) {
	machine := w.Nodes.ByMachine(j.MachineKey)
	if k, ok := identity.PreAuthKey(w.Snapshot, j.PreAuthKey); ok {
		for _, n := range machine {
			if n.NodeKey == j.NodeKey && n.PreAuthKey == k.ID {
				return verdict{node: n}, nil, nil
			}
		}
	}
	g, err := grantOfKey(w, now, j.PreAuthKey, key.MachinePublic{})
	if err != nil {
		return verdict{}, nil, err
	}
	if len(machine) > 0 {
		return verdict{}, nil, refuse(Conflict, "machineKey", "this machine is already registered as node %s; delete that node first", machine[0].ID)
	}
	if _, taken := w.Nodes.ByKey(j.NodeKey); taken {
		return verdict{}, nil, refuse(Conflict, "nodeKey", "another device uses this node key; generate a new one")
	}
	n, evs, err := s.admit(w, now, g, j, addresses)
	return verdict{node: n, registered: err == nil}, evs, err
}

// decideKnown decides for a machine that uses a node key it has registered, and applies the
// requested expiry. A pre-auth key is ignored: programs send theirs at every start, and it
// may have been used, expired or deleted since.
func decideKnown(n *mesh.Node, now, expiry mesh.Time) (verdict, []mesh.Event) {
	changed := *n
	changed.UpdatedAt = now
	switch {
	case expiry.Reached(now) && n.Ephemeral:
		return verdict{keyExpired: true}, []mesh.Event{mesh.NodeGone{ID: n.ID}}
	case expiry.Reached(now) && !n.KeyExpired:
		changed.Expiry, changed.KeyExpired = now, true
		return verdict{node: &changed, keyExpired: true}, []mesh.Event{mesh.NodePut{Node: &changed}}
	case n.KeyExpired || n.Expired(now):
		return verdict{node: n, keyExpired: true}, nil
	case expiry != 0 && (n.Expiry == 0 || expiry <= n.Expiry.Add(-leastSooner)):
		changed.Expiry = expiry
		return verdict{node: &changed}, []mesh.Event{mesh.NodePut{Node: &changed}}
	}
	return verdict{node: n}, nil
}

// admit assigns a node to the node key: the node that the machine already has for this
// grant, which keeps its id, addresses, name and approval, or a new one.
func (s *Joins) admit(w *policy.World, now mesh.Time, g grant, j Joining, addresses addressPicker) (*mesh.Node, []mesh.Event, error) {
	tags, err := g.tags(w, j.Tags, j.trial)
	if err != nil {
		return nil, nil, err
	}
	n := &mesh.Node{ID: w.Counters.Node + 1, MachineKey: j.MachineKey, CreatedAt: now, NeedsApproval: s.nodeApproval || waits(w.Snapshot, g.user)}
	var evs []mesh.Event
	if old := g.earlier(w, j, len(tags) > 0); old != nil {
		*n = *old
	} else if evs, err = allocate(w, n, j.Host.Hostname, w.Reservations.For(j.Host.Hostname, g.user, tags), addresses); err != nil {
		return nil, nil, err
	}
	n.NeedsApproval = n.NeedsApproval && !g.approves()
	j.Host.describe(w, n)
	n.NodeKey, n.CapVersion, n.Tags, n.Method, n.UpdatedAt = j.NodeKey, j.CapVersion, tags, g.method, now
	n.Ephemeral, n.PreAuthKey = j.Ephemeral, 0
	n.Owner, n.CreatedBy, n.Expiry, n.KeyExpired = 0, 0, 0, false
	if len(tags) > 0 {
		n.CreatedBy = g.user
	} else {
		n.Owner = g.user
		switch {
		case g.login != nil && g.login.Expiry != 0:
			n.Expiry = g.login.Expiry
		case s.nodeExpiry > 0:
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

// allocate gives a new node its addresses, and its name if one is reserved for it.
func allocate(w *policy.World, n *mesh.Node, hostname string, r *mesh.Reservation, addresses addressPicker) (evs []mesh.Event, err error) {
	if r != nil {
		// A name that differs from the hostname must not follow it.
		n.Name, n.Hostname, n.Renamed = r.Name, hostname, !r.NamedAfter(hostname)
		n.IPv4, n.IPv6 = r.IPv4, r.IPv6
		evs = append(evs, mesh.ReservationGone{ID: r.ID})
		if len(r.Addrs()) == 2 {
			return evs, nil
		}
	}
	v4, v6, err := addresses(w.Snapshot)
	if err != nil {
		return nil, err
	}
	if !n.IPv4.IsValid() {
		n.IPv4 = v4
	}
	if !n.IPv6.IsValid() {
		n.IPv6 = v6
	}
	return append(evs, mesh.AddressCursor{V4: v4, V6: v6}), nil
}

func (s *Joins) logRegistration(a mesh.Actor, n *mesh.Node) {
	s.registrations.Inc()
	s.logFor(a).Info("node registered", "node", n.ID, "name", n.Name, "user", s.ownerName(n), "tags", n.Tags, "needs_approval", n.NeedsApproval)
}

// logRefusal logs why a node could not join. A machine that has proven its key and uses the
// node key of another machine is treated as an intruder. Without that proof, it is merely a
// conflict.
func (s *Joins) logRefusal(err error, a mesh.Actor, j Joining) {
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		return
	}
	s.refused.Inc()
	line := s.log.With("addr", a.Addr, "machine", shortKey(j.MachineKey), "req", a.RequestID)
	switch {
	case refusal.Reason == BadKey && s.refusals.Admit(a.Addr):
		line.Warn("authentication failed", "reason", refusal.Text)
	case refusal.Reason == Suspended && s.refusals.Admit(a.Addr):
		line.Warn("authentication failed", "reason", "the user is suspended", "node", j.Host.Hostname, "user", s.futureOwnerName(j))
	case refusal.Reason == Denied && s.refusals.Admit(a.Addr):
		line.Warn("ACL denied", "node", j.Host.Hostname, "user", s.futureOwnerName(j), "rule", refusal.Text)
	case refusal.Reason == Conflict && j.Proven && s.refusals.Admit(a.Addr):
		line.Warn("forbidden", "reason", refusal.Text)
	case refusal.Reason == Conflict && !j.Proven && s.refusals.Admit(a.Addr):
		line.Warn("registration conflicts with an existing node", "reason", refusal.Text)
	}
}

// futureOwnerName returns the name of the user who owns the node or would own it, or "".
func (s *Joins) futureOwnerName(j Joining) string {
	w := s.ledger.World()
	var id mesh.UserID
	if n, ok := w.Nodes.ByKey(j.NodeKey); ok {
		id = n.Owner
	} else if k, ok := identity.PreAuthKey(w.Snapshot, j.PreAuthKey); ok {
		id = k.User
	} else if l, ok := w.Logins.ByNodeKey(j.NodeKey); ok {
		id = l.User
	}
	if u, ok := w.Users.Get(id); ok {
		return u.Name
	}
	return ""
}

// shortKey returns the part of a machine key that log lines show.
func shortKey(k key.MachinePublic) string { return k.String()[:len("mkey:")+8] }
