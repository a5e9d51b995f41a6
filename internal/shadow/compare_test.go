package shadow_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/shadow"
)

// theirs is a map in the form of the old server.
const theirs = `{
	"Node": {"ID": 1, "StableID": "1", "Name": "laptop.mesh.test.", "User": 1, "Key": "nodekey:01", "KeyExpiry": "0001-01-01T00:00:00Z",
		"Addresses": ["100.64.0.1/32", "fd7a::1/128"], "AllowedIPs": ["100.64.0.1/32", "fd7a::1/128", "10.9.0.0/24"]},
	"Peers": [
		{"ID": 2, "StableID": "2", "Name": "web.mesh.test.", "User": 2147455555, "Key": "nodekey:02", "Tags": ["tag:a", "tag:b"],
			"Addresses": ["100.64.0.2/32"], "AllowedIPs": ["100.64.0.2/32"]},
		{"ID": 3, "StableID": "3", "Name": "desk.mesh.test.", "User": 1, "Key": "nodekey:03", "KeyExpiry": "2030-01-01T00:00:00.123456789Z",
			"Addresses": ["100.64.0.3/32"], "AllowedIPs": ["100.64.0.3/32"]}],
	"UserProfiles": [{"ID": 1, "LoginName": "ann"}],
	"DNSConfig": {"Proxied": true, "Domains": ["mesh.test"], "FallbackResolvers": [{"Addr": "192.0.2.53"}], "Routes": {"corp.example": [{"Addr": "192.0.2.54"}]},
		"ExtraRecords": [{"Name": "a.mesh.test", "Value": "100.64.0.2"}]},
	"PacketFilters": {"base": [
		{"SrcIPs": ["100.64.0.2", "100.64.0.3/32"], "DstPorts": [{"IP": "100.64.0.1", "Ports": {"First": 80, "Last": 81}}], "IPProto": [6]},
		{"SrcIPs": ["100.64.0.0/10"], "DstPorts": [{"IP": "10.9.0.0/24", "Ports": {"First": 0, "Last": 65535}}]}]},
	"SSHPolicy": {"rules": [{"principals": [{"nodeIP": "100.64.0.3"}, {"nodeIP": "100.64.0.1"}, {"nodeIP": "fd7a::1"}], "sshUsers": {"root": "root"}, "action": {"accept": true}}]}
}`

// ours has the same effect in another form: other rules, another order, and more.
const ours = `{
	"Node": {"ID": 1, "StableID": "1", "Name": "laptop.mesh.test.", "User": 1, "Key": "nodekey:01", "Online": true,
		"Addresses": ["100.64.0.1/32", "fd7a::1/128"], "AllowedIPs": ["100.64.0.1/32", "fd7a::1/128"]},
	"Peers": [
		{"ID": 3, "StableID": "3", "Name": "desk.mesh.test.", "User": 1, "Key": "nodekey:03", "KeyExpiry": "2030-01-01T00:00:00.123456Z",
			"Addresses": ["100.64.0.3/32"], "AllowedIPs": ["100.64.0.3/32"]},
		{"ID": 2, "StableID": "2", "Name": "web.mesh.test.", "User": 2147455555, "Key": "nodekey:02", "Tags": ["tag:b", "tag:a"],
			"Addresses": ["100.64.0.2/32"], "AllowedIPs": ["100.64.0.2/32", "10.8.0.0/24"]}],
	"UserProfiles": [{"ID": 1, "LoginName": "ann"}],
	"DNSConfig": {"Proxied": true, "Domains": ["mesh.test"], "FallbackResolvers": [{"Addr": "192.0.2.53"}], "Routes": {"corp.example": [{"Addr": "192.0.2.54"}], "x": []},
		"ExtraRecords": [{"Name": "a.mesh.test", "Value": "100.64.0.2"}]},
	"PacketFilters": {"b": [
		{"SrcIPs": ["100.64.0.2-100.64.0.3"], "DstPorts": [{"IP": "100.64.0.1", "Ports": {"First": 81, "Last": 81}}, {"IP": "100.64.0.1/32", "Ports": {"First": 80, "Last": 80}}], "IPProto": [6]}],
		"a": [{"SrcIPs": ["*"], "DstPorts": [{"IP": "10.9.0.0/25", "Ports": {"First": 0, "Last": 65535}}, {"IP": "10.9.0.128/25", "Ports": {"First": 0, "Last": 65535}}], "IPProto": [1, 6, 17, 58]}]},
	"SSHPolicy": {"rules": [{"principals": [{"userLogin": "ann"}], "sshUsers": {"root": "root"}, "action": {"accept": true}}]}
}`

