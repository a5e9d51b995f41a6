package mesh

import (
	"iter"
	"net/netip"
	"slices"
	"strings"

	"tailscale.com/types/key"
)

// RegisterMethod is how a node joined.
type RegisterMethod string

// The ways in which nodes join.
const (
	RegisterAuthKey RegisterMethod = "authkey"
	// RegisterApproved means that an administrator approved the node by its link or code.
	RegisterApproved RegisterMethod = "approved"
	// RegisterOIDC means that the owner signed in with an identity provider.
	RegisterOIDC RegisterMethod = "oidc"
)

// Node is one device. A node in a snapshot is never modified. The fields with the tag
// decided are set by people or by the policy. They make up the revision by which a caller
// says what a change is based on.
type Node struct {
	ID NodeID `json:"id" decided:"true"`
	// StableID is what clients call the node in their own settings, for example for the exit
	// node that a person chose. It is empty unless the node was imported from another server:
	// see Stable.
	StableID string `json:"stableId,omitempty"`
	// Owner is zero for a tagged node: it belongs to its tags.
	Owner UserID `json:"owner,omitempty" decided:"true"`
	// CreatedBy is the user who added a tagged node: the owner before it was tagged, or
	// the user of its pre-auth key. The user may have been deleted since.
	CreatedBy  UserID            `json:"createdBy,omitempty" decided:"true"`
	MachineKey key.MachinePublic `json:"machineKey"`
	NodeKey    key.NodePublic    `json:"nodeKey"`
	// Hostname is the device's own name. Name is its label in the mesh's DNS,
	// unique among all nodes. It is decided if Renamed is set.
	Hostname string `json:"hostname"`
	Name     string `json:"name"`
	// Renamed means that a person chose Name: it stays when the hostname
	// changes.
	Renamed       bool           `json:"renamed,omitempty"`
	IPv4          netip.Addr     `json:"ipv4" decided:"true"`
	IPv6          netip.Addr     `json:"ipv6" decided:"true"`
	Tags          []string       `json:"tags,omitempty" decided:"true"`
	Method        RegisterMethod `json:"method"`
	PreAuthKey    KeyID          `json:"preAuthKey,omitempty" column:"preauth_key"`
	Ephemeral     bool           `json:"ephemeral,omitempty"`
	OS            string         `json:"os,omitempty"`
	Arch          string         `json:"arch,omitempty"`
	ClientVersion string         `json:"clientVersion,omitempty"`
	// CapVersion is the protocol version of the client.
	CapVersion int `json:"capVersion,omitempty"`
	// Host is the device's description of itself, as the JSON object that peers
	// receive.
	Host string `json:"host,omitempty"`
	// RoutableIPs lists the routes that the device advertises.
	RoutableIPs []netip.Prefix `json:"routableIPs,omitempty"`
	// Routes lists the routes that peers can use through this node: advertised by it and
	// approved.
	Routes []netip.Prefix `json:"routes,omitempty"`
	// AllRoutes lists the routes that the device advertises or has advertised, each with
	// its approval, sorted by prefix.
	AllRoutes []Route `json:"allRoutes,omitempty"`
	// Primary lists those of Routes for which this node is the router that peers use. It
	// never contains exit routes. Settle computes it.
	Primary []netip.Prefix `json:"primary,omitempty" column:"primary_routes"`
	// Unhealthy means that the device is connected but does not respond, so that other
	// routers take over its routes.
	Unhealthy bool `json:"unwell,omitempty"`
	Expiry    Time `json:"expiry,omitempty" decided:"true"`
	// KeyExpired means that Expiry has passed and peers have been told. It is a field
	// because what peers see may change only by an event, not as time passes.
	KeyExpired bool `json:"lapsed,omitempty"`
	// ExpiryNotice is the Expiry that the device has last been told of in advance. It has no
	// meaning any more once Expiry has another value: see ExpiresSoon.
	ExpiryNotice Time `json:"expiryNotice,omitempty"`
	// SuspendedAt is when the owner was suspended, or zero. Settle copies it from the owner,
	// so that a suspension changes every node that it affects.
	SuspendedAt Time `json:"suspendedAt,omitempty"`
	// NeedsApproval means that the node has no peers, and is nobody's peer, until an
	// administrator approves it. Its Routes are empty.
	NeedsApproval bool `json:"needsApproval,omitempty" decided:"true"`
	CreatedAt     Time `json:"createdAt" decided:"true"`
	// UpdatedAt is the time of the last change, except to Net and Presence.
	UpdatedAt Time `json:"updatedAt"`

	// Net and Presence change often and have events of their own. NodePut does not change
	// them.
	Net      Net      `json:"-"`
	Presence Presence `json:"-"`

	// Note is for administrators. Clients do not see it.
	Note Note `json:"note,omitzero" column:"note" decided:"true"`
}

