package api

import (
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// serverState handles the operation that shows the state of the server.
type serverState struct {
	*core
	cluster      *ledger.Cluster
	observations *control.Observations
	version      openapi.Version
	facts        openapi.ServerState // the part that does not change
	checks       func() []openapi.ServerCheck
	balancer     Balancer
}

// Balancer sends the nodes of this replica to other replicas.
type Balancer interface {
	// Drain starts or ends draining. It returns whether that is a change.
	Drain(on bool) bool
	Draining() bool
	// Others returns the number of other replicas that can take nodes.
	Others() int
}

// ShowServer implements GET /api/v1/server.
func (s *serverState) ShowServer(w http.ResponseWriter, _ *http.Request) {
	snap := s.ledger.World().Snapshot
	out := s.facts
	out.Version, out.Replica = s.version, string(s.cluster.Self().ID)
	out.Checks, out.Relays, out.Replicas = s.checks(), s.relays(snap), []openapi.ServerReplica{}
	for _, r := range s.cluster.Replicas() {
		out.Replicas = append(out.Replicas, openapi.ServerReplica{
			ID: string(r.ID), Version: r.Version, Revision: revision(r.Rev), Nodes: r.Held, Draining: r.Draining, AgeMillis: int(r.Age.Milliseconds()),
		})
	}
	reply(w, snap, out)
}

// DrainReplica implements POST /api/v1/server/drain.
func (s *serverState) DrainReplica(w http.ResponseWriter, r *http.Request) {
	var in openapi.DrainRequest
	if err := decode(w, r, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	if in.Draining && !or(in.Force) && s.balancer.Others() == 0 {
		writeProblem(w, r, problem(http.StatusConflict, "no other replica can take the nodes; start another one, or use force"))
		return
	}
	if s.balancer.Drain(in.Draining) {
		s.log.Info("drain", "draining", in.Draining, "replica", s.cluster.Self().ID, "actor", actor(r))
		s.cluster.Announce() // the other replicas should know before nodes arrive there
	}
	reply(w, s.ledger.World().Snapshot, openapi.Drain{Replica: string(s.cluster.Self().ID), Draining: s.balancer.Draining()})
}

// relays summarizes the last measurements of online nodes for every relay.
func (s *serverState) relays(snap *mesh.Snapshot) []openapi.ServerRelay {
	homes, latencies := map[int]int{}, map[int][]int64{}
	for n := range snap.Nodes.All() {
		if !n.Presence.Online {
			continue
		}
		homes[n.Net.HomeRelay]++
		for _, l := range s.observations.Facts(n.ID).Latencies {
			latencies[l.Region] = append(latencies[l.Region], l.Micros)
		}
	}
	regions, out := snap.Regions(), []openapi.ServerRelay{}
	_, embedded := snap.RelaySettings()
	for _, id := range slices.Sorted(maps.Keys(regions)) {
		_, own := embedded[strconv.Itoa(id)]
		out = append(out, openapi.ServerRelay{
			Region:   openapi.RelayRegion{ID: id, Code: regions[id].Code, Name: regions[id].Name},
			Embedded: own, Homes: homes[id], Measured: len(latencies[id]), MedianMilliseconds: medianMillis(latencies[id]),
		})
	}
	return out
}

// medianMillis returns the median of latencies in microseconds, the lower of the two middle
// ones if their number is even; nil if there are none.
func medianMillis(micros []int64) *float64 {
	if len(micros) == 0 {
		return nil
	}
	slices.Sort(micros)
	return new(millis(micros[(len(micros)-1)/2]))
}
