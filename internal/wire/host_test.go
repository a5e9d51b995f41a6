package wire_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/tailcfg"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/wire"
)

func TestHostDescriptionIsKeptForPeers(t *testing.T) {
	raw := `{"IPNVersion":"1.102.5-t1","BackendLogID":"secret","OS":"linux","Hostname":"läptop","NetInfo":{"PreferredDERP":7,
		"DERPLatency":{"7-v4":0.5,"7-v6":0.25,"1-v4":0.01}},"RoutableIPs":["10.0.0.0/8","192.0.2.1/24"],"RequestTags":["tag:a"],
		"PushDeviceToken":"secret","Machine":"x86_64","Services":[{"Proto":"peerapi4","Port":1}],"sshHostKeys":["a"],"NewMember":{"b":1,"a":[1.50,{}]}}`
	h, tags, home, latency := wire.ParseHost([]byte(raw))
	want := control.Host{
		Hostname: "läptop", OS: "linux", Arch: "x86_64", ClientVersion: "1.102.5-t1",
		Object: `{"IPNVersion":"1.102.5-t1","OS":"linux","Hostname":"läptop","Machine":"x86_64",` +
			`"Services":[{"Proto":"peerapi4","Port":1}],"sshHostKeys":["a"]}`,
		RoutableIPs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/24")},
	}
	samePrefix := cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
	if diff := cmp.Diff(want, h, samePrefix); diff != "" || len(tags) != 1 || home != 7 || latency != 0.25 {
		t.Errorf("%v %d %v (-want +got):\n%s", tags, home, latency, diff)
	}
}

// A host description is part of every peer's map. If clients cannot decode one, they
// cannot decode their whole map.
func TestHostDescriptionThatPeersCannotReadIsCutDown(t *testing.T) {
	least := `{"OS":"linux","Hostname":"h"}`
	for _, members := range []string{
		`"Services":7`, `"services":7`, `"Services":[{"Port":70000}]`, `"ShieldsUp":"maybe"`, `"Location":[]`, `"sshHostKeys":"x"`, `"\u017fervices":7`,
		`"Deep":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		`"Large":"` + strings.Repeat("x", 20_000) + `"`,
	} {
		h, _, _, _ := wire.ParseHost([]byte(`{"Hostname":"h","OS":"linux",` + members + `}`))
		if h.Object != least || h.Hostname != "h" || h.OS != "linux" {
			t.Errorf("%.40s: %.100q", members, h.Object)
		}
	}
	for _, raw := range []string{"", "null", "[]", "7", "{", `{"Hostname":7}`, `{"Hostname":"` + strings.Repeat("x", 20_000) + `"}`} {
		if h, _, _, _ := wire.ParseHost([]byte(raw)); h.Object != "{}" || h.Hostname != "" {
			t.Errorf("%.40q: %+v", raw, h)
		}
	}
}

func FuzzHostDescription(f *testing.F) {
	f.Add([]byte(`{"Hostname":"h","NetInfo":{"PreferredDERP":1,"DERPLatency":{"1-v4":0.1}},"netINFO":null}`))
	f.Add([]byte(`{"Hostname":"\ud800\u0000` + "\xff" + `","Services":[{"Port":1}],"x":1e999,"RoutableIPs":["::/0"]}`))
	f.Add([]byte(`{"Location":{"Country":"x"},"Userspace":true,"AppConnector":"","Userspace":"x"}`))
	f.Add([]byte(`{"reque\u017fttags":["tag:a"],"PushDeviceTo\u212aen":"x","ROUTABLEIPS":["::/0"]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, _, _, _ := wire.ParseHost(raw)
		var node tailcfg.Node
		if err := json.Unmarshal(fmt.Appendf(nil, `{"Hostinfo":%s}`, h.Object), &node); err != nil {
			t.Fatalf("a peer cannot read %s: %v", h.Object, err)
		}
		hi := node.Hostinfo
		if hi.NetInfo().Valid() || hi.RequestTags().Len() > 0 || hi.RoutableIPs().Len() > 0 || hi.BackendLogID() != "" || hi.PushDeviceToken() != "" {
			t.Errorf("peers are told what is not for them: %s", h.Object)
		}
		if len(h.Object) > control.MaxHostObject || !utf8.ValidString(h.Object) || strings.ContainsRune(h.Object, 0) {
			t.Errorf("%q cannot be stored", h.Object)
		}
		if again, _, _, _ := wire.ParseHost([]byte(h.Object)); again.Object != h.Object {
			t.Errorf("%s becomes %s", h.Object, again.Object)
		}
	})
}

func FuzzMachineRequest(f *testing.F) {
	seed := fmt.Sprintf(`{"Version":142,"NodeKey":%q,"Hostinfo":{"Hostname":"h"}`, meshgen.NodeKey(1))
	f.Add(seed + `,"Auth":{"AuthKey":"flp_a_b"}}`)
	f.Add(seed + `,"Followup":"https://a/auth/b","Expiry":"1970-01-01T00:02:03Z"}`)
	f.Add(seed + `,"OmitPeers":true,"Endpoints":["[::1]:1","1.2.3.4:5"],"DiscoKey":"discokey:` + strings.Repeat("1", 64) + `"}`)
	f.Add(seed + `,"Expiry":"9999-12-31T23:59:59Z","Hostinfo":null}`)
	machine := meshgen.MachineKey(1)
	f.Fuzz(func(t *testing.T, body string) {
		j, r, ok := wire.Decoded(machine, body)
		if ok && (j.MachineKey != machine || j.Host.Object == "") || !r.MachineKey.IsZero() && r.MachineKey != machine {
			t.Errorf("%q: %+v %+v", body, j, r)
		}
	})
}
