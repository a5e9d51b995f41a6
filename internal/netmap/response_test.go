package netmap_test

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/tailcfg"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Every field is tested three times: nil is omitted, an empty list is sent as empty, and
// the clients' own type decodes a value under the same name.
func TestMembersAreAbsentEmptyOrFilled(t *testing.T) {
	yes, at := true, time.Unix(1_800_000_000, 0).UTC()
	key, disco := meshgen.NodeKey(1), meshgen.DiscoKey(1)
	node := &netmap.Node{ID: 7, StableID: "n7", Name: "a.example.com."}
	filled := map[string]netmap.Response{
		"KeepAlive":    {KeepAlive: true},
		"Node":         {Node: node},
		"DERPMap":      {DERPMap: json.RawMessage(`{"Regions":{"9":{"RegionID":9}}}`)},
		"Peers":        {Peers: []*netmap.Node{node}},
		"PeersChanged": {PeersChanged: []*netmap.Node{node}},
		"PeersRemoved": {PeersRemoved: []mesh.NodeID{7}},
		"PeersChangedPatch": {PeersChangedPatch: []*netmap.Patch{{
			NodeID: 7, DERPRegion: 9, Cap: 106, Endpoints: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1")},
			Key: &key, DiscoKey: &disco, Online: &yes, LastSeen: &at, KeyExpiry: &at,
			CapMap: map[string][]json.RawMessage{"mesh/a": {}},
		}}},
		"DNSConfig":       {DNSConfig: json.RawMessage(`{"Proxied":true}`)},
		"Domain":          {Domain: "example.com"},
		"CollectServices": {CollectServices: &yes},
		"PacketFilters":   {PacketFilters: map[string][]netmap.Rule{"base": {}}},
		"SSHPolicy":       {SSHPolicy: &netmap.SSHPolicy{Rules: []netmap.SSHRule{{Principals: []netmap.Principal{{UserLogin: "ann"}}, Action: netmap.Accepted()}}}},
		"UserProfiles":    {UserProfiles: []netmap.Profile{{ID: 1, LoginName: "ann"}}},
		"Debug":           {Debug: &netmap.Debug{DisableLogTail: true}},
		"PingRequest":     {PingRequest: &netmap.PingRequest{URL: "https://unused/machine/ping/x", URLIsNoise: true}},
		"ControlTime":     {ControlTime: &at},
		"ControlDialPlan": {ControlDialPlan: json.RawMessage(`{"Candidates":[{"IP":"192.0.2.1","DialTimeoutSec":4}]}`)},
		"Health":          {Health: []string{"suspended"}},
		"DisplayMessages": {DisplayMessages: map[string]*netmap.DisplayMessage{"a": {Title: "A", Text: "B", Severity: "high", ImpactsConnectivity: true}}},
	}
	if got := encoded(t, netmap.Response{}); got != "{}" {
		t.Errorf("nothing is sent as %s", got)
	}
	typ := reflect.TypeFor[netmap.Response]()
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		if !typ.Field(i).IsExported() {
			continue
		}
		r, ok := filled[name]
		if !ok {
			t.Errorf("%s is not tried", name)
			continue
		}
		var theirs tailcfg.MapResponse
		text := encoded(t, r)
		if err := json.Unmarshal([]byte(text), &theirs); err != nil {
			t.Errorf("%s: clients cannot read %s: %v", name, text, err)
			continue
		}
		if reflect.ValueOf(theirs).FieldByName(name).IsZero() {
			t.Errorf("%s: clients do not see %s", name, text)
		}
		if typ.Field(i).Type.Kind() == reflect.Slice && typ.Field(i).Type.Elem().Kind() != reflect.Uint8 {
			empty := reflect.New(typ).Elem()
			empty.Field(i).Set(reflect.MakeSlice(typ.Field(i).Type, 0, 0))
			if got := encoded(t, empty.Interface()); got != `{"`+name+`":[]}` {
				t.Errorf("empty %s is sent as %s", name, got)
			}
		}
	}
}

