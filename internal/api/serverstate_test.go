package api_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

func TestTheServerSaysWhatOnlineNodesMeasureOfRelays(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	s.commit(
		mesh.SettingPut{Setting: &mesh.Setting{ID: 50, Key: mesh.SettingRelays, Value: `{"Regions":{"7":{"RegionID":7,"RegionCode":"ber","RegionName":"Berlin"}}}`}},
		mesh.SettingPut{Setting: &mesh.Setting{ID: 51, Key: mesh.SettingRelay + "900", Value: `{"replica":"a","region":{"RegionID":900,"RegionCode":"own","RegionName":"Own"}}`}},
	)
	for i, micros := range []int64{1000, 3000, 9000, 500} {
		n := uint64(i) + 1
		s.register(machine(n, s.preAuthKey(object{"user": "alice"}))).ok()
		err := s.control.Clients.Report(t.Context(), mesh.Actor{}, control.Report{
			MachineKey: meshgen.MachineKey(n), NodeKey: meshgen.NodeKey(n), HomeRelay: 900, Endpoints: []netip.AddrPort{},
			Measured: control.Measured{Latencies: []mesh.Latency{{Region: 900, Micros: micros}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if n < 4 { // the last node is offline, so it does not count
			s.commit(mesh.Online{ID: mesh.NodeID(n), Replica: "a"})
		}
	}
	want := []any{
		object{"region": object{"id": 7.0, "code": "ber", "name": "Berlin"}, "embedded": false, "homes": 0.0, "measured": 0.0, "medianMilliseconds": nil},
		object{"region": object{"id": 900.0, "code": "own", "name": "Own"}, "embedded": true, "homes": 3.0, "measured": 3.0, "medianMilliseconds": 3.0},
	}
	got := s.call("GET", "/api/v1/server", nil).ok()
	if diff := cmp.Diff(any(want), got["relays"]); diff != "" {
		t.Errorf("relays (-want +got):\n%s", diff)
	}
	if got["url"] != "https://mesh.example.com" || got["replica"] != string(s.ledger.Cluster().Self().ID) {
		t.Errorf("the server is %v, replica %v", got["url"], got["replica"])
	}
}
