package cli

import (
	"encoding/json"
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
)

func relays() []openapi.Relay {
	region := openapi.RelayRegion{ID: 901, Code: "ams", Name: "Amsterdam"}
	return []openapi.Relay{
		{
			ID: "1", Name: "ams-1", Region: region, State: "active", URL: "https://ams-1.example.com", StunPort: 3478, Version: "1.0.0",
			CreatedAt: at("2026-02-01T09:10:00Z"), JoinedAt: new(at("2026-02-01T09:11:00Z")), ReportedAt: new(at("2026-03-01T09:29:00Z")),
			Clients: 42, BytesReceived: "734003200", BytesSent: "1023", Refused: "2", Peers: 1, Milliseconds: 12.5,
			Probe: &openapi.RelayProbe{At: at("2026-03-01T09:29:30Z"), Reachable: true, Milliseconds: new(9.25), Checks: []openapi.RelayCheck{{Name: "stun", Passed: true}}},
		},
		{ID: "2", Name: "ams-2", Region: region, State: "waiting", CreatedAt: at("2026-02-01T09:10:00Z"), BytesReceived: "0", BytesSent: "0", Refused: "0"},
		{
			ID: "3", Name: "ams-3", Region: region, State: "active", URL: "https://ams-3.example.com", StunPort: 3478, Version: "1.0.0",
			CreatedAt: at("2026-02-01T09:10:00Z"), JoinedAt: new(at("2026-02-01T09:11:00Z")), ReportedAt: new(at("2026-03-01T09:29:00Z")),
			BytesReceived: "0", BytesSent: "0", Refused: "0",
			Probe: &openapi.RelayProbe{At: at("2026-03-01T09:29:30Z"), Checks: []openapi.RelayCheck{{Name: "stun", Problem: "no response to STUN from UDP port 3478 of ams-3.example.com"}}},
		},
	}
}

func (canned) ListRelays(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.RelayList{Relays: relays()})
}

func (canned) CreateRelay(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.RelayKeyResult{Relay: relays()[1], Key: "flr_the-key"})
}

func (canned) GetRelay(w http.ResponseWriter, _ *http.Request, ref string) {
	for _, r := range relays() {
		if r.Name == ref {
			reply(w, openapi.RelayResult{Relay: r})
			return
		}
	}
	reply(w, openapi.RelayResult{Relay: relays()[0]})
}

func (canned) DrainRelay(w http.ResponseWriter, r *http.Request, _ string) {
	relay := relays()[0]
	var in openapi.RelayDrain
	if err := json.NewDecoder(r.Body).Decode(&in); err == nil && in.Draining {
		relay.State = "draining"
	}
	reply(w, openapi.RelayResult{Relay: relay})
}

func (canned) DeleteRelay(w http.ResponseWriter, _ *http.Request, _ string) {
	reply(w, openapi.Empty{})
}
