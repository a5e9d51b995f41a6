package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Registration is what a machine says of itself when it enrols with a pre-auth
// key.
type Registration struct {
	PreAuthKey    string
	MachineKey    key.MachinePublic
	NodeKey       key.NodePublic
	Hostname      string
	OS            string
	Arch          string
	ClientVersion string
	RoutableIPs   []netip.Prefix
	Tags          []string
}

const (
	maxHostname = 255
	maxHostText = 128
	maxRoutes   = 256
)

// check bounds the request and brings its lists into one form.
func (r *Registration) check() (err error) {
	switch {
	case r.MachineKey.IsZero():
		return refuse(Invalid, "machineKey", "a machine key is required, as mkey: and 64 hexadecimal digits")
	case r.NodeKey.IsZero():
		return refuse(Invalid, "nodeKey", "a node key is required, as nodekey: and 64 hexadecimal digits")
	case len(r.RoutableIPs) > maxRoutes:
		return refuse(Invalid, "routableIPs", "at most %d routes", maxRoutes)
	}
	r.Hostname = cleanHostname(r.Hostname)
	for _, f := range []struct {
		path, text string
		limit      int
	}{
		{"hostname", r.Hostname, maxHostname},
		{"os", r.OS, maxHostText},
		{"arch", r.Arch, maxHostText},
		{"clientVersion", r.ClientVersion, maxHostText},
	} {
		if err := checkText(f.path, f.text, f.limit); err != nil {
			return err
		}
	}
	if r.Tags, err = checkTags("tags", r.Tags); err != nil {
		return err
	}
	routes := make([]netip.Prefix, 0, len(r.RoutableIPs))
	for i, p := range r.RoutableIPs {
		if !p.IsValid() || p != p.Masked() {
			return refuse(Invalid, fmt.Sprintf("routableIPs[%d]", i), "%s is not a network: write it as %s", p, p.Masked())
		}
		routes = append(routes, p)
	}
	slices.SortFunc(routes, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	r.RoutableIPs = nil
	if routes = slices.Compact(routes); len(routes) > 0 {
		r.RoutableIPs = routes
	}
	return nil
}

// Register lets a new node in by a pre-auth key. The machine key is not proven
// here, so it only creates: a machine that is known is refused, unless it is
// the same request again, which gets the same answer.
func (s *Service) Register(ctx context.Context, a mesh.Actor, r Registration) (*mesh.Node, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if a.Kind == mesh.ActorNode {
		a.ID = shortKey(r.MachineKey)
	}
	node, created, err := s.register(ctx, a, r)
	if err != nil {
		s.logRefusal(err, a, r)
		return nil, err
	}
	if created {
		s.registrations.Inc()
		s.logFor(a).Info("node registered", "node", node.ID, "name", node.Name, "user", s.ownerName(node), "tags", node.Tags)
	}
	return node, nil
}

func (s *Service) register(ctx context.Context, a mesh.Actor, r Registration) (*mesh.Node, bool, error) {
	// A guess must not take the write lock: who does not know a key is sent
	// away before it.
	if _, ok := identity.PreAuthKey(s.ledger.World().Snapshot, r.PreAuthKey); !ok {
		if err := s.ledger.Sync(ctx); err != nil {
			return nil, false, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
		}
		if _, ok = identity.PreAuthKey(s.ledger.World().Snapshot, r.PreAuthKey); !ok {
			return nil, false, errUnknownKey()
		}
	}
	addresses := s.addresses(rand.Uint64())
	var node *mesh.Node
	var created bool
	_, err := s.ledger.Commit(ctx, a, func(w *policy.World, now mesh.Time) (evs []mesh.Event, err error) {
		node, evs, err = s.decideRegister(w, now, r, addresses)
		created = len(evs) > 0
		return evs, err
	})
	if err != nil {
		return nil, false, err
	}
	return node, created, nil
}

func errUnknownKey() error {
	return refuse(BadKey, "preAuthKey", "the key is unknown; create one with: fairlead preauthkeys create")
}

func (s *Service) logRefusal(err error, a mesh.Actor, r Registration) {
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		return
	}
	switch refusal.Reason {
	case BadKey:
		s.log.Warn("authentication failed", "addr", a.Addr, "machine", shortKey(r.MachineKey), "reason", refusal.Text, "req", a.RequestID)
	case Denied:
		s.log.Warn("ACL denied", "addr", a.Addr, "machine", shortKey(r.MachineKey), "node", r.Hostname, "user", s.keyOwner(r.PreAuthKey),
			"rule", refusal.Text, "req", a.RequestID)
	case Invalid, NotFound, Conflict:
	}
}

