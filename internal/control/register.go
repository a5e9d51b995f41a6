package control

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"

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

// check bounds the request and brings its lists into one form.
func (r *Registration) check(w *policy.World) (err error) {
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
		path := fmt.Sprintf("routableIPs[%d]", i)
		if !p.IsValid() || p != p.Masked() {
			return refuse(Invalid, path, "%s is not a network: write it as %s", p, p.Masked())
		}
		if err := mayRoute(w, path, p); err != nil {
			return err
		}
		routes = append(routes, p)
	}
	r.RoutableIPs = sortedRoutes(routes)
	return nil
}

// joining is the same in the form that clients ask in.
func (r *Registration) joining() Joining {
	h := Host{Hostname: r.Hostname, OS: r.OS, Arch: r.Arch, ClientVersion: r.ClientVersion, RoutableIPs: r.RoutableIPs}
	h.Object = h.object()
	return Joining{MachineKey: r.MachineKey, NodeKey: r.NodeKey, PreAuthKey: r.PreAuthKey, Tags: r.Tags, Host: h}
}

// Register lets a new node in by a pre-auth key. The machine key is not proven
// here, so it only creates: a machine that is known is refused, unless it is
// the same request again, which gets the same answer.
func (s *Joins) Register(ctx context.Context, a mesh.Actor, r Registration) (*mesh.Node, error) {
	if err := r.check(s.ledger.World()); err != nil {
		return nil, err
	}
	if a.Kind == mesh.ActorNode {
		a.ID = shortKey(r.MachineKey)
	}
	j := r.joining()
	j.addr = a.Addr
	node, created, err := s.register(ctx, a, j)
	if err != nil {
		s.logRefusal(err, a, r.joining(), false)
		return nil, err
	}
	if created {
		s.logRegistration(a, node)
	}
	return node, nil
}

func (s *Joins) register(ctx context.Context, a mesh.Actor, j Joining) (*mesh.Node, bool, error) {
	// A guess must not take the write lock: who does not know a key is sent
	// away before it.
	if _, ok := identity.PreAuthKey(s.ledger.World().Snapshot, j.PreAuthKey); !ok {
		if err := s.ledger.Sync(ctx); err != nil {
			return nil, false, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
		}
		if _, ok = identity.PreAuthKey(s.ledger.World().Snapshot, j.PreAuthKey); !ok {
			return nil, false, errUnknownKey()
		}
	}
	addresses := s.addresses(rand.Uint64())
	var node *mesh.Node
	var created bool
	err := s.withComeback(ctx, func(c comeback) error {
		j.trial = c
		return s.commitRoutes(ctx, a, func(w *policy.World, now mesh.Time) (evs []mesh.Event, err error) {
			node, evs, err = s.decideRegister(w, now, j, addresses)
			if created = len(evs) > 0; node != nil {
				a.Answers(node.ID.String())
			}
			return evs, err
		})
	})
	if err != nil {
		return nil, false, err
	}
	return node, created, nil
}

func errUnknownKey() error {
	return refuse(BadKey, "preAuthKey", "the key is unknown; ask your administrator for a new one")
}

func (s *Joins) logRegistration(a mesh.Actor, n *mesh.Node) {
	s.registrations.Inc()
	s.logFor(a).Info("node registered", "node", n.ID, "name", n.Name, "user", s.ownerName(n), "tags", n.Tags)
}

// logRefusal logs why a node could not join. A machine that has proven its key and uses
// the key of another is an intruder; without that proof it is merely a conflict.
func (s *Joins) logRefusal(err error, a mesh.Actor, j Joining, proven bool) {
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		return
	}
	s.refused.Inc()
	line := s.log.With("addr", a.Addr, "machine", shortKey(j.MachineKey), "req", a.RequestID)
	switch {
	case refusal.Reason == BadKey && s.refusals.Admit(a.Addr):
		line.Warn("authentication failed", "reason", refusal.Text)
	case refusal.Reason == Denied && s.refusals.Admit(a.Addr):
		line.Warn("ACL denied", "node", j.Host.Hostname, "user", s.sponsor(j), "rule", refusal.Text)
	case refusal.Reason == Conflict && proven && s.refusals.Admit(a.Addr):
		line.Warn("forbidden", "reason", refusal.Text)
	case refusal.Reason == Conflict && !proven && s.refusals.Admit(a.Addr):
		line.Warn("registration conflicts with an existing node", "reason", refusal.Text)
	}
}

// sponsor names the user who would own the node; it is empty if there is none.
func (s *Joins) sponsor(j Joining) string {
	w := s.ledger.World()
	var id mesh.UserID
	if k, ok := identity.PreAuthKey(w.Snapshot, j.PreAuthKey); ok {
		id = k.User
	} else if l, ok := w.Login(j.NodeKey); ok {
		id = l.User
	}
	if u, ok := w.User(id); ok {
		return u.Name
	}
	return ""
}

func (s *Joins) decideRegister(w *policy.World, now mesh.Time, j Joining, addresses addressPicker) (*mesh.Node, []mesh.Event, error) {
	machine := w.NodesByMachine(j.MachineKey)
	if k, ok := identity.PreAuthKey(w.Snapshot, j.PreAuthKey); ok {
		for _, n := range machine {
			if n.NodeKey == j.NodeKey && n.PreAuthKey == k.ID {
				return n, nil, nil
			}
		}
	}
	g, err := grantOfKey(w, now, j.PreAuthKey, key.MachinePublic{})
	if err != nil {
		return nil, nil, err
	}
	if len(machine) > 0 {
		return nil, nil, refuse(Conflict, "machineKey", "this machine is registered already, as node %s; delete that node first", machine[0].ID)
	}
	if _, taken := w.NodeByKey(j.NodeKey); taken {
		return nil, nil, refuse(Conflict, "nodeKey", "another machine has this node key; make a new one")
	}
	return s.admit(w, now, g, j, addresses)
}

// shortKey is the part of a machine key that log lines show.
func shortKey(k key.MachinePublic) string { return k.String()[:len("mkey:")+8] }

// ownerName is the owner of a node as lists show it.
func (s *core) ownerName(n *mesh.Node) string {
	if u, ok := s.ledger.World().User(n.Owner); ok {
		return u.Name
	}
	return TaggedDevices
}