func compared(t *testing.T, old, own string) []shadow.Difference {
	t.Helper()
	parse := func(text string) *shadow.Map {
		m, err := shadow.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	net := shadow.Network{Routes: map[int64][]netip.Prefix{1: {netip.MustParsePrefix("10.9.0.0/24")}, 2: {netip.MustParsePrefix("10.8.0.0/24")}}, Now: time.Unix(1_800_000_000, 0)}
	for _, a := range []string{"100.64.0.1", "100.64.0.2", "100.64.0.3", "fd7a::1"} {
		net.Sources = append(net.Sources, netip.MustParseAddr(a))
	}
	return shadow.Compare(parse(old), parse(own), net)
}

func TestMapsWithTheSameEffectAreEqual(t *testing.T) {
	got := compared(t, theirs, ours)
	if len(got) != 1 || got[0].Known == "" || got[0].Kind != shadow.Routes || !strings.Contains(got[0].Text, "10.8.0.0/24") {
		t.Errorf("%+v", got)
	}
	if got := compared(t, `{"MapResponse": `+theirs+`}`, ours); len(got) != 1 {
		t.Errorf("in the form before 0.27: %+v", got)
	}
}

func TestEveryDifferenceIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		from, to string
		kind     shadow.Kind
		says     string
	}{
		"a source":          {"100.64.0.2-100.64.0.3", "100.64.0.2", shadow.Traffic, "no longer allowed: from 100.64.0.3 to 100.64.0.1 ICMP, TCP port 80, TCP port 81"},
		"a port":            {`"First": 81, "Last": 81`, `"First": 81, "Last": 82`, shadow.Traffic, "now allowed: from 100.64.0.2, 100.64.0.3 to 100.64.0.1 TCP port 82"},
		"a protocol":        {"[1, 6, 17, 58]", "[1, 6, 17, 58, 132]", shadow.Traffic, "SCTP"},
		"a part of a route": {"10.9.0.128/25", "10.9.0.192/26", shadow.Traffic, "no longer allowed: from 100.64.0.2, 100.64.0.3 to 10.9.0.128 ICMP"},
		"a tag":             {`"tag:b", "tag:a"`, `"tag:a"`, shadow.Tags, "tags of peer 2 (web): now tag:a, was tag:a, tag:b"},
		"an address":        {`"100.64.0.3/32"`, `"100.64.0.4/32"`, shadow.Addresses, "100.64.0.4/32, was 100.64.0.3/32"},
		"a name":            {"desk.mesh", "table.mesh", shadow.Identity, "table.mesh.test, was desk.mesh.test"},
		"a key":             {"nodekey:03", "nodekey:04", shadow.Identity, "nodekey:04"},
		"a stable ID":       {`"StableID": "3"`, `"StableID": "n3"`, shadow.Identity, "n3, was 3"},
		"an expired key":    {`"KeyExpiry": "2030-`, `"KeyExpiry": "2020-`, shadow.Expiry, "expired, was 2030"},
		"a peer":            {`{"ID": 3`, `{"ID": 4`, shadow.Peers, "no longer sees 3 (desk)"},
		"a route":           {"10.8.0.0/24", "10.7.0.0/24", shadow.Routes, "also has the route 10.7.0.0/24"},
		"a record":          {`"Value": "100.64.0.2"`, `"Value": "100.64.0.9"`, shadow.Resolving, "extra records: now a.mesh.test A 100.64.0.9"},
		"a resolver":        {`"192.0.2.53"`, `"192.0.2.1"`, shadow.Resolving, "fallback resolvers"},
		"split DNS":         {"corp.example", "corp.test", shadow.Resolving, "split DNS"},
		"a search domain":   {`["mesh.test"]`, `["mesh.test", "x"]`, shadow.Resolving, "search domains"},
		"MagicDNS":          {`"Proxied": true`, `"Proxied": false`, shadow.Resolving, "MagicDNS: now off, was on"},
		"a session":         {`{"userLogin": "ann"}`, `{"nodeIP": "100.64.0.3"}`, shadow.Sessions, "no longer allowed: 100.64.0.1 as root=root accepted; fd7a::1"},
		"a user of SSH":     {`{"root": "root"}`, `{"*": "="}`, shadow.Sessions, "now allowed: 100.64.0.1 as *=="},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(ours, c.from) {
				t.Fatalf("%s is not in the map", c.from)
			}
			found := false
			for _, d := range compared(t, theirs, strings.ReplaceAll(ours, c.from, c.to)) {
				found = found || d.Kind == c.kind && d.Known == "" && strings.Contains(d.Text, c.says)
			}
			if !found {
				t.Errorf("not found: %+v", compared(t, theirs, strings.ReplaceAll(ours, c.from, c.to)))
			}
		})
	}
}

