package mesh

import (
	"iter"
	"net/netip"
	"slices"
	"strings"

	"tailscale.com/types/key"
)

// Snapshot is everything durable at one revision. It never changes; readers
// take a pointer and need no lock.
type Snapshot struct {
	// Rev is the last change of any kind.
	Rev Revision
	// At is the time of the newest entry, and Batch the transaction it came
	// with: two histories with the same revisions differ in it.
	At    Time
	Batch BatchID
	// IdentityRev is the last change of a user, owner, tag or address. It is
	// known only as far back as this process has followed the log.
	IdentityRev Revision
	// SettingsRev is the last change of a setting, known as far back.
	SettingsRev Revision
	// Counters says which ids and addresses come next.
	Counters Counters

	users    table[User]
	nodes    table[Node]
	preAuth  table[PreAuthKey]
	api      table[APIKey]
	logins   table[Login]
	settings table[Setting]

	userByName      index[string, UserID] // by folded name
	nodesByMachine  index[key.MachinePublic, []NodeID]
	nodeByKey       index[key.NodePublic, NodeID]
	nodeByAddr      index[netip.Addr, NodeID]
	nodeByName      index[string, NodeID]
	preAuthByPrefix index[string, KeyID]
	apiByPrefix     index[string, KeyID]
	loginByNodeKey  index[key.NodePublic, LoginID]
	settingByKey    index[string, SettingID]
	owned           index[UserID, int] // nodes a user owns
	online          int
	line            *edit // shared by all snapshots that follow one Load
}

// Counters live in the head of the log, so that an id or address that was
// given back is not handed out again soon, even after a restart.
type Counters struct {
	User    UserID     `json:"user"` // the last one used
	Node    NodeID     `json:"node"`
	PreAuth KeyID      `json:"preAuth"`
	API     KeyID      `json:"api"`
	Login   LoginID    `json:"login,omitempty"`
	Setting SettingID  `json:"setting,omitempty"`
	V4      netip.Addr `json:"v4"` // the address given last
	V6      netip.Addr `json:"v6"`
}

// After returns the counters once e is committed.
func (c Counters) After(e Event) Counters {
	switch e := e.(type) {
	case UserPut:
		c.User = max(c.User, e.User.ID)
	case NodePut:
		c.Node = max(c.Node, e.Node.ID)
	case PreAuthKeyPut:
		c.PreAuth = max(c.PreAuth, e.Key.ID)
	case APIKeyPut:
		c.API = max(c.API, e.Key.ID)
	case LoginPut:
		c.Login = max(c.Login, e.Login.ID)
	case SettingPut:
		c.Setting = max(c.Setting, e.Setting.ID)
	case AddressCursor:
		c.V4, c.V6 = e.V4, e.V6
	}
	return c
}

// Empty is the snapshot before the first revision.
func Empty() *Snapshot {
	return &Snapshot{
		line:            new(edit),
		userByName:      newIndex[string, UserID](),
		nodesByMachine:  newIndex[key.MachinePublic, []NodeID](),
		nodeByKey:       newIndex[key.NodePublic, NodeID](),
		nodeByAddr:      newIndex[netip.Addr, NodeID](),
		nodeByName:      newIndex[string, NodeID](),
		preAuthByPrefix: newIndex[string, KeyID](),
		apiByPrefix:     newIndex[string, KeyID](),
		loginByNodeKey:  newIndex[key.NodePublic, LoginID](),
		settingByKey:    newIndex[string, SettingID](),
		owned:           newIndex[UserID, int](),
	}
}

// SameIdentities reports whether users, owners, tags and addresses are the same
// in both: they follow one Load, and none has changed in between.
func (s *Snapshot) SameIdentities(t *Snapshot) bool {
	return s.line == t.line && s.IdentityRev == t.IdentityRev
}

// SameSettings reports whether the settings are the same in both: they follow
// one Load, and none has changed in between.
func (s *Snapshot) SameSettings(t *Snapshot) bool {
	return s.line == t.line && s.SettingsRev == t.SettingsRev
}

// found turns a pointer into the usual pair.
func found[V any](v *V) (*V, bool) { return v, v != nil }

// User returns the user with this id.
func (s *Snapshot) User(id UserID) (*User, bool) { return found(s.users.at(int64(id))) }

// UserByName finds a user without regard to case.
func (s *Snapshot) UserByName(name string) (*User, bool) {
	id, ok := s.userByName.at(FoldName(name))
	if !ok {
		return nil, false
	}
	return s.User(id)
}

// FoldName is the form in which user names are compared.
func FoldName(name string) string { return strings.ToLower(name) }

// Users yields all users in the order of their ids.
func (s *Snapshot) Users() iter.Seq[*User] { return s.users.all() }

// UserCount is the number of users.
func (s *Snapshot) UserCount() int { return s.users.count }

