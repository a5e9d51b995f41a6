package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
)

// relay creates a relay and returns its path.
func (f fixture) relay() string {
	f.t.Helper()
	name := fmt.Sprintf("ams-%d", f.ledger.World().Counters.Relay+1)
	made := f.call("POST", "/api/v1/relay", object{"name": name, "regionCode": "ams"}).ok()
	return "/api/v1/relay/" + made["relay"].(object)["id"].(string)
}

func relayExamples() map[string]func(f fixture) *answer {
	on := func(method, rest string, body any) func(fixture) *answer {
		return func(f fixture) *answer { return f.call(method, f.relay()+rest, body) }
	}
	return map[string]func(f fixture) *answer{
		"GET /api/v1/relay": func(f fixture) *answer {
			f.relay()
			return f.call("GET", "/api/v1/relay", nil)
		},
		"POST /api/v1/relay": func(f fixture) *answer {
			return f.call("POST", "/api/v1/relay", object{"name": "fra-1", "regionCode": "fra", "regionName": "Frankfurt", "regionId": 950})
		},
		"GET /api/v1/relay/{relayId}":        on("GET", "", nil),
		"DELETE /api/v1/relay/{relayId}":     on("DELETE", "", nil),
		"POST /api/v1/relay/{relayId}/drain": on("POST", "/drain", object{"draining": true}),
	}
}

// relayHosts returns the hosts of each region that nodes get, by region number.
func relayHosts(t *testing.T, s *mesh.Snapshot) map[int][]string {
	t.Helper()
	var m struct {
		Regions map[int]struct{ Nodes []struct{ HostName string } }
	}
	if err := json.Unmarshal(netmap.SettingsOf(s).Relays(), &m); err != nil {
		t.Fatal(err)
	}
	hosts := map[int][]string{}
	for id, r := range m.Regions {
		for _, n := range r.Nodes {
			hosts[id] = append(hosts[id], n.HostName)
		}
	}
	return hosts
}

func TestRelayIsOfferedFromItsFirstReportUntilItIsDrainedOrStops(t *testing.T) {
	f := populated(t, sqlite(t))
	f.call("POST", "/api/v1/relay", object{"name": "ams-1", "regionCode": "ams", "regionName": "Amsterdam"}).ok()
	made := f.call("POST", "/api/v1/relay", object{"name": "ams-2", "regionCode": "ams"}).ok()
	second, err := f.control.Relays.Authenticate(t.Context(), made["key"].(string))
	if err != nil || second.Name != "ams-2" || second.Region != 900 || second.RegionName != "Amsterdam" {
		t.Fatalf("the key is that of %+v: %v", second, err)
	}
	if _, err := f.control.Relays.Authenticate(t.Context(), made["key"].(string)+"x"); err == nil {
		t.Fatal("a wrong key is accepted")
	}
	offered := func(want ...string) {
		t.Helper()
		if got := relayHosts(t, f.ledger.World().Snapshot)[900]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("nodes get the relays %v, want %v", got, want)
		}
	}
	place := func(host string) mesh.RelayPlace {
		return mesh.RelayPlace{URL: "https://" + host, STUNPort: 3478, Key: key.NewNode().Public(), Version: "1.0"}
	}
	state := func() any { return f.call("GET", "/api/v1/relay/ams-2", nil).ok()["relay"].(object)["state"] }
	offered()
	if got := state(); got != "waiting" {
		t.Fatalf("before it joins, the relay is %v", got)
	}
	at := place("two.example.com")
	if err := f.control.Relays.Report(t.Context(), second.ID, at, mesh.RelayReport{Clients: 7}); err != nil {
		t.Fatal(err)
	}
	offered("two.example.com")
	if err := f.control.Relays.Report(t.Context(), 1, place("one.example.com"), mesh.RelayReport{}); err != nil {
		t.Fatal(err)
	}
	offered("one.example.com", "two.example.com")
	if err := f.control.Relays.Report(t.Context(), 1, at, mesh.RelayReport{}); err == nil {
		t.Fatal("two relays have the same private key")
	}
	// Later reports are not committed at once, but shown.
	rev := f.ledger.World().Rev
	if err := f.control.Relays.Report(t.Context(), second.ID, at, mesh.RelayReport{Clients: 8}); err != nil {
		t.Fatal(err)
	}
	shown := f.call("GET", "/api/v1/relay/ams-2", nil).ok()["relay"].(object)
	if shown["clients"] != 8.0 || shown["state"] != "active" || f.ledger.World().Rev != rev {
		t.Fatalf("at revision %d, want %d, the relay is shown as %v", f.ledger.World().Rev, rev, shown)
	}
	f.call("POST", "/api/v1/relay/2/drain", object{"draining": true}).ok()
	offered("one.example.com")
	if got := state(); got != "draining" {
		t.Fatalf("while it drains, the relay is %v", got)
	}
	f.call("POST", "/api/v1/relay/2/drain", object{"draining": false}).ok()
	offered("one.example.com", "two.example.com")
	if err := f.control.Relays.Leave(t.Context(), second.ID, at.Key); err != nil {
		t.Fatal(err)
	}
	offered("one.example.com")
	f.call("DELETE", "/api/v1/relay/ams-1", nil).ok()
	offered()
}

func TestRelayOfARegionThatOthersHaveIsRefused(t *testing.T) {
	f := populated(t, sqlite(t))
	f.commit(mesh.SettingPut{Setting: &mesh.Setting{
		ID: f.ledger.World().Counters.Setting + 1, Key: mesh.SettingRelays, Value: `{"Regions":{"901":{"RegionID":901,"RegionCode":"fra","RegionName":"Frankfurt"}}}`, Source: "config",
	}})
	f.call("POST", "/api/v1/relay", object{"name": "ams-1", "regionCode": "ams", "regionId": 902}).ok()
	for _, in := range []object{
		{"name": "x", "regionCode": "fra"},
		{"name": "x", "regionCode": "x", "regionId": 901},
		{"name": "x", "regionCode": "x", "regionId": 902},
		{"name": "x", "regionCode": "ams", "regionId": 903},
		{"name": "ams-1", "regionCode": "ams"},
	} {
		if a := f.call("POST", "/api/v1/relay", in); a.status != 409 {
			t.Errorf("%v: status %d: %s", in, a.status, a.body)
		}
	}
	for _, in := range []object{{"name": "x y", "regionCode": "x"}, {"name": "x", "regionCode": ""}, {"name": "x", "regionCode": "x", "regionId": 70000}} {
		if a := f.call("POST", "/api/v1/relay", in); a.status != 400 {
			t.Errorf("%v: status %d: %s", in, a.status, a.body)
		}
	}
	for _, url := range []string{"", "relay.example.com", "https://a b", "https://u:p@relay.example.com", "https://relay.example.com/path", "ftp://relay.example.com"} {
		err := f.control.Relays.Report(t.Context(), 1, mesh.RelayPlace{URL: url, Key: key.NewNode().Public()}, mesh.RelayReport{})
		if refusal, ok := errors.AsType[*control.Refusal](err); !ok || refusal.Reason != control.Invalid {
			t.Errorf("a relay at %q: %v", url, err)
		}
	}
}
