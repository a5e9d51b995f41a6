package relay_test

import (
	"encoding/json"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/tailcfg"

	"github.com/fairlead-mesh/fairlead/internal/relay"
)

// relayMap returns a map with these region IDs that passes Check.
func relayMap(ids ...int) *tailcfg.DERPMap {
	m := &tailcfg.DERPMap{Regions: map[int]*tailcfg.DERPRegion{}}
	for _, id := range ids {
		m.Regions[id] = relay.Region(relay.RegionConfig{ID: id, Code: "test", Name: "Test", HostName: "relay.example"})
	}
	return m
}

func TestRegionTellsClientsHowToConnect(t *testing.T) {
	got := relay.Region(relay.RegionConfig{
		ID: 999, Code: "hq", Name: "Headquarters", HostName: "mesh.example", DERPPort: 8443, STUNPort: 3479,
		IPv4: netip.MustParseAddr("203.0.113.5"), IPv6: netip.MustParseAddr("2001:db8::5"), Insecure: true,
	})
	want := &tailcfg.DERPRegion{
		RegionID: 999, RegionCode: "hq", RegionName: "Headquarters",
		Nodes: []*tailcfg.DERPNode{{
			Name: "999a", RegionID: 999, HostName: "mesh.example", DERPPort: 8443, STUNPort: 3479,
			IPv4: "203.0.113.5", IPv6: "2001:db8::5", InsecureForTests: true,
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	small := relay.Region(relay.RegionConfig{ID: 1, HostName: "mesh.example"})
	if n := small.Nodes[0]; n.IPv4 != "" || n.IPv6 != "" {
		t.Errorf("clients cannot ask DNS: %+v", n)
	}
	if err := relay.Check(&tailcfg.DERPMap{Regions: map[int]*tailcfg.DERPRegion{999: got, 1: small}}); err != nil {
		t.Error(err)
	}
}

func TestRegionOfAnAddressHasNoOther(t *testing.T) {
	v4, v6 := netip.MustParseAddr("203.0.113.5"), netip.MustParseAddr("2001:db8::5")
	for _, c := range []struct {
		config     relay.RegionConfig
		ipv4, ipv6 string
	}{
		{relay.RegionConfig{ID: 1, HostName: v4.String()}, v4.String(), "none"},
		{relay.RegionConfig{ID: 1, HostName: v6.String()}, "none", v6.String()},
		{relay.RegionConfig{ID: 1, HostName: v4.String(), IPv6: v6}, v4.String(), v6.String()},
		{relay.RegionConfig{ID: 1, HostName: "192.0.2.1", IPv4: v4}, v4.String(), "none"},
	} {
		region := relay.Region(c.config)
		if n := region.Nodes[0]; n.IPv4 != c.ipv4 || n.IPv6 != c.ipv6 {
			t.Errorf("%+v: the addresses are %q and %q, want %q and %q", c.config, n.IPv4, n.IPv6, c.ipv4, c.ipv6)
		}
		if err := relay.Check(&tailcfg.DERPMap{Regions: map[int]*tailcfg.DERPRegion{1: region}}); err != nil {
			t.Error(err)
		}
	}
}

func TestCheckFindsWhatClientsCannotUse(t *testing.T) {
	node := func(m *tailcfg.DERPMap) *tailcfg.DERPNode { return m.Regions[900].Nodes[0] }
	for want, spoil := range map[string]func(*tailcfg.DERPMap){
		"the map has no regions":                                                     func(m *tailcfg.DERPMap) { clear(m.Regions) },
		"region 901: the region is null: remove it":                                  func(m *tailcfg.DERPMap) { m.Regions[901] = nil },
		"region 900: RegionID is 901, but must be the same as the key of the region": func(m *tailcfg.DERPMap) { m.Regions[900].RegionID = 901 },
		"region 0: the region ID must be from 1 to 65535":                            func(m *tailcfg.DERPMap) { m.Regions[0] = relayMap(0).Regions[0] },
		"region 65536: the region ID must be from 1 to 65535":                        func(m *tailcfg.DERPMap) { m.Regions[65536] = relayMap(65536).Regions[65536] },
		"region 900: invalid coordinates NaN, 0":                                     func(m *tailcfg.DERPMap) { m.Regions[900].Latitude = math.NaN() },
		"region 900: the region has no nodes":                                        func(m *tailcfg.DERPMap) { m.Regions[900].Nodes = nil },
		"region 900: node 0 is null: remove it":                                      func(m *tailcfg.DERPMap) { m.Regions[900].Nodes[0] = nil },
		`region 902: node "900a": another node has this name`: func(m *tailcfg.DERPMap) {
			m.Regions[902] = relayMap(902).Regions[902]
			m.Regions[902].Nodes[0].Name = "900a"
		},
		`region 900: node "": the node has no name`:                                     func(m *tailcfg.DERPMap) { node(m).Name = "" },
		`region 900: node "900a": RegionID is 9, but must be that of its region`:        func(m *tailcfg.DERPMap) { node(m).RegionID = 9 },
		`region 900: node "900a": invalid host name ""`:                                 func(m *tailcfg.DERPMap) { node(m).HostName = "" },
		`region 900: node "900a": invalid host name "a b"`:                              func(m *tailcfg.DERPMap) { node(m).HostName = "a b" },
		`region 900: node "900a": invalid host name "https://a"`:                        func(m *tailcfg.DERPMap) { node(m).HostName = "https://a" },
		`region 900: node "900a": invalid DERP port -1`:                                 func(m *tailcfg.DERPMap) { node(m).DERPPort = -1 },
		`region 900: node "900a": invalid DERP port 65536`:                              func(m *tailcfg.DERPMap) { node(m).DERPPort = 65536 },
		`region 900: node "900a": invalid STUN port -2; -1 means no STUN`:               func(m *tailcfg.DERPMap) { node(m).STUNPort = -2 },
		`region 900: node "900a": invalid STUN port 65536; -1 means no STUN`:            func(m *tailcfg.DERPMap) { node(m).STUNPort = 65536 },
		`region 900: node "900a": invalid IPv4 address "::1"; "none" means no IPv4`:     func(m *tailcfg.DERPMap) { node(m).IPv4 = "::1" },
		`region 900: node "900a": invalid IPv6 address "1.2.3.4"; "none" means no IPv6`: func(m *tailcfg.DERPMap) { node(m).IPv6 = "1.2.3.4" },
		`region 900: node "900a": invalid IPv6 address "fe80::1%eth0"; "none" means no IPv6`: func(m *tailcfg.DERPMap) {
			node(m).IPv6 = "fe80::1%eth0"
		},
		"region 900: the score 0 must be above 0": func(m *tailcfg.DERPMap) {
			m.HomeParams = &tailcfg.DERPHomeParams{RegionScore: map[int]float64{900: 0}}
		},
	} {
		m := relayMap(900)
		spoil(m)
		if err := relay.Check(m); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	m := relayMap(900)
	*node(m) = tailcfg.DERPNode{Name: "n", RegionID: 900, HostName: "2001:db8::1", IPv4: "none", IPv6: "2001:db8::1", STUNPort: -1, DERPPort: 65535}
	if err := relay.Check(m); err != nil {
		t.Error(err)
	}
	m = relayMap(1, 2)
	m.Regions[1].RegionID, m.Regions[2].Nodes[0].HostName = 7, ""
	if err := relay.Check(m); strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("not every problem on its line: %v", err)
	}
}

func TestEqualMapsHaveEqualBytes(t *testing.T) {
	ids := []int{900, 2, 10, 65535, 1, 30}
	want, err := relay.Encode(relayMap(ids...))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		slices.Reverse(ids)
		got, err := relay.Encode(relayMap(ids...))
		if err != nil || string(got) != string(want) {
			t.Fatalf("%s, %v, want %s", got, err, want)
		}
	}
	back := new(tailcfg.DERPMap)
	if err := json.Unmarshal(want, back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(relayMap(ids...), back); diff != "" {
		t.Error(diff)
	}
}