// NodesOwned is the number of untagged nodes of a user.
func (s *Snapshot) NodesOwned(id UserID) int {
	n, _ := s.owned.at(id)
	return n
}

// Node returns the node with this id.
func (s *Snapshot) Node(id NodeID) (*Node, bool) { return found(s.nodes.at(int64(id))) }

// Nodes yields all nodes in the order of their ids.
func (s *Snapshot) Nodes() iter.Seq[*Node] { return s.nodes.all() }

// NodeCount is the number of nodes.
func (s *Snapshot) NodeCount() int { return s.nodes.count }

// OnlineCount is the number of nodes with a live stream on any replica.
func (s *Snapshot) OnlineCount() int { return s.online }

// NodesByMachine returns the nodes of one machine: one for each user who
// signed in there.
func (s *Snapshot) NodesByMachine(k key.MachinePublic) []*Node {
	ids, _ := s.nodesByMachine.at(k)
	ns := make([]*Node, 0, len(ids))
	for _, id := range ids {
		ns = append(ns, s.nodes.at(int64(id)))
	}
	return ns
}

// NodeByKey finds the node that holds a node key.
func (s *Snapshot) NodeByKey(k key.NodePublic) (*Node, bool) { return s.nodeAt(s.nodeByKey.at(k)) }

// NodeByAddr finds the node that holds an address.
func (s *Snapshot) NodeByAddr(a netip.Addr) (*Node, bool) { return s.nodeAt(s.nodeByAddr.at(a)) }

// NodeByName finds the node with this label.
func (s *Snapshot) NodeByName(name string) (*Node, bool) { return s.nodeAt(s.nodeByName.at(name)) }

func (s *Snapshot) nodeAt(id NodeID, ok bool) (*Node, bool) {
	if !ok {
		return nil, false
	}
	return s.Node(id)
}

// PreAuthKey returns the pre-auth key with this id.
func (s *Snapshot) PreAuthKey(id KeyID) (*PreAuthKey, bool) { return found(s.preAuth.at(int64(id))) }

// PreAuthKeyByPrefix finds a pre-auth key by its public part.
func (s *Snapshot) PreAuthKeyByPrefix(prefix string) (*PreAuthKey, bool) {
	id, ok := s.preAuthByPrefix.at(prefix)
	if !ok {
		return nil, false
	}
	return s.PreAuthKey(id)
}

// PreAuthKeys yields all pre-auth keys in the order of their ids.
func (s *Snapshot) PreAuthKeys() iter.Seq[*PreAuthKey] { return s.preAuth.all() }

// APIKey returns the API key with this id.
func (s *Snapshot) APIKey(id KeyID) (*APIKey, bool) { return found(s.api.at(int64(id))) }

// APIKeyByPrefix finds an API key by its public part.
func (s *Snapshot) APIKeyByPrefix(prefix string) (*APIKey, bool) {
	id, ok := s.apiByPrefix.at(prefix)
	if !ok {
		return nil, false
	}
	return s.APIKey(id)
}

// APIKeys yields all API keys in the order of their ids.
func (s *Snapshot) APIKeys() iter.Seq[*APIKey] { return s.api.all() }

// Login returns the answer to the device that asked with this node key.
func (s *Snapshot) Login(k key.NodePublic) (*Login, bool) {
	id, ok := s.loginByNodeKey.at(k)
	if !ok {
		return nil, false
	}
	return found(s.logins.at(int64(id)))
}

// Logins yields all answers that wait for their device.
func (s *Snapshot) Logins() iter.Seq[*Login] { return s.logins.all() }

// Setting returns the setting with this key.
func (s *Snapshot) Setting(key string) (*Setting, bool) {
	id, ok := s.settingByKey.at(key)
	if !ok {
		return nil, false
	}
	return found(s.settings.at(int64(id)))
}

// Settings yields all settings in the order of their ids.
func (s *Snapshot) Settings() iter.Seq[*Setting] { return s.settings.all() }

// BlockSize is the number of neighbouring ids that NodeBlocks yields at once.
const BlockSize = 64

// NodeBlocks yields all nodes in the order of their ids, in blocks that start
// at multiples of BlockSize; ids without a node are nil. Two blocks with the
// same first element hold the same nodes, in any snapshot.
func (s *Snapshot) NodeBlocks() iter.Seq2[NodeID, []*Node] {
	return func(yield func(NodeID, []*Node) bool) {
		for first, p := range s.nodes.numbered() {
			for at := 0; at < pageSize; at += BlockSize {
				if !yield(NodeID(first+int64(at)), p.vals[at:at+BlockSize:at+BlockSize]) {
					return
				}
			}
		}
	}
}