// Note is a remark about a node, with the actor who wrote it in the form shown to people. A
// node without a note has an empty text.
type Note struct {
	Text   string `json:"text"`
	Author string `json:"author"`
	At     Time   `json:"at"`
}

// Net is how peers reach a node.
type Net struct {
	Endpoints []netip.AddrPort `json:"endpoints,omitempty"`
	DiscoKey  key.DiscoPublic  `json:"discoKey,omitzero"`
	HomeRelay int              `json:"homeRelay,omitempty"`
}

// Presence is whether a node is connected, and to which replica. If a node has two streams,
// the one with the greater Conn is newer.
type Presence struct {
	Online   bool   `json:"online,omitempty"`
	Replica  string `json:"replica,omitempty"`
	Conn     int64  `json:"conn,omitempty"`
	LastSeen Time   `json:"lastSeen,omitempty"`
}

// Stable returns the ID by which clients remember the node. It never changes. Imported nodes
// have the one that their previous server sent.
func (n *Node) Stable() string {
	if n.StableID != "" {
		return n.StableID
	}
	return "n" + n.ID.String()
}

// Tagged reports whether the node belongs to tags instead of a user.
func (n *Node) Tagged() bool { return len(n.Tags) > 0 }

// Suspended reports whether the owner of the node is suspended.
func (n *Node) Suspended() bool { return n.SuspendedAt != 0 }

// ExpiresSoon reports whether the device is told that its key is about to expire.
func (n *Node) ExpiresSoon() bool {
	return n.Expiry != 0 && n.ExpiryNotice == n.Expiry && !n.KeyExpired
}

// CutOff reports whether the node has no access: its key has expired, or its owner is
// suspended.
func (n *Node) CutOff() bool { return n.KeyExpired || n.Suspended() }

// Expired reports whether the node must authenticate again.
func (n *Node) Expired(now Time) bool { return n.Expiry.Reached(now) }

// Addrs returns the addresses the node has, IPv4 first.
func (n *Node) Addrs() []netip.Addr {
	return slices.DeleteFunc([]netip.Addr{n.IPv4, n.IPv6}, func(a netip.Addr) bool { return !a.IsValid() })
}

// Seen returns when the node was last known to be online.
func (n *Node) Seen() Time { return max(n.Presence.LastSeen, n.CreatedAt) }

// NodePut adds or replaces a node, except its Net and Presence.
type NodePut struct {
	Node *Node `json:"node"`
}

// Kind names the event in the log.
func (NodePut) Kind() Kind       { return KindNodePut }
func (e NodePut) valid() bool    { return e.Node != nil && valid(e.Node.ID) }
func (e NodePut) node() NodeID   { return e.Node.ID }
func (e NodePut) apply(d *Draft) { d.putNode(e.Node) }
func (e NodePut) load(d *Draft)  { d.s.Nodes.put(d.e, e.Node.ID, e.Node) }
func (e NodePut) count(c *Counters) {
	c.Node = max(c.Node, e.Node.ID)
	for _, r := range e.Node.AllRoutes {
		c.Route = max(c.Route, r.ID)
	}
}

// NodeGone removes a node.
type NodeGone struct {
	ID NodeID `json:"id"`
}

// Kind names the event in the log.
func (NodeGone) Kind() Kind       { return KindNodeGone }
func (e NodeGone) valid() bool    { return valid(e.ID) }
func (e NodeGone) node() NodeID   { return e.ID }
func (e NodeGone) apply(d *Draft) { d.dropNode(e.ID) }

// NodeNet replaces how peers reach a node.
type NodeNet struct {
	ID  NodeID `json:"id"`
	Net Net    `json:"net"`
}

// Kind names the event in the log.
func (NodeNet) Kind() Kind       { return KindNodeNet }
func (e NodeNet) valid() bool    { return valid(e.ID) }
func (e NodeNet) node() NodeID   { return e.ID }
func (e NodeNet) apply(d *Draft) { d.changeNode(e.ID, func(n *Node) { n.Net = e.Net }) }
func (e NodeNet) load(d *Draft)  { d.completeNode(e.ID, func(n *Node) { n.Net = e.Net }) }

