package control

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

const (
	// maxEndpoints limits how many addresses peers try for a node.
	maxEndpoints = 32
	// maxRelay is the largest region id: older clients get it as a port number.
	maxRelay = 1<<16 - 1
)

// Clients implements the use cases for running clients.
type Clients struct {
	*core
	observations *Observations
	late         lateReports
	delayed      prometheus.Counter
}

func newClients(c *core, o *Observations, reg prometheus.Registerer) *Clients {
	s := &Clients{core: c, observations: o, delayed: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "mesh_node_reports_delayed_total", Help: "Node reports that exceeded the rate limit of their node and were merged, to be committed later.",
	})}
	reg.MustRegister(s.delayed)
	return s
}

// Report is what a client reports while it runs. Missing parts stay unchanged: clients omit
// what they do not know at the moment, and peers cannot be told to forget it.
type Report struct {
	MachineKey key.MachinePublic
	NodeKey    key.NodePublic
	CapVersion int
	Host       *Host
	Endpoints  []netip.AddrPort
	DiscoKey   key.DiscoPublic
	HomeRelay  int
	Measured   Measured

	facts *mesh.Facts // the facts of the node, including this report
}

// Find returns the node with a node key, if the machine that asks is the one that
// registered it.
func (s *Clients) Find(ctx context.Context, machine key.MachinePublic, node key.NodePublic) (*mesh.Node, error) {
	n, err := clientIn(s.ledger.World(), machine, node)
	if err == nil {
		return n, nil
	}
	// Another replica may have just registered it.
	if err := s.ledger.Sync(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	return clientIn(s.ledger.World(), machine, node)
}

func clientIn(w *policy.World, machine key.MachinePublic, node key.NodePublic) (*mesh.Node, error) {
	n, ok := w.Nodes.ByKey(node)
	switch {
	case !ok:
		return nil, refuse(NotFound, "nodeKey", "unknown node key: the node was deleted, or has a new key; log in again")
	case n.MachineKey != machine:
		return nil, refuse(Denied, "nodeKey", "this node key belongs to another machine")
	}
	return n, nil
}

// AdmitToRelay refuses clients that are not nodes of this mesh or must log in again. If the
// database is unavailable, a relay continues to admit the nodes that this replica knows:
// the traffic it relays is encrypted end to end.
func (s *Clients) AdmitToRelay(ctx context.Context, node key.NodePublic) error {
	_ = s.ledger.Verified(ctx)
	if s.Known(node) {
		return nil
	}
	if err := s.ledger.Sync(ctx); err != nil {
		return fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	if !s.Known(node) {
		return refuse(NotFound, "nodeKey", "unknown or expired node key, or its user is suspended")
	}
	return nil
}

// Known reports whether this replica knows a node by its key, and the node is not cut off.
// Relays admit such nodes. This includes nodes that need approval, so that they are reachable
// within milliseconds of it: until then they have no peers to send anything to.
func (s *Clients) Known(k key.NodePublic) bool {
	n, ok := s.ledger.World().Nodes.ByKey(k)
	return ok && !n.CutOff()
}

// Report records how a node can be reached, and its description. Most reports contain
// nothing new and cause no commit.
func (s *Clients) Report(ctx context.Context, a mesh.Actor, r Report) error {
	n, err := s.Find(ctx, r.MachineKey, r.NodeKey)
	if err != nil {
		return err
	}
	if r.Host != nil {
		h := r.Host.bounded()
		r.Host = &h
	}
	r.Endpoints = usable(r.Endpoints)
	r.facts = s.observations.observe(n.ID, func(f *mesh.Facts, now mesh.Time) {
		if !r.DiscoKey.IsZero() && r.DiscoKey != n.Net.DiscoKey {
			f.Warnings = nil // a client creates a new disco key at each start
		}
		r.Measured.change(f, now)
		if r.Host != nil {
			s.observations.noteForbidden(a, n, r.Host.RoutableIPs, f, now)
		}
	})
	a.Kind, a.ID, a.Name = mesh.ActorNode, n.ID.String(), n.Name
	s.late.add(n.ID, a, time.Now(), r)
	// If this fails, the report is kept and committed later.
	waits, err := s.saveReport(ctx, n.ID, func(*policy.World) bool { return false })
	if waits {
		s.delayed.Inc()
	}
	return err
}

// usable returns the endpoints that peers could reach, without duplicates and up to
// maxEndpoints.
func usable(all []netip.AddrPort) []netip.AddrPort {
	var kept []netip.AddrPort
	for _, e := range all {
		a := e.Addr().Unmap()
		if !a.IsValid() || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() || a.IsLinkLocalUnicast() || e.Port() == 0 {
			continue
		}
		if e = netip.AddrPortFrom(a, e.Port()); len(kept) < maxEndpoints && !slices.Contains(kept, e) {
			kept = append(kept, e)
		}
	}
	return kept
}

func decideReport(w *policy.World, now mesh.Time, r Report) ([]mesh.Event, error) {
	n, err := clientIn(w, r.MachineKey, r.NodeKey)
	if err != nil {
		return nil, err
	}
	var evs []mesh.Event
	changed := *n
	described := r.Host != nil && r.Host.describe(w, &changed)
	if r.CapVersion != 0 && r.CapVersion != n.CapVersion {
		changed.CapVersion, described = r.CapVersion, true
	}
	if described {
		changed.UpdatedAt = now
		keepRoutes(w, now, &changed)
		evs = append(evs, mesh.NodePut{Node: &changed})
	}
	net := n.Net
	if len(r.Endpoints) > 0 {
		net.Endpoints = r.Endpoints
	}
	if !r.DiscoKey.IsZero() {
		net.DiscoKey = r.DiscoKey
	}
	if r.HomeRelay > 0 && r.HomeRelay <= maxRelay {
		net.HomeRelay = r.HomeRelay
	}
	if net.HomeRelay != n.Net.HomeRelay || net.DiscoKey != n.Net.DiscoKey || !slices.Equal(net.Endpoints, n.Net.Endpoints) {
		evs = append(evs, mesh.NodeNet{ID: n.ID, Net: net})
	}
	if net.DiscoKey != n.Net.DiscoKey && !n.Presence.Online {
		// Peers ignore a new disco key of a node that they consider offline, unless its
		// last-seen time is later than when they learned the old key.
		evs = append(evs, mesh.Offline{ID: n.ID, At: now})
	}
	if r.newFacts(w.Snapshot, n.ID, len(evs) > 0) {
		evs = append(evs, mesh.NodeFacts{Facts: r.facts})
	}
	return evs, nil
}

// newFacts reports whether the node's measurements are committed now: if its NAT changed,
// or together with other changes.
func (r Report) newFacts(s *mesh.Snapshot, id mesh.NodeID, news bool) bool {
	saved, ok := s.Facts.Get(id)
	if !ok {
		saved = &mesh.Facts{}
	}
	return r.facts != nil && saved.At < r.facts.At && (news || !saved.NAT.Equal(r.facts.NAT))
}
