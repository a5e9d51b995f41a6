package relay

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"tailscale.com/tailcfg"
)

// FuzzRelayMap checks that every map that passes Check can be encoded, and is equivalent
// after decoding.
func FuzzRelayMap(f *testing.F) {
	f.Add([]byte(`{"Regions":{"900":{"RegionID":900,"RegionCode":"hq","Nodes":[{"Name":"900a","RegionID":900,"HostName":"a.example"}]}}}`))
	f.Add([]byte(`{"Regions":{"1":null},"omitDefaultRegions":true,"HomeParams":{"RegionScore":{"1":0.5}}}`))
	f.Add([]byte("regions:\n  900:\n    regionid: 900\n    nodes:\n      - {name: 900a, regionid: 900, hostname: a.example, stunport: -1}\n"))
	f.Add([]byte("homeparams: {regionscore: {1: .nan}}\nregions: {1: {regionid: 1, latitude: .inf, nodes: [{name: a, regionid: 1, hostname: b}]}}\n"))
	f.Add([]byte("regions: &r {1: {regionid: 1, nodes: [&n {name: a, regionid: 1, hostname: b}, *n]}}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, parse := range []func([]byte) (*tailcfg.DERPMap, error){parseJSON, parseYAML} {
			m, err := parse(text)
			if err != nil || Check(m) != nil {
				continue
			}
			encoded, err := Encode(m)
			if err != nil {
				t.Fatal(err)
			}
			again, err := parseJSON(encoded)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(m, again, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n%s", encoded, diff)
			}
			if twice, err := Encode(again); err != nil || string(twice) != string(encoded) {
				t.Errorf("%s and %s, %v", encoded, twice, err)
			}
		}
	})
}