// Online records that a node is connected to a replica.
type Online struct {
	ID      NodeID `json:"id"`
	Replica string `json:"replica"`
	Conn    int64  `json:"conn"`
	At      Time   `json:"at"`
}

// Kind names the event in the log.
func (Online) Kind() Kind       { return KindOnline }
func (e Online) valid() bool    { return valid(e.ID) }
func (e Online) node() NodeID   { return e.ID }
func (e Online) apply(d *Draft) { d.setPresence(e.ID, e.Presence()) }
func (e Online) load(d *Draft)  { d.completeNode(e.ID, func(n *Node) { n.Presence = e.Presence() }) }

// Presence returns the presence of the node after the event.
func (e Online) Presence() Presence {
	return Presence{Online: true, Replica: e.Replica, Conn: e.Conn, LastSeen: e.At}
}

// Offline records that a node is no longer connected.
type Offline struct {
	ID NodeID `json:"id"`
	At Time   `json:"at"`
}

// Kind names the event in the log.
func (Offline) Kind() Kind       { return KindOffline }
func (e Offline) valid() bool    { return valid(e.ID) }
func (e Offline) node() NodeID   { return e.ID }
func (e Offline) apply(d *Draft) { d.setPresence(e.ID, e.Presence()) }
func (e Offline) load(d *Draft)  { d.completeNode(e.ID, func(n *Node) { n.Presence = e.Presence() }) }

// Presence returns the presence of the node after the event.
func (e Offline) Presence() Presence { return Presence{LastSeen: e.At} }

func (d *Draft) putNode(put *Node) {
	n := *put
	n.Net, n.Presence = Net{}, Presence{}
	old, ok := d.s.Nodes.Get(n.ID)
	if ok {
		n.Net, n.Presence = old.Net, old.Presence
		d.unindexNode(old)
	}
	if !ok || !sameIdentity(old, &n) {
		d.s.IdentityRev = d.s.Rev
	}
	d.s.Nodes.put(d.e, n.ID, &n)
	d.indexNode(&n)
}

func (d *Draft) indexNode(n *Node) {
	addID(d.e, &d.s.Nodes.byMachine, n.MachineKey, n.ID)
	d.s.Nodes.byKey.put(d.e, n.NodeKey, n.ID)
	d.s.Nodes.byName.put(d.e, n.Name, n.ID)
	for _, a := range n.Addrs() {
		d.s.Nodes.byAddr.put(d.e, a, n.ID)
	}
	for _, p := range n.Routes {
		addID(d.e, &d.s.Nodes.routers, p, n.ID)
	}
	if n.Owner != 0 {
		d.s.Nodes.owned.put(d.e, n.Owner, d.s.Nodes.OwnedCount(n.Owner)+1)
	}
	if n.Presence.Online {
		d.s.Nodes.online++
	}
}

func (d *Draft) dropNode(id NodeID) {
	old, ok := d.s.Nodes.Get(id)
	if !ok {
		return
	}
	d.unindexNode(old)
	d.s.Nodes.put(d.e, id, nil)
	d.s.Facts.put(d.e, id, nil)
	d.s.IdentityRev = d.s.Rev
}

func (d *Draft) unindexNode(n *Node) {
	dropID(d.e, &d.s.Nodes.byMachine, n.MachineKey, n.ID)
	for _, p := range n.Routes {
		dropID(d.e, &d.s.Nodes.routers, p, n.ID)
	}
	release(d.e, &d.s.Nodes.byKey, n.NodeKey, n.ID)
	release(d.e, &d.s.Nodes.byName, n.Name, n.ID)
	for _, a := range n.Addrs() {
		release(d.e, &d.s.Nodes.byAddr, a, n.ID)
	}
	if n.Owner != 0 {
		if rest := d.s.Nodes.OwnedCount(n.Owner) - 1; rest > 0 {
			d.s.Nodes.owned.put(d.e, n.Owner, rest)
		} else {
			d.s.Nodes.owned.drop(d.e, n.Owner)
		}
	}
	if n.Presence.Online {
		d.s.Nodes.online--
	}
}

func (d *Draft) setPresence(id NodeID, p Presence) {
	d.changeNode(id, func(n *Node) {
		if n.Presence.Online {
			d.s.Nodes.online--
		}
		if p.Online {
			d.s.Nodes.online++
		}
		n.Presence = p
	})
}

