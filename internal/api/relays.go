package api

import (
	"math"
	"net/http"
	"strconv"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// relays handles the operations on relays.
type relays struct {
	*core
	control *control.Relays
}

// ListRelays implements GET /api/v1/relay.
func (s *relays) ListRelays(w http.ResponseWriter, _ *http.Request) {
	snap := s.ledger.World().Snapshot
	reply(w, snap, openapi.RelayList{Relays: s.shapes(snap)})
}

func (s *relays) shapes(snap *mesh.Snapshot) []openapi.Relay {
	list := []openapi.Relay{}
	for r := range snap.Relays.All() {
		list = append(list, s.shape(r))
	}
	return list
}

// CreateRelay implements POST /api/v1/relay.
func (s *relays) CreateRelay(w http.ResponseWriter, r *http.Request) {
	var in openapi.RelayCreation
	if err := decode(w, r, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	made, key, err := s.control.Create(r.Context(), actor(r), control.NewRelay{
		Name: in.Name, RegionCode: in.RegionCode, RegionName: or(in.RegionName), RegionID: or(in.RegionID),
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, s.ledger.World().Snapshot, openapi.RelayKeyResult{Relay: s.shape(made), Key: key})
}

func (s *relays) replayRelayKey(c replayed) (any, error) {
	result, err := s.replayRelay(c)
	if err != nil {
		return nil, err
	}
	return nil, &shownOnce{"relay key", c.receipt.Object, result.(openapi.RelayResult).Relay}
}

// GetRelay implements GET /api/v1/relay/{relayId}.
func (s *relays) GetRelay(w http.ResponseWriter, r *http.Request, ref string) {
	found, err := s.control.Find(r.Context(), ref)
	s.replyRelay(w, r, found, err)
}

// DrainRelay implements POST /api/v1/relay/{relayId}/drain.
func (s *relays) DrainRelay(w http.ResponseWriter, r *http.Request, ref string) {
	var in openapi.RelayDrain
	err := decode(w, r, &in)
	var changed *mesh.Relay
	if err == nil {
		changed, err = s.control.Drain(r.Context(), actor(r), ref, in.Draining)
	}
	s.replyRelay(w, r, changed, err)
}

// DeleteRelay implements DELETE /api/v1/relay/{relayId}.
func (s *relays) DeleteRelay(w http.ResponseWriter, r *http.Request, ref string) {
	s.done(w, r, s.control.Delete(r.Context(), actor(r), ref))
}

func (s *relays) replyRelay(w http.ResponseWriter, r *http.Request, found *mesh.Relay, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, s.ledger.World().Snapshot, openapi.RelayResult{Relay: s.shape(found)})
}

func (s *relays) replayRelay(c replayed) (any, error) {
	id, err := strconv.ParseInt(c.receipt.Object, 10, 64)
	if err != nil {
		return nil, err
	}
	r, ok := c.snap.Relays.Get(mesh.RelayID(id))
	if !ok {
		return nil, errAbsent
	}
	return openapi.RelayResult{Relay: s.shape(r)}, nil
}

// shape shows a relay with the newest report.
func (s *relays) shape(r *mesh.Relay) openapi.Relay {
	shown := *r
	shown.Report = s.control.LastReport(r)
	out := relayShape(&shown)
	out.State = openapi.RelayState(s.control.State(r))
	if p, ok := s.control.LastProbe(r); ok {
		out.Probe = probeShape(p)
	}
	return out
}

func probeShape(p control.RelayProbe) *openapi.RelayProbe {
	out := &openapi.RelayProbe{At: p.At.Time(), Reachable: len(p.Failed()) == 0, Checks: []openapi.RelayCheck{}}
	if d := p.Latency(); d > 0 {
		out.Milliseconds = new(millis(d.Microseconds()))
	}
	for _, c := range p.Checks {
		out.Checks = append(out.Checks, openapi.RelayCheck{Name: openapi.RelayCheckName(c.Name), Passed: c.Problem == "", Problem: c.Problem})
	}
	return out
}

// millis returns microseconds in milliseconds with two decimals.
func millis(micros int64) float64 { return math.Round(float64(micros)/10) / 100 }

// relayShape shows a relay without its state.
func relayShape(r *mesh.Relay) openapi.Relay {
	p := r.Report
	return openapi.Relay{
		ID: r.ID.String(), Name: r.Name, Region: openapi.RelayRegion{ID: r.Region, Code: r.RegionCode, Name: r.RegionName},
		URL: r.Place.URL, StunPort: r.Place.STUNPort, Version: r.Place.Version, CreatedAt: r.CreatedAt.Time(), JoinedAt: moment(r.Place.JoinedAt), ReportedAt: moment(p.At),
		Clients: p.Clients, BytesReceived: strconv.FormatInt(p.BytesReceived, 10), BytesSent: strconv.FormatInt(p.BytesSent, 10), Refused: strconv.FormatInt(p.Refused, 10),
		Peers: p.Peers, Milliseconds: millis(p.LatencyMicros),
	}
}

// recordedRelay is a relay in the audit log, without its reports.
type recordedRelay struct {
	ID       string              `json:"id"`
	Name     string              `json:"name"`
	Region   openapi.RelayRegion `json:"region"`
	URL      string              `json:"url"`
	Version  string              `json:"version"`
	Draining bool                `json:"draining"`
}

func describeRelay(s *mesh.Snapshot, id mesh.RelayID) (kind, name string, shape []byte) {
	r, ok := s.Relays.Get(id)
	return "relay", id.String(), shapeOf(ok, func() any {
		return recordedRelay{r.ID.String(), r.Name, openapi.RelayRegion{ID: r.Region, Code: r.RegionCode, Name: r.RegionName}, r.Place.URL, r.Place.Version, r.Draining}
	})
}
