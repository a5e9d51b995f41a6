package api_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

func (s *service) commit(evs ...mesh.Event) {
	s.t.Helper()
	_, err := s.ledger.Commit(s.t.Context(), mesh.Actor{Kind: mesh.ActorServer}, func(*policy.World, mesh.Time) ([]mesh.Event, error) { return evs, nil })
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestOneNodeIsShownWithItsHost(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	s.register(machine(1, s.preAuthKey(object{"user": "alice"}))).ok()
	silent := object{
		"os": "", "osVersion": "", "distro": "", "distroVersion": "", "deviceModel": "", "arch": "", "clientVersion": "", "endpoints": []any{}, "relay": nil,
		"latencies": []any{}, "health": []any{}, "reportedAt": nil,
		"nat": object{"udp": nil, "ipv6": nil, "mappingVaries": nil, "portMapped": false, "portMapping": []any{}},
	}
	shown := func() object { return s.call("GET", "/api/v1/node/1", nil).ok()["node"].(object)["host"].(object) }
	if diff := cmp.Diff(silent, shown()); diff != "" {
		t.Errorf("a silent device (-want +got):\n%s", diff)
	}
	s.commit(
		mesh.SettingPut{Setting: &mesh.Setting{ID: 50, Key: mesh.SettingRelays, Value: `{"Regions":{"7":{"RegionID":7,"RegionCode":"ber","RegionName":"Berlin"}}}`}},
		mesh.SettingPut{Setting: &mesh.Setting{ID: 51, Key: mesh.SettingRelay + "900", Value: `{"replica":"a","region":{"RegionID":900,"RegionCode":"own","RegionName":"Own"}}`}},
	)
	err := s.control.Clients.Report(t.Context(), mesh.Actor{}, control.Report{
		MachineKey: meshgen.MachineKey(1), NodeKey: meshgen.NodeKey(1), HomeRelay: 900, Endpoints: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:41641")},
		Host: &control.Host{
			Hostname: "host-1", OS: "linux", Arch: "arm64", ClientVersion: "1.102.5",
			Object: `{"OS":"linux","OSVersion":"6.12.0","Distro":"debian","DistroVersion":"13","Hostname":"host-1"}`,
		},
		Measured: control.Measured{
			NAT:       &mesh.NAT{UDP: new(true), Varies: new(false), PortMapping: []string{"upnp"}, PortMapped: true},
			Latencies: []mesh.Latency{{Region: 7, Micros: 80123}, {Region: 8, Micros: 90000}, {Region: 900, Micros: 1500}},
			Flags:     []string{"warn-ip-forwarding-off"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := shown()
	for _, m := range got["health"].([]any) {
		if moment(t, m.(object)["since"]).IsZero() {
			t.Errorf("health: %v", m)
		}
		delete(m.(object), "since")
	}
	region := func(id float64, code, name string) object { return object{"id": id, "code": code, "name": name} }
	want := object{
		"os": "linux", "osVersion": "6.12.0", "distro": "debian", "distroVersion": "13", "deviceModel": "", "arch": "arm64", "clientVersion": "1.102.5",
		"endpoints": []any{"192.0.2.1:41641"}, "relay": region(900, "own", "Own"), "reportedAt": got["reportedAt"],
		"latencies": []any{
			object{"region": region(7, "ber", "Berlin"), "milliseconds": 80.12},
			object{"region": region(8, "", ""), "milliseconds": 90.0},
			object{"region": region(900, "own", "Own"), "milliseconds": 1.5},
		},
		"nat": object{"udp": true, "ipv6": nil, "mappingVaries": false, "portMapped": true, "portMapping": []any{"upnp"}},
		"health": []any{object{
			"source": "warn-ip-forwarding-off", "message": "IP forwarding is off, so the routes of this device do not work",
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("host (-want +got):\n%s", diff)
	}
	if listed := s.call("GET", "/api/v1/node", nil).ok()["nodes"].([]any)[0].(object); listed["host"] != nil {
		t.Errorf("a list that was not asked for it has host: %v", listed["host"])
	}
	if diff := cmp.Diff(any(shown()), s.call("GET", "/api/v1/node?host=true", nil).ok()["nodes"].([]any)[0].(object)["host"]); diff != "" {
		t.Errorf("list with host (-shown +listed):\n%s", diff)
	}
	for _, row := range s.audit() {
		if strings.Contains(string(row.After), `"latencies"`) {
			t.Errorf("the audit has measurements: %s", row.After)
		}
	}
}

func TestUsesOfKeysAreToldAndLeaveNoTrace(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		s.newUser("alice")
		made := s.call("POST", "/api/v1/apikey", object{}).ok()["apiKey"].(string)
		rows, rev := len(s.audit()), s.ledger.World().Rev
		s.call("GET", "/api/v1/user", nil, "Authorization: Bearer "+made).ok()
		k := s.call("GET", "/api/v1/apikey", nil).ok()["apiKeys"].([]any)[1].(object)
		// The time comes from the database's clock, as of its last response.
		if at := moment(t, k["lastSeen"]); time.Since(at).Abs() > time.Minute || k["lastUsedFrom"] != "127.0.0.1" {
			t.Errorf("last used at %v from %v", k["lastSeen"], k["lastUsedFrom"])
		}
		s.call("GET", "/api/v1/user", nil, "Authorization: Bearer "+made+"x").fails(401, "Unauthorized", invalid, "")
		if again := s.call("GET", "/api/v1/apikey", nil).ok()["apiKeys"].([]any)[1].(object); again["lastSeen"] != k["lastSeen"] {
			t.Error("a wrong secret counts as a use")
		}
		if len(s.audit()) != rows || s.ledger.World().Rev != rev {
			t.Errorf("a use makes %d rows of audit and %d revisions", len(s.audit())-rows, s.ledger.World().Rev-rev)
		}

		key := s.preAuthKey(object{"user": "alice", "reusable": true})
		for n := range uint64(3) {
			s.register(machine(n, key)).ok()
		}
		s.register(machine(9, s.preAuthKey(object{"user": "alice"}))).ok()
		s.call("DELETE", "/api/v1/node/1", nil).ok()
		used := s.call("GET", "/api/v1/preauthkey", nil).ok()["preAuthKeys"].([]any)[0].(object)
		if moment(t, used["lastUsed"]).IsZero() || used["uses"] != 3.0 || used["lastUsedFrom"] != "127.0.0.1" {
			t.Errorf("pre-auth key: %v", used)
		}
		for _, ref := range []string{used["id"].(string), strings.Split(used["key"].(string), "_")[1]} {
			if ids, _ := s.ids("/api/v1/node", "?preAuthKey="+ref); strings.Join(ids, " ") != "2 3" {
				t.Errorf("nodes of key %s: %v", ref, ids)
			}
		}
		s.call("GET", "/api/v1/node?preAuthKey=99", nil).fails(404, "Not Found", "unknown pre-auth key; list pre-auth keys with: fairlead preauthkeys list", "")
	})
}

func TestRouteHistoryTellsWhoServed(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		routers(s, 2, "10.1.0.0/16", "0.0.0.0/0")
		id := map[string]string{}
		for _, v := range s.call("GET", "/api/v1/routes?prefix=10.1.0.0/16", nil).ok()["routes"].([]any) {
			r := v.(object)
			id[r["node"].(object)["givenName"].(string)] = r["id"].(string)
		}
		path := "/api/v1/routes/" + id["host-0"] + "/history"
		read := func(query string) string {
			t.Helper()
			got := s.call("GET", path+query, nil).ok()
			var lines []string
			for _, v := range got["terms"].([]any) {
				term := v.(object)
				line := term["nodeName"].(string)
				if term["until"] == nil {
					line += " now"
				}
				lines = append(lines, line)
			}
			if got["prefix"] != "10.1.0.0/16" {
				t.Errorf("prefix %v", got["prefix"])
			}
			return strings.Join(lines, ", ")
		}
		if got := read(""); got != "" {
			t.Errorf("before any was enabled: %s", got)
		}
		for _, step := range []struct{ method, path, want string }{
			{"POST", "/api/v1/routes/" + id["host-0"] + "/enable", "host-0 now"},
			{"POST", "/api/v1/routes/" + id["host-1"] + "/enable", "host-0 now"},
			{"POST", "/api/v1/routes/" + id["host-0"] + "/disable", "host-1 now, host-0"},
			{"POST", "/api/v1/routes/" + id["host-0"] + "/enable", "host-1 now, host-0"},
			{"POST", "/api/v1/node/host-1/rename/west", "host-1 now, host-0"},
			{"DELETE", "/api/v1/node/west", "host-0 now, host-1, host-0"},
			{"POST", "/api/v1/routes/" + id["host-0"] + "/disable", "host-0, host-1, host-0"},
			{"POST", "/api/v1/routes/" + id["host-0"] + "/enable", "host-0 now, host-0, host-1, host-0"},
		} {
			s.call(step.method, step.path, nil).ok()
			if got := read(""); got != step.want {
				t.Errorf("after %s %s: %s, want %s", step.method, step.path, got, step.want)
			}
		}
		if got := read("?limit=1"); got != "host-0 now" {
			t.Errorf("the newest: %s", got)
		}
		for _, limit := range []string{"0", "-1", "1001"} {
			s.call("GET", path+"?limit="+limit, nil).fails(400, "Bad Request", "limit must be from 1 to 1000", "limit")
		}
		path = "/api/v1/routes/history?prefix=10.1.0.0/16"
		if got := read("&limit=1"); got != "host-0 now" {
			t.Errorf("the newest by the network: %s", got)
		}
		s.call("DELETE", "/api/v1/node/host-0", nil).ok()
		if got := read(""); got != "host-0, host-0, host-1, host-0" {
			t.Errorf("after the last route: %s", got)
		}
		s.call("GET", "/api/v1/routes/history?prefix=ten", nil).fails(400, "Bad Request", `invalid network "ten": use CIDR notation such as 192.168.7.0/24`, "prefix")
		s.call("GET", "/api/v1/routes/99/history", nil).fails(404, "Not Found", "unknown route 99; list routes with: fairlead routes list", "")
	})
}
