package wire_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

func TestWhatAClientMeasuresIsKnown(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	c := s.client()
	c.joins(withKey(s.key(control.NewPreAuthKey{User: "alice"})))
	info := object{
		"PreferredDERP": 7, "WorkingUDP": true, "WorkingIPv6": false, "MappingVariesByDestIP": true, "HavePortMap": true, "UPnP": true, "PCP": true,
		"DERPLatency": map[string]float64{"7-v4": 0.02, "7-v6": 0.0105, "8-v4": 1e-9, "-3-v4": 1, "x": 1, "9-v4": -1, "10-v4": 60},
	}
	says := func(more object) {
		t.Helper()
		request := object{"Version": 142, "NodeKey": c.node.Public(), "OmitPeers": true, "Hostinfo": object{"Hostname": "laptop", "NetInfo": info}}
		for name, v := range more {
			request[name] = v
		}
		if status, text, _ := c.post("/machine/map", request); status != http.StatusOK {
			t.Fatalf("%d %q", status, text)
		}
	}
	check := func(want mesh.Facts) {
		t.Helper()
		got := *s.Observations.Facts(s.only().ID)
		for i := range got.Warnings {
			got.Warnings[i].Since = 0
		}
		want.Node, want.At = got.Node, got.At
		if diff := cmp.Diff(want, got); diff != "" || got.At == 0 {
			t.Errorf("facts of %v (-want +got):\n%s", got.At.Time(), diff)
		}
	}
	want := mesh.Facts{
		NAT:       mesh.NAT{UDP: new(true), IPv6: new(false), Varies: new(true), PortMapping: []string{"pcp", "upnp"}, PortMapped: true},
		Latencies: []mesh.Latency{{Region: 7, Micros: 10500}, {Region: 8, Micros: 1}},
	}
	says(nil)
	check(want)
	saved, _ := s.ledger.World().Facts.Get(s.only().ID)
	if saved == nil || !saved.Equal(&want) {
		t.Errorf("committed is %+v", saved)
	}
	info["DERPLatency"], info["WorkingUDP"] = map[string]float64{}, true
	says(object{"DebugFlags": []string{"warn-router-unhealthy", "netstack"}})
	want.Warnings = []mesh.Warning{{Source: "warn-router-unhealthy", Text: "the client could not configure the routes or the firewall of the device"}}
	check(want)

	if status, text, _ := c.post("/machine/update-health", object{"NodeKey": c.node.Public(), "Subsys": "dns", "Error": "no resolver\n"}); status != http.StatusNoContent {
		t.Fatalf("%d %q", status, text)
	}
	want.Warnings = append([]mesh.Warning{{Source: "dns", Text: "no resolver-"}}, want.Warnings...)
	check(want)
	if status, _, _ := s.client().post("/machine/update-health", object{"NodeKey": c.node.Public(), "Subsys": "dns"}); status != http.StatusForbidden {
		t.Errorf("another machine: %d", status)
	}
}

// A reconnecting client reports its measurements when it opens its stream. The server
// takes nothing else from that request, because the rest may be outdated.
func TestStreamTellsWhatTheClientMeasured(t *testing.T) {
	s, _ := open(t, options{})
	s.user("alice")
	c := s.client()
	c.joins(withKey(s.key(control.NewPreAuthKey{User: "alice"})))
	body, err := json.Marshal(object{
		"Version": 142, "NodeKey": c.node.Public(), "Stream": true, "Endpoints": []string{"192.0.2.1:1"},
		"Hostinfo": object{"Hostname": "old", "NetInfo": object{"PreferredDERP": 7, "WorkingUDP": true, "DERPLatency": map[string]float64{"7-v4": 0.02}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	resp, err := c.ask(ctx, http.MethodPost, "/machine/map", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n := s.only()
	if f := s.Observations.Facts(n.ID); f.UDP == nil || !*f.UDP || len(f.Latencies) != 1 {
		t.Errorf("%+v", f)
	}
	if n.Net.HomeRelay != 0 || len(n.Net.Endpoints) > 0 || n.Hostname == "old" {
		t.Errorf("%+v", n)
	}
}