// ChangedNodes returns the nodes that differ between s and an older snapshot,
// in the order of their ids. What both share is not looked at.
func (s *Snapshot) ChangedNodes(old *Snapshot) []NodeID { return changed[NodeID](&s.nodes, &old.nodes) }

// ChangedUsers returns the users that differ between s and an older snapshot.
func (s *Snapshot) ChangedUsers(old *Snapshot) []UserID { return changed[UserID](&s.users, &old.users) }

// Draft is a snapshot under construction. One goroutine edits it, may read it
// between edits, and freezes it once.
type Draft struct {
	s *Snapshot
	e *edit
}

// Edit starts a draft that shares everything with s until it is changed.
func (s *Snapshot) Edit() *Draft {
	next := *s
	return &Draft{s: &next, e: new(edit)}
}

// Snapshot is the state so far. It changes with the next Apply.
func (d *Draft) Snapshot() *Snapshot { return d.s }

// Freeze ends the draft and returns its snapshot.
func (d *Draft) Freeze() *Snapshot {
	s := d.s
	d.s, d.e = nil, nil
	return s
}

// LoadNode puts a node that was stored into an empty draft, which keeps it. All
// but nodes is loaded as events; Restore comes last.
func (d *Draft) LoadNode(n *Node) { d.s.nodes.put(d.e, int64(n.ID), n) }

// LoadNet completes a node that LoadNode put.
func (d *Draft) LoadNet(id NodeID, net Net, p Presence) {
	if n, ok := d.s.Node(id); ok {
		n.Net, n.Presence = net, p
	}
}

// Restore ends loading: it indexes the nodes and sets what was stored with the
// head of the log.
func (d *Draft) Restore(rev Revision, at Time, batch BatchID, c Counters) {
	room := d.s.nodes.count / shards
	d.s.nodesByMachine.room, d.s.nodeByKey.room, d.s.nodeByName.room, d.s.nodeByAddr.room = room, room, room, 2*room
	for n := range d.s.Nodes() {
		d.indexNode(n)
	}
	d.s.Rev, d.s.IdentityRev, d.s.SettingsRev, d.s.Counters = rev, rev, rev, c
	d.Stamp(at, batch)
}

// Apply returns the snapshot after evs and the nodes they touched.
func Apply(s *Snapshot, rev Revision, evs ...Event) (*Snapshot, []NodeID) {
	d := s.Edit()
	touched := d.Apply(rev, evs...)
	return d.Freeze(), touched
}

// Stamp notes when, and with which transaction, the newest entry was written.
func (d *Draft) Stamp(at Time, batch BatchID) { d.s.At, d.s.Batch = at, batch }

// Apply moves the draft to rev and returns the nodes that evs touched. It
// derives nothing: consequences were added to evs by Settle.
func (d *Draft) Apply(rev Revision, evs ...Event) []NodeID {
	var touched []NodeID
	d.s.Rev = rev
	for _, e := range evs {
		d.s.Counters = d.s.Counters.After(e)
		if id, ok := d.apply(rev, e); ok {
			touched = append(touched, id)
		}
	}
	return touched
}

func (d *Draft) apply(rev Revision, e Event) (touched NodeID, ok bool) {
	switch e := e.(type) {
	case UserPut:
		d.putUser(rev, e.User.ID, e.User)
	case UserGone:
		d.putUser(rev, e.ID, nil)
	case NodePut:
		d.putNode(rev, e.Node)
		return e.Node.ID, true
	case NodeGone:
		d.dropNode(rev, e.ID)
		return e.ID, true
	case NodeNet:
		d.changeNode(e.ID, func(n *Node) { n.Net = e.Net })
		return e.ID, true
	case Online:
		d.setPresence(e.ID, Presence{Online: true, Replica: e.Replica, Conn: e.Conn, LastSeen: e.At})
		return e.ID, true
	case Offline:
		d.setPresence(e.ID, Presence{LastSeen: e.At})
		return e.ID, true
	case PreAuthKeyPut:
		keep(d.e, &d.s.preAuth, &d.s.preAuthByPrefix, e.Key.ID, e.Key, preAuthPrefix)
	case PreAuthKeyGone:
		keep(d.e, &d.s.preAuth, &d.s.preAuthByPrefix, e.ID, nil, preAuthPrefix)
	case APIKeyPut:
		keep(d.e, &d.s.api, &d.s.apiByPrefix, e.Key.ID, e.Key, apiPrefix)
	case APIKeyGone:
		keep(d.e, &d.s.api, &d.s.apiByPrefix, e.ID, nil, apiPrefix)
	case LoginPut:
		keep(d.e, &d.s.logins, &d.s.loginByNodeKey, e.Login.ID, e.Login, loginNodeKey)
	case LoginGone:
		keep(d.e, &d.s.logins, &d.s.loginByNodeKey, e.ID, nil, loginNodeKey)
	case SettingPut:
		keep(d.e, &d.s.settings, &d.s.settingByKey, e.Setting.ID, e.Setting, settingKey)
		d.s.SettingsRev = rev
	case SettingGone:
		keep(d.e, &d.s.settings, &d.s.settingByKey, e.ID, nil, settingKey)
		d.s.SettingsRev = rev
	case AddressCursor: // a counter, moved above
	}
	return 0, false
}