// The node that we send is equivalent to the clients' own type.
func TestClientsReadEveryMemberOfANode(t *testing.T) {
	s := mesh.Empty()
	n := meshgen.Node(7, 1)
	n.Tags, n.Expiry, n.CapVersion = []string{"tag:web"}, meshgen.Start+5, 142
	n.Host = `{"Hostname":"host 7","OS":"linux","Services":[{"Proto":"peerapi4","Port":1}],"sshHostKeys":["k"],"NewMember":1}`
	s, _ = mesh.Apply(s, 1, mesh.UserPut{User: meshgen.User(1)}, mesh.NodePut{Node: n}, mesh.NodeNet{ID: 7, Net: meshgen.Net(8)},
		mesh.Online{ID: 7, Replica: "a", Conn: 1, At: meshgen.Start + 9})
	n, _ = s.Nodes.Get(7)
	sc := scene(s, nil)
	var theirs tailcfg.Node
	text := encoded(t, netmap.RenderPeer(sc, n))
	if err := json.Unmarshal([]byte(text), &theirs); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, `"NewMember":1`) {
		t.Error("a member that we do not know is lost")
	}
	if theirs.Hostinfo.Hostname() != "host 7" || theirs.Hostinfo.Services().Len() != 1 || theirs.Hostinfo.SSH_HostKeys().Len() != 1 {
		t.Errorf("host description: %v", theirs.Hostinfo)
	}
	if !strings.Contains(text, `"DERP":"127.3.3.40:9"`) || theirs.HomeDERP != 9 {
		t.Errorf("relay %d in %s", theirs.HomeDERP, text)
	}
	if !*theirs.Online || !theirs.LastSeen.Equal((meshgen.Start + 9).Time()) || theirs.User != tailcfg.UserID(mesh.TaggedDevices) || theirs.Cap != 142 ||
		theirs.Name != "host-7.mesh.internal." || !theirs.MachineAuthorized || !theirs.KeyExpiry.Equal((meshgen.Start + 5).Time()) ||
		!slices.Equal(theirs.AllowedIPs, theirs.Addresses) || len(theirs.Endpoints) != 2 || theirs.DiscoKey != meshgen.DiscoKey(8) {
		t.Errorf("clients see %+v", theirs)
	}
	if !theirs.Machine.IsZero() {
		t.Error("peers learn the machine key")
	}
	var self tailcfg.Node
	if err := json.Unmarshal([]byte(encoded(t, netmap.RenderSelf(sc, n))), &self); err != nil {
		t.Fatal(err)
	}
	if self.Machine != n.MachineKey || self.Hostinfo.Hostname() != n.Hostname || len(self.CapMap) == 0 || len(self.Endpoints) != 0 {
		t.Errorf("a node sees itself as %+v", self)
	}
}

func TestNodeWithoutEndHasNoExpiry(t *testing.T) {
	n := meshgen.Node(7, 1)
	if text := encoded(t, netmap.RenderPeer(scene(mesh.Empty(), nil), n)); strings.Contains(text, "KeyExpiry") || strings.Contains(text, "0001-01-01") {
		t.Errorf("clients would take it for expired: %s", text)
	}
}

func TestExpiredPeerCannotBeReached(t *testing.T) {
	n := meshgen.Node(7, 1)
	n.KeyExpired, n.Net, n.Presence.Online = true, meshgen.Net(3), true
	p := netmap.RenderPeer(scene(mesh.Empty(), nil), n)
	if !p.Expired || p.Online || len(p.Endpoints) != 0 || p.HomeDERP != 0 {
		t.Errorf("%+v", p)
	}
}

func TestNetworkIsNamedAfterTheHostOfTheServer(t *testing.T) {
	s, _ := mesh.Apply(mesh.Empty(), 1, mesh.UserPut{User: meshgen.User(1)}, mesh.NodePut{Node: meshgen.Node(7, 1)})
	for url, want := range map[string]string{
		"https://control.example": "control.example", "https://control.example:8443/": "control.example", "http://[fd00::1]:80": "fd00::1", "http://[fd00::1]": "fd00::1",
	} {
		if got := netmap.Full(netmap.NewCache(url).Scene(policy.WorldOf(s, nil)), 7).Domain; got != want {
			t.Errorf("the clients of %s show %q, want %q", url, got, want)
		}
	}
}

