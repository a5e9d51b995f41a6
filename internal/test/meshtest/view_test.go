package meshtest

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/tailcfg"
)

func TestViewFollowsTheRulesOfClients(t *testing.T) {
	yes, no := true, false
	ip := netip.MustParseAddrPort("192.0.2.1:1")
	node := func(id tailcfg.NodeID, online *bool) *tailcfg.Node { return &tailcfg.Node{ID: id, Online: online} }
	v := &View{}
	begin := time.Unix(1000, 0)
	for i, c := range []struct {
		message tailcfg.MapResponse
		want    map[tailcfg.NodeID]bool // the peers, and whether each is online
	}{
		{tailcfg.MapResponse{Node: node(9, &yes), Peers: []*tailcfg.Node{node(1, &yes), node(2, &no)}}, map[tailcfg.NodeID]bool{1: true, 2: false}},
		{tailcfg.MapResponse{Peers: []*tailcfg.Node{}}, map[tailcfg.NodeID]bool{1: true, 2: false}},
		{tailcfg.MapResponse{OnlineChange: map[tailcfg.NodeID]bool{1: false, 2: true, 7: true}}, map[tailcfg.NodeID]bool{1: false, 2: true}},
		{
			tailcfg.MapResponse{PeersRemoved: []tailcfg.NodeID{1, 2}, PeersChanged: []*tailcfg.Node{node(1, &no), node(3, nil)}},
			map[tailcfg.NodeID]bool{1: false, 3: false},
		},
		{
			tailcfg.MapResponse{PeersChangedPatch: []*tailcfg.PeerChange{{NodeID: 3, Online: &yes, Endpoints: []netip.AddrPort{ip}}, {NodeID: 8, Online: &yes}}},
			map[tailcfg.NodeID]bool{1: false, 3: true},
		},
		{tailcfg.MapResponse{PeersChangedPatch: []*tailcfg.PeerChange{{NodeID: 3, Online: &no}}}, map[tailcfg.NodeID]bool{1: false, 3: false}},
		{tailcfg.MapResponse{Peers: []*tailcfg.Node{node(3, &yes)}, PeersRemoved: []tailcfg.NodeID{3}}, map[tailcfg.NodeID]bool{3: true}},
	} {
		v.take(&c.message, begin.Add(time.Duration(i)*time.Second))
		got := map[tailcfg.NodeID]bool{}
		for id, p := range v.Peers {
			got[id] = p.Online
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("after message %d: %s", i, diff)
		}
	}
	if diff := cmp.Diff([]Absence{{Peer: 3, Since: begin.Add(5 * time.Second), For: time.Second}}, v.Absences()); diff != "" {
		t.Error(diff)
	}
	if v.Self.ID != 9 || v.Maps != 2 {
		t.Errorf("the node is %d, %d maps came", v.Self.ID, v.Maps)
	}
}
