package mesh

import (
	"crypto/sha256"
	"slices"

	"tailscale.com/types/key"
)

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
// head of the log. Counters are at least what the tables hold: a binary that does
// not know a counter may have written the head.
func (d *Draft) Restore(rev Revision, at Time, batch BatchID, c Counters) {
	room := d.s.nodes.count / shards
	d.s.nodesByMachine.room, d.s.nodeByKey.room, d.s.nodeByName.room, d.s.nodeByAddr.room = room, room, room, 2*room
	for n := range d.s.Nodes() {
		d.indexNode(n)
	}
	d.s.Rev, d.s.IdentityRev, d.s.SettingsRev, d.s.PolicyRev, d.s.Counters = rev, rev, rev, rev, c.AtLeast(d.s.Counters)
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
		d.putPreAuthKey(e.Key)
	case PreAuthKeyGone:
		keep(d.e, &d.s.preAuth, &d.s.preAuthByPrefix, e.ID, nil, preAuthPrefix)
	case APIKeyPut:
		d.putAPIKey(e.Key)
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
	case PolicyPut:
		d.putPolicy(rev, e.Policy)
	case SSHGrantPut:
		keep(d.e, &d.s.sshGrants, &d.s.sshGrantByAsk, e.Grant.ID, e.Grant, sshGrantAsk)
	case SSHGrantGone:
		keep(d.e, &d.s.sshGrants, &d.s.sshGrantByAsk, e.ID, nil, sshGrantAsk)
	case WebhookPut:
		d.putWebhook(e.Webhook)
	case WebhookGone:
		d.s.webhooks.put(d.e, int64(e.ID), nil)
	case WebhookMoved:
		d.moveWebhook(e.ID, e.Progress)
	case DeadLetterPut, DeadLetterGone: // in the history
	case NodeFacts:
		if _, ok := d.s.Node(e.Facts.Node); ok {
			d.s.facts.put(d.e, int64(e.Facts.Node), e.Facts)
		}
	case PreAuthKeyUsed:
		change(d.e, &d.s.preAuth, e.ID, func(k *PreAuthKey) { k.LastUse = e.Use })
	case APIKeyUsed:
		change(d.e, &d.s.api, e.ID, func(k *APIKey) { k.LastUse = e.Use })
	case Remembered:
		d.putReceipt(e.Receipt.ID, e.Receipt)
	case Forgotten:
		d.putReceipt(e.ID, nil)
	case AddressCursor: // a counter, moved above
	case ClockSet: // the entry has the time
	}
	return 0, false
}

func (d *Draft) putUser(rev Revision, id UserID, u *User) {
	if old, ok := d.s.User(id); ok {
		d.s.userByName.drop(d.e, FoldName(old.Name))
		dropID(d.e, &d.s.usersByEmail, FoldName(old.Email), id)
	}
	if u != nil {
		d.s.userByName.put(d.e, FoldName(u.Name), id)
		if u.Email != "" {
			addID(d.e, &d.s.usersByEmail, FoldName(u.Email), id)
		}
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
	addID(d.e, &d.s.nodesByMachine, n.MachineKey, n.ID)
	d.s.nodeByKey.put(d.e, n.NodeKey, n.ID)
	d.s.nodeByName.put(d.e, n.Name, n.ID)
	for _, a := range n.Addrs() {
		d.s.nodeByAddr.put(d.e, a, n.ID)
	}
	for _, p := range n.Routes {
		addID(d.e, &d.s.routers, p, n.ID)
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
	d.s.facts.put(d.e, int64(id), nil)
	d.s.IdentityRev = rev
}

func (d *Draft) unindexNode(n *Node) {
	dropID(d.e, &d.s.nodesByMachine, n.MachineKey, n.ID)
	for _, p := range n.Routes {
		dropID(d.e, &d.s.routers, p, n.ID)
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

// addID puts an id into the list of a key.
func addID[K, ID comparable](e *edit, x *index[K, []ID], k K, id ID) {
	ids, _ := x.at(k)
	x.put(e, k, append(slices.Clone(ids), id))
}

// dropID takes an id out of the list of a key.
func dropID[K, ID comparable](e *edit, x *index[K, []ID], k K, id ID) {
	ids, _ := x.at(k)
	if ids = slices.DeleteFunc(slices.Clone(ids), func(i ID) bool { return i == id }); len(ids) == 0 {
		x.drop(e, k)
	} else {
		x.put(e, k, ids)
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
func (d *Draft) changeNode(id NodeID, edit func(*Node)) { change(d.e, &d.s.nodes, id, edit) }

// change replaces a value by a changed copy, if there is one.
func change[V any, ID ~int64](e *edit, t *table[V], id ID, edit func(*V)) {
	if old := t.at(int64(id)); old != nil {
		v := *old
		edit(&v)
		t.put(e, int64(id), &v)
	}
}

func (d *Draft) putPreAuthKey(put *PreAuthKey) {
	k := *put
	k.LastUse = KeyUse{}
	if old, ok := d.s.PreAuthKey(k.ID); ok {
		k.LastUse = old.LastUse
	}
	keep(d.e, &d.s.preAuth, &d.s.preAuthByPrefix, k.ID, &k, preAuthPrefix)
}

func (d *Draft) putAPIKey(put *APIKey) {
	k := *put
	k.LastUse = KeyUse{}
	if old, ok := d.s.APIKey(k.ID); ok {
		k.LastUse = old.LastUse
	}
	keep(d.e, &d.s.api, &d.s.apiByPrefix, k.ID, &k, apiPrefix)
}

// putPolicy keeps the newest version: news of an older one changes only what
// the store keeps of it.
func (d *Draft) putPolicy(rev Revision, p *Policy) {
	old, ok := d.s.Policy()
	if ok && p.Version < old.Version {
		return
	}
	if !ok || p.Version != old.Version || p.Text != old.Text {
		d.s.PolicyRev = rev
	}
	d.s.policy, d.s.policySum = p, sha256.Sum256(fields(nil).all(p))
}

func preAuthPrefix(k *PreAuthKey) string   { return k.Prefix }
func apiPrefix(k *APIKey) string           { return k.Prefix }
func loginNodeKey(l *Login) key.NodePublic { return l.NodeKey }
func settingKey(s *Setting) string         { return s.Key }
func sshGrantAsk(g *SSHGrant) sshAsk       { return sshAsk{g.Src, g.Dst, g.User} }

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
	return a.Owner == b.Owner && a.IPv4 == b.IPv4 && a.IPv6 == b.IPv6 && slices.Equal(a.Tags, b.Tags) &&
		slices.Equal(a.RoutableIPs, b.RoutableIPs) && slices.Equal(a.Routes, b.Routes)
}