func TestNameSettingsReachClients(t *testing.T) {
	s := mesh.Empty()
	s, _ = mesh.Apply(s, 1, append(s.SettingPutFor(mesh.SettingDNS, `{"magicDNS":true,"baseDomain":"net.example.com","nameservers":["192.0.2.53"],
		"split":{"corp.example.org":["192.0.2.54"]},"searchDomains":["example.org"],
		"extraRecords":[{"name":"a.net.example.com","type":"A","value":"100.64.0.9"},{"name":"b.other.org","type":"AAAA","value":"fd7a:115c:a1e0::9"}]}`,
		"config", false, 1), mesh.UserPut{User: meshgen.User(1)}, mesh.NodePut{Node: meshgen.Node(7, 1)})...)
	var theirs tailcfg.MapResponse
	if err := json.Unmarshal([]byte(encoded(t, netmap.Full(scene(s, nil), 7))), &theirs); err != nil {
		t.Fatal(err)
	}
	d := theirs.DNSConfig
	if !d.Proxied || !slices.Equal(d.Domains, []string{"net.example.com", "example.org"}) || d.Resolvers[0].Addr != "192.0.2.53" ||
		d.Routes["corp.example.org"][0].Addr != "192.0.2.54" || theirs.Domain != "net.example.com" || theirs.Node.Name != "host-7.net.example.com." {
		t.Errorf("%+v", d)
	}
	if route, ok := d.Routes["b.other.org"]; !ok || route == nil || len(route) != 0 {
		t.Errorf("a record outside the base domain is not routed to the client itself: %v", d.Routes)
	}
	want := []tailcfg.DNSRecord{{Name: "a.net.example.com", Type: "A", Value: "100.64.0.9"}, {Name: "b.other.org", Type: "AAAA", Value: "fd7a:115c:a1e0::9"}}
	if diff := cmp.Diff(want, d.ExtraRecords); diff != "" {
		t.Error(diff)
	}
}

func TestFallbackNameserversAndFileRecordsReachClients(t *testing.T) {
	s := mesh.Empty()
	s, _ = mesh.Apply(s, 1, append(s.SettingPutFor(mesh.SettingDNS, `{"magicDNS":true,"baseDomain":"net.example.com","nameservers":["192.0.2.53"],"keepLocal":true,
		"extraRecords":[{"name":"a.example.org","type":"A","value":"100.64.0.9"}]}`, "config", false, 1), mesh.UserPut{User: meshgen.User(1)}, mesh.NodePut{Node: meshgen.Node(7, 1)})...)
	s, _ = mesh.Apply(s, 2, s.SettingPutFor(mesh.SettingRecords, `[{"name":"b.example.org","type":"A","value":"100.64.0.8"}]`, "config", true, 1)...)
	var theirs tailcfg.MapResponse
	if err := json.Unmarshal([]byte(encoded(t, netmap.Full(scene(s, nil), 7))), &theirs); err != nil {
		t.Fatal(err)
	}
	d := theirs.DNSConfig
	if len(d.Resolvers) != 0 || len(d.FallbackResolvers) != 1 || d.FallbackResolvers[0].Addr != "192.0.2.53" {
		t.Errorf("resolvers %v, fallback %v", d.Resolvers, d.FallbackResolvers)
	}
	want := []tailcfg.DNSRecord{{Name: "a.example.org", Type: "A", Value: "100.64.0.9"}, {Name: "b.example.org", Type: "A", Value: "100.64.0.8"}}
	if diff := cmp.Diff(want, d.ExtraRecords); diff != "" {
		t.Error(diff)
	}
	if _, routed := d.Routes["b.example.org"]; !routed {
		t.Errorf("the record in the file is not routed to the client itself: %v", d.Routes)
	}
}