// Rules of different releases have the same effect in a client: ICMP is accepted where some port is open, and a user
// who is refused explicitly is refused anyway.
func TestFormsOfOlderReleasesAreEqual(t *testing.T) {
	for from, to := range map[string]string{`"IPProto": [1, 6, 17, 58]`: `"IPProto": [6, 17]`, `"sshUsers": {"root": "root"}`: `"sshUsers": {"root": "=", "guest": ""}`} {
		for _, d := range compared(t, strings.ReplaceAll(theirs, from, to), strings.ReplaceAll(ours, from, to)) {
			if d.Known == "" {
				t.Errorf("%s: %+v", to, d)
			}
		}
		if !strings.Contains(ours, from) {
			t.Errorf("%s is not in the map", from)
		}
		for _, d := range compared(t, theirs, strings.ReplaceAll(ours, from, to)) {
			if d.Known == "" {
				t.Errorf("%s: %+v", to, d)
			}
		}
	}
}

// Expected differences are listed with their reason: who owns devices with tags, and what exit nodes forward.
func TestDifferencesOfOlderReleasesAreKnown(t *testing.T) {
	for _, d := range compared(t, strings.Replace(theirs, "2147455555", "1", 1), ours) {
		if d.Known == "" {
			t.Errorf("%+v", d)
		}
	}
	exit := `{"Node": {"ID": 9, "Addresses": ["100.64.0.9/32"]}, "Peers": [], "PacketFilter": [{"SrcIPs": ["100.64.0.3"], "DstPorts": [{"IP": "NET", "Ports": {"First": 0, "Last": 65535}}]}]}`
	for network, known := range map[string]bool{"10.8.0.0/24": true, "10.7.0.0/24": false} {
		old, err := shadow.Parse([]byte(strings.ReplaceAll(exit, "NET", network)))
		if err != nil {
			t.Fatal(err)
		}
		own := *old
		own.PacketFilter = nil
		found := shadow.Compare(old, &own, shadow.Network{
			Sources: []netip.Addr{netip.MustParseAddr("100.64.0.3")}, Now: time.Unix(1_800_000_000, 0),
			Routes: map[int64][]netip.Prefix{9: {netip.MustParsePrefix("0.0.0.0/0")}, 2: {netip.MustParsePrefix("10.8.0.0/24")}},
		})
		if !slices.ContainsFunc(found, func(d shadow.Difference) bool { return d.Kind == shadow.Traffic && (d.Known != "") == known }) {
			t.Errorf("%s: %+v", network, found)
		}
	}
}

// A device that sees nobody gets a whole map without peers.
func TestMapWithoutPeersIsWhole(t *testing.T) {
	for text, want := range map[string]bool{
		`{"Node": {"ID": 1}, "DERPMap": {"Regions": {}}}`: true, `{"Node": {"ID": 1}, "Peers": [{"ID": 2}]}`: true, `{"Node": {"ID": 1}}`: false, `{"PeersChanged": [{"ID": 2}]}`: false,
	} {
		if m, err := shadow.Parse([]byte(text)); err != nil || m.Full() != want {
			t.Errorf("%s: want %t; %v", text, want, err)
		}
	}
}

func TestChangesAreAddedToAMap(t *testing.T) {
	m, err := shadow.Parse([]byte(theirs))
	if err != nil {
		t.Fatal(err)
	}
	change, err := shadow.Parse([]byte(`{"PeersChanged": [{"ID": 2, "Name": "new."}, {"ID": 4}], "PeersRemoved": [3], "PeersChangedPatch": [{"NodeID": 4, "Key": "nodekey:44"}], "DNSConfig": {"Proxied": false}, "PacketFilters": {}}`))
	if err != nil {
		t.Fatal(err)
	}
	m.Update(change)
	if len(m.Peers) != 2 || m.Peers[0].Name != "new." || m.Peers[1].ID != 4 || m.Peers[1].Key != "nodekey:44" || m.DNSConfig.Proxied || len(m.PacketFilters) != 0 || m.Node.ID != 1 {
		t.Errorf("%+v", m)
	}
}

// Headscale sends exit nodes the rules for all addresses, including those of other devices.
func TestRulesForOtherDevicesDoNotCountOnAnExitNode(t *testing.T) {
	node := `"Node": {"ID": 1, "Addresses": ["100.64.0.1/32"]}, "Peers": []`
	parse := func(destination string) *shadow.Map {
		m, err := shadow.Parse([]byte(`{` + node + `, "PacketFilter": [{"SrcIPs": ["100.64.0.2"], "DstPorts": [{"IP": "` + destination + `", "Ports": {"First": 0, "Last": 65535}}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	net := shadow.Network{
		Sources: []netip.Addr{netip.MustParseAddr("100.64.0.1"), netip.MustParseAddr("100.64.0.2")},
		Routes:  map[int64][]netip.Prefix{1: {netip.MustParsePrefix("0.0.0.0/0")}}, Now: time.Unix(1_800_000_000, 0),
	}
	for destination, differs := range map[string]bool{"100.64.0.3": false, "192.0.2.3": true, "100.64.0.1": true} {
		if got := shadow.Compare(parse(destination), parse("100.64.0.9"), net); len(got) > 0 != differs {
			t.Errorf("%s: %+v", destination, got)
		}
	}
}