// keyOwner names the user of a pre-auth key; it is empty if there is none.
func (s *Service) keyOwner(key string) string {
	w := s.ledger.World()
	if k, ok := identity.PreAuthKey(w.Snapshot, key); ok {
		if u, ok := w.User(k.User); ok {
			return u.Name
		}
	}
	return ""
}

func (s *Service) decideRegister(w *policy.World, now mesh.Time, r Registration,
	addresses func(*mesh.Snapshot) (v4, v6 netip.Addr, err error),
) (*mesh.Node, []mesh.Event, error) {
	k, ok := identity.PreAuthKey(w.Snapshot, r.PreAuthKey)
	if !ok {
		return nil, nil, errUnknownKey()
	}
	machine := w.NodesByMachine(r.MachineKey)
	for _, n := range machine {
		if n.NodeKey == r.NodeKey && n.PreAuthKey == k.ID {
			return n, nil, nil
		}
	}
	switch {
	case k.Expiry.Reached(now):
		return nil, nil, refuse(BadKey, "preAuthKey", "the key has expired; create another")
	case k.Used && !k.Reusable:
		return nil, nil, refuse(BadKey, "preAuthKey", "the key can be used once and was used; create another, or one with --reusable")
	case len(machine) > 0:
		return nil, nil, refuse(Conflict, "machineKey", "this machine is registered already, as node %s; delete that node first", machine[0].ID)
	}
	if _, taken := w.NodeByKey(r.NodeKey); taken {
		return nil, nil, refuse(Conflict, "nodeKey", "another machine has this node key; make a new one")
	}
	user, _ := w.User(k.User)
	for _, tag := range r.Tags {
		if err := w.MayTag(user, k, tag); err != nil {
			return nil, nil, refuse(Denied, "tags", "%s", err.Error())
		}
	}
	tags := slices.Concat(k.Tags, r.Tags)
	slices.Sort(tags)
	tags = slices.Compact(tags)
	v4, v6, err := addresses(w.Snapshot)
	if err != nil {
		return nil, nil, err
	}
	id := w.Counters.Node + 1
	n := &mesh.Node{
		ID: id, MachineKey: r.MachineKey, NodeKey: r.NodeKey, Hostname: r.Hostname, Name: w.UniqueName(r.Hostname, id),
		IPv4: v4, IPv6: v6, Tags: tags, Method: mesh.RegisterAuthKey, PreAuthKey: k.ID, Ephemeral: k.Ephemeral,
		OS: r.OS, Arch: r.Arch, ClientVersion: r.ClientVersion, RoutableIPs: r.RoutableIPs, CreatedAt: now, UpdatedAt: now,
	}
	if len(tags) > 0 {
		n.CreatedBy = k.User
	} else {
		n.Owner = k.User
		if s.nodeExpiry > 0 {
			n.Expiry = now.Add(s.nodeExpiry)
		}
	}
	evs := []mesh.Event{mesh.NodePut{Node: n}, mesh.AddressCursor{V4: v4, V6: v6}}
	if !k.Used {
		used := *k
		used.Used = true
		evs = append(evs, mesh.PreAuthKeyPut{Key: &used})
	}
	return n, evs, nil
}

// shortKey is the part of a machine key that log lines show.
func shortKey(k key.MachinePublic) string { return k.String()[:len("mkey:")+8] }

// ownerName is the owner of a node as lists show it.
func (s *Service) ownerName(n *mesh.Node) string {
	if u, ok := s.ledger.World().User(n.Owner); ok {
		return u.Name
	}
	return TaggedDevices
}