func TestConfigurationTellsClientsWhereTheServerIs(t *testing.T) {
	s := mesh.Empty()
	s, _ = mesh.Apply(s, 1, mesh.UserPut{User: meshgen.User(1)}, mesh.NodePut{Node: meshgen.Node(7, 1)}, mesh.NodePut{Node: meshgen.Node(8, 1)})
	read := func(t *testing.T, id mesh.NodeID) *tailcfg.ControlDialPlan {
		t.Helper()
		var theirs tailcfg.MapResponse
		if err := json.Unmarshal([]byte(encoded(t, netmap.Full(scene(s, nil), id))), &theirs); err != nil {
			t.Fatal(err)
		}
		return theirs.ControlDialPlan
	}
	if got := read(t, 7); got != nil {
		t.Errorf("without settings, a client is sent %+v", got)
	}
	set := func(value string) {
		s, _ = mesh.Apply(s, s.Rev+1, s.SettingPutFor(mesh.SettingClients, value, "config", false, 1)...)
	}
	set(`{"serverAddrs":["192.0.2.1","2001:db8::1"]}`)
	first, second := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	for id, want := range map[mesh.NodeID][]netip.Addr{7: {second, first}, 8: {first, second}} {
		plan := read(t, id)
		if plan == nil || len(plan.Candidates) != 2 {
			t.Fatalf("node %d is sent %+v", id, plan)
		}
		for i, c := range plan.Candidates {
			if c.IP != want[i] || c.DialStartDelaySec != float64(i) || c.DialTimeoutSec != 4 {
				t.Errorf("node %d, candidate %d: %+v, want %s", id, i, c, want[i])
			}
		}
	}
	set(`{}`)
	if got := read(t, 7); got == nil || len(got.Candidates) != 0 {
		t.Errorf("a client that remembers addresses is sent %+v", got)
	}
}

func TestConfigurationMakesClientsKeepTheirMaps(t *testing.T) {
	s := mesh.Empty()
	s, _ = mesh.Apply(s, 1, mesh.UserPut{User: meshgen.User(1)}, mesh.NodePut{Node: meshgen.Node(7, 1)})
	for value, want := range map[string]bool{`{}`: false, `{"cacheMaps":true}`: true} {
		s, _ = mesh.Apply(s, s.Rev+1, s.SettingPutFor(mesh.SettingClients, value, "config", false, 1)...)
		var theirs tailcfg.MapResponse
		if err := json.Unmarshal([]byte(encoded(t, netmap.Full(scene(s, nil), 7))), &theirs); err != nil {
			t.Fatal(err)
		}
		if got := theirs.Node.CapMap.Contains(tailcfg.NodeAttrCacheNetworkMaps); got != want {
			t.Errorf("%s: %v", value, theirs.Node.CapMap)
		}
	}
}

func TestConfigurationWithholdsFileSharingAndRandomizesPorts(t *testing.T) {
	s := mesh.Empty()
	s, _ = mesh.Apply(s, 1, mesh.UserPut{User: meshgen.User(1)}, mesh.NodePut{Node: meshgen.Node(7, 1)})
	for value, want := range map[string]struct{ share, random bool }{
		`{}`:                  {true, false},
		`{"noTaildrop":true}`: {false, false},
		`{"randomPort":true}`: {true, true},
	} {
		s, _ = mesh.Apply(s, s.Rev+1, s.SettingPutFor(mesh.SettingClients, value, "config", false, 1)...)
		var theirs tailcfg.MapResponse
		if err := json.Unmarshal([]byte(encoded(t, netmap.Full(scene(s, nil), 7))), &theirs); err != nil {
			t.Fatal(err)
		}
		caps := theirs.Node.CapMap
		if caps.Contains(tailcfg.CapabilityFileSharing) != want.share || caps.Contains(tailcfg.NodeAttrRandomizeClientPort) != want.random {
			t.Errorf("%s: %v", value, caps)
		}
	}
}
