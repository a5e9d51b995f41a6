//go:build !race

package chaos_test

import (
	"net/netip"
	"testing"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

func TestViewThatDiffersIsFound(t *testing.T) {
	node := key.NewNode().Public()
	view := func(change func(*meshtest.View, *meshtest.Peer)) meshtest.View {
		v := meshtest.View{Self: meshtest.Peer{ID: 1, Name: "a"}}
		p := meshtest.Peer{
			ID: 2, Name: "b", Key: node, Online: true, HomeDERP: 900, Addresses: []netip.Prefix{netip.MustParsePrefix("100.64.0.2/32")},
			Endpoints: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1")},
		}
		change(&v, &p)
		v.Peers = map[tailcfg.NodeID]meshtest.Peer{p.ID: p}
		return v
	}
	want := view(func(*meshtest.View, *meshtest.Peer) {})
	if err := sameView(want, view(func(v *meshtest.View, _ *meshtest.Peer) { v.Maps = 3 })); err != nil {
		t.Error(err)
	}
	if err := sameView(want, meshtest.View{Self: want.Self}); err == nil {
		t.Error("a missing peer was not found")
	}
	for name, change := range map[string]func(*meshtest.View, *meshtest.Peer){
		"own name":  func(v *meshtest.View, _ *meshtest.Peer) { v.Self.Name = "c" },
		"ID":        func(_ *meshtest.View, p *meshtest.Peer) { p.ID = 3 },
		"name":      func(_ *meshtest.View, p *meshtest.Peer) { p.Name = "c" },
		"key":       func(_ *meshtest.View, p *meshtest.Peer) { p.Key = key.NewNode().Public() },
		"presence":  func(_ *meshtest.View, p *meshtest.Peer) { p.Online = false },
		"expiry":    func(_ *meshtest.View, p *meshtest.Peer) { p.Expired = true },
		"relay":     func(_ *meshtest.View, p *meshtest.Peer) { p.HomeDERP = 901 },
		"address":   func(_ *meshtest.View, p *meshtest.Peer) { p.Addresses = nil },
		"endpoints": func(_ *meshtest.View, p *meshtest.Peer) { p.Endpoints = nil },
	} {
		if sameView(want, view(change)) == nil {
			t.Errorf("another %s was not found", name)
		}
	}
}