func (d *Draft) putUser(rev Revision, id UserID, u *User) {
	if old, ok := d.s.User(id); ok {
		d.s.userByName.drop(d.e, FoldName(old.Name))
	}
	if u != nil {
		d.s.userByName.put(d.e, FoldName(u.Name), id)
	}
	d.s.users.put(d.e, int64(id), u)
	d.s.IdentityRev = rev
}

func (d *Draft) putNode(rev Revision, put *Node) {
	n := *put
	n.Net, n.Presence = Net{}, Presence{}
	old, ok := d.s.Node(n.ID)
	if ok {
		n.Net, n.Presence = old.Net, old.Presence
		d.unindexNode(old)
	}
	if !ok || !sameIdentity(old, &n) {
		d.s.IdentityRev = rev
	}
	d.s.nodes.put(d.e, int64(n.ID), &n)
	d.indexNode(&n)
}

func (d *Draft) indexNode(n *Node) {
	ids, _ := d.s.nodesByMachine.at(n.MachineKey)
	d.s.nodesByMachine.put(d.e, n.MachineKey, append(slices.Clone(ids), n.ID))
	d.s.nodeByKey.put(d.e, n.NodeKey, n.ID)
	d.s.nodeByName.put(d.e, n.Name, n.ID)
	for _, a := range n.Addrs() {
		d.s.nodeByAddr.put(d.e, a, n.ID)
	}
	if n.Owner != 0 {
		d.s.owned.put(d.e, n.Owner, d.s.NodesOwned(n.Owner)+1)
	}
	if n.Presence.Online {
		d.s.online++
	}
}

func (d *Draft) dropNode(rev Revision, id NodeID) {
	old, ok := d.s.Node(id)
	if !ok {
		return
	}
	d.unindexNode(old)
	d.s.nodes.put(d.e, int64(id), nil)
	d.s.IdentityRev = rev
}

func (d *Draft) unindexNode(n *Node) {
	ids, _ := d.s.nodesByMachine.at(n.MachineKey)
	ids = slices.DeleteFunc(slices.Clone(ids), func(id NodeID) bool { return id == n.ID })
	if len(ids) == 0 {
		d.s.nodesByMachine.drop(d.e, n.MachineKey)
	} else {
		d.s.nodesByMachine.put(d.e, n.MachineKey, ids)
	}
	d.s.nodeByKey.drop(d.e, n.NodeKey)
	d.s.nodeByName.drop(d.e, n.Name)
	for _, a := range n.Addrs() {
		d.s.nodeByAddr.drop(d.e, a)
	}
	if n.Owner != 0 {
		if rest := d.s.NodesOwned(n.Owner) - 1; rest > 0 {
			d.s.owned.put(d.e, n.Owner, rest)
		} else {
			d.s.owned.drop(d.e, n.Owner)
		}
	}
	if n.Presence.Online {
		d.s.online--
	}
}

func (d *Draft) setPresence(id NodeID, p Presence) {
	d.changeNode(id, func(n *Node) {
		if n.Presence.Online {
			d.s.online--
		}
		if p.Online {
			d.s.online++
		}
		n.Presence = p
	})
}

// changeNode replaces a node by a changed copy. A node that is gone meanwhile
// stays gone.
func (d *Draft) changeNode(id NodeID, change func(*Node)) {
	old, ok := d.s.Node(id)
	if !ok {
		return
	}
	n := *old
	change(&n)
	d.s.nodes.put(d.e, int64(id), &n)
}

func preAuthPrefix(k *PreAuthKey) string   { return k.Prefix }
func apiPrefix(k *APIKey) string           { return k.Prefix }
func loginNodeKey(l *Login) key.NodePublic { return l.NodeKey }
func settingKey(s *Setting) string         { return s.Key }

// keep puts v, or removes id when v is nil, in a table and in its one index.
func keep[V any, K comparable, ID ~int64](e *edit, t *table[V], x *index[K, ID], id ID, v *V, by func(*V) K) {
	if old := t.at(int64(id)); old != nil {
		x.drop(e, by(old))
	}
	if v != nil {
		x.put(e, by(v), id)
	}
	t.put(e, int64(id), v)
}

func sameIdentity(a, b *Node) bool {
	return a.Owner == b.Owner && a.IPv4 == b.IPv4 && a.IPv6 == b.IPv6 && slices.Equal(a.Tags, b.Tags)
}
