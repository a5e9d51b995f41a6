package meshtest

import (
	"net/netip"
	"slices"
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

// View is what a node has been sent, interpreted as clients do.
type View struct {
	Self  Peer
	Peers map[tailcfg.NodeID]Peer
	At    time.Time // when the last message other than a keep-alive arrived
	Maps  int       // whole maps so far: one per stream, unless names changed
	SSH   *tailcfg.SSHPolicy

	away     map[tailcfg.NodeID]time.Time // peers shown offline, and since when
	absences []Absence
}

// Peer is what a node is sent about one peer.
type Peer struct {
	ID        tailcfg.NodeID
	Name      string // with its domain
	Key       key.NodePublic
	Addresses []netip.Prefix
	Endpoints []netip.AddrPort
	HomeDERP  int
	Online    bool
	Expired   bool
}

// Absence is a period in which a peer that was online was shown offline.
type Absence struct {
	Peer  tailcfg.NodeID
	Since time.Time
	For   time.Duration
}

// ViewOf returns the view of a node that has been sent only this message.
func ViewOf(m *tailcfg.MapResponse) (v View) {
	v.take(m, time.Now())
	return v
}

// take applies a message. As in a client, an empty list of peers has no effect, and a patch for an unknown
// peer is lost.
func (v *View) take(m *tailcfg.MapResponse, at time.Time) {
	v.At = at
	if m.Node != nil {
		v.Self = peerOf(m.Node)
	}
	if m.SSHPolicy != nil {
		v.SSH = m.SSHPolicy
	}
	if len(m.Peers) > 0 {
		before := v.Peers
		v.Peers = make(map[tailcfg.NodeID]Peer, len(m.Peers))
		for _, n := range m.Peers {
			v.put(before[n.ID], peerOf(n))
		}
		for id := range before {
			if _, still := v.Peers[id]; !still {
				delete(v.away, id)
			}
		}
		v.Maps++
		return
	}
	for _, id := range m.PeersRemoved {
		delete(v.Peers, id)
		delete(v.away, id)
	}
	for _, n := range m.PeersChanged {
		v.put(v.Peers[n.ID], peerOf(n))
	}
	for id, online := range m.OnlineChange {
		if p, known := v.Peers[id]; known {
			changed := p
			changed.Online = online
			v.put(p, changed)
		}
	}
	for _, d := range m.PeersChangedPatch {
		if p, known := v.Peers[d.NodeID]; known {
			v.put(p, patched(p, d))
		}
	}
}

// put stores a peer, and records when it went offline and came back.
func (v *View) put(before, p Peer) {
	if v.Peers == nil {
		v.Peers = map[tailcfg.NodeID]Peer{}
	}
	if v.away == nil {
		v.away = map[tailcfg.NodeID]time.Time{}
	}
	since, away := v.away[p.ID]
	switch {
	case before.Online && !p.Online:
		v.away[p.ID] = v.At
	case away && p.Online:
		v.absences = append(v.absences, Absence{p.ID, since, v.At.Sub(since)})
		delete(v.away, p.ID)
	}
	v.Peers[p.ID] = p
}

// Absences returns all absences so far; those that continue end now.
func (v *View) Absences() []Absence {
	all := slices.Clone(v.absences)
	for id, since := range v.away {
		all = append(all, Absence{id, since, time.Since(since)})
	}
	return all
}

func peerOf(n *tailcfg.Node) Peer {
	return Peer{
		ID: n.ID, Name: n.Name, Key: n.Key, Addresses: n.Addresses, Endpoints: n.Endpoints, HomeDERP: n.HomeDERP,
		Online: n.Online != nil && *n.Online, Expired: n.Expired,
	}
}

func patched(p Peer, d *tailcfg.PeerChange) Peer {
	if d.DERPRegion != 0 {
		p.HomeDERP = d.DERPRegion
	}
	if d.Endpoints != nil {
		p.Endpoints = d.Endpoints
	}
	if d.Key != nil {
		p.Key = *d.Key
	}
	if d.Online != nil {
		p.Online = *d.Online
	}
	return p
}