// completeNode changes a loaded node in place: nobody else has seen it yet.
func (d *Draft) completeNode(id NodeID, edit func(*Node)) {
	if n, ok := d.s.Nodes.Get(id); ok {
		edit(n)
	}
}

// changeNode replaces a node with a changed copy. It does nothing if the node has been
// deleted.
func (d *Draft) changeNode(id NodeID, edit func(*Node)) { change(d.e, &d.s.Nodes.Table, id, edit) }

func sameIdentity(a, b *Node) bool {
	return a.NeedsApproval == b.NeedsApproval && a.Owner == b.Owner && a.Suspended() == b.Suspended() && a.IPv4 == b.IPv4 && a.IPv6 == b.IPv6 && slices.Equal(a.Tags, b.Tags) &&
		slices.Equal(a.RoutableIPs, b.RoutableIPs) && slices.Equal(a.Routes, b.Routes)
}

// Nodes holds all nodes of a snapshot.
type Nodes struct {
	Table[NodeID, Node]
	byMachine index[key.MachinePublic, []NodeID]
	byKey     index[key.NodePublic, NodeID]
	byAddr    index[netip.Addr, NodeID]
	byName    index[string, NodeID]
	routers   index[netip.Prefix, []NodeID] // nodes by each of their Routes
	owned     index[UserID, int]            // untagged nodes of a user
	online    int
}

func newNodes() Nodes {
	return Nodes{
		byMachine: newIndex[key.MachinePublic, []NodeID](),
		byKey:     newIndex[key.NodePublic, NodeID](),
		byAddr:    newIndex[netip.Addr, NodeID](),
		byName:    newIndex[string, NodeID](),
		routers:   newIndex[netip.Prefix, []NodeID](),
		owned:     newIndex[UserID, int](),
	}
}

// OwnedCount returns the number of untagged nodes of a user.
func (s *Nodes) OwnedCount(id UserID) int {
	n, _ := s.owned.at(id)
	return n
}

// OnlineCount returns the number of nodes with a live stream on any replica.
func (s *Nodes) OnlineCount() int { return s.online }

// Approved yields all nodes except those that need approval, sorted by id.
func (s *Nodes) Approved() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for n := range s.All() {
			if !n.NeedsApproval && !yield(n) {
				return
			}
		}
	}
}

// ByMachine returns the nodes of one machine: one for each user who signed in there.
func (s *Nodes) ByMachine(k key.MachinePublic) []*Node {
	ids, _ := s.byMachine.at(k)
	ns := make([]*Node, 0, len(ids))
	for _, id := range ids {
		ns = append(ns, s.at(id))
	}
	return ns
}

// ByKey finds the node with a node key.
func (s *Nodes) ByKey(k key.NodePublic) (*Node, bool) { return s.lookup(s.byKey.at(k)) }

// ByAddr finds the node with an address.
func (s *Nodes) ByAddr(a netip.Addr) (*Node, bool) { return s.lookup(s.byAddr.at(a)) }

// ByName finds the node with this label.
func (s *Nodes) ByName(name string) (*Node, bool) { return s.lookup(s.byName.at(name)) }

// NodeNamed finds a node by its label or its full name, ignoring case.
func (s *Snapshot) NodeNamed(name string) (*Node, bool) {
	name = strings.ToLower(name)
	if domain := s.DNS().BaseDomain; domain != "" {
		name = strings.TrimSuffix(strings.TrimSuffix(name, "."), "."+domain)
	}
	return s.Nodes.ByName(name)
}

// BlockSize is the number of consecutive ids that Blocks yields at once.
const BlockSize = 64

// Blocks yields all nodes, sorted by id, in blocks that start
// at multiples of BlockSize; ids without a node are nil. Two blocks with the
// same first element hold the same nodes, in any snapshot.
func (s *Nodes) Blocks() iter.Seq2[NodeID, []*Node] {
	return func(yield func(NodeID, []*Node) bool) {
		for first, p := range s.numbered() {
			for at := 0; at < pageSize; at += BlockSize {
				if !yield(first+NodeID(at), p.vals[at:at+BlockSize:at+BlockSize]) {
					return
				}
			}
		}
	}
}

// ChangedSince returns the nodes that differ between two snapshots, sorted by id.
func (s *Nodes) ChangedSince(old *Nodes) []NodeID { return s.changedSince(&old.Table) }
