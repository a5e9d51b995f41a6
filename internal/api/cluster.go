package api

import (
	"net/http"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/cluster"
)

// clusterState handles the operation that shows all replicas, the database and the relays.
type clusterState struct {
	*core
	state  func() cluster.State
	checks func() []openapi.ServerCheck
	relays *relays
}

// ShowCluster implements GET /api/v1/cluster.
func (s *clusterState) ShowCluster(w http.ResponseWriter, _ *http.Request) {
	state, snap := s.state(), s.ledger.World().Snapshot
	out := openapi.Cluster{
		Replica: state.Self, Replicas: []openapi.ClusterReplica{}, Database: databaseView(state), Relays: s.relays.shapes(snap),
		Problems: append([]string{}, state.Problems...), Notes: append([]string{}, state.Notes...),
	}
	for _, r := range state.Replicas {
		v := openapi.ClusterReplica{
			Name: r.Name, ID: string(r.ID), State: openapi.ClusterReplicaState(r.State), URL: r.URL, Version: r.Version, Revision: revision(r.Rev),
			LagMillis: int(r.Lag.Milliseconds()), Nodes: r.Held, Database: r.Database, ReportedAt: r.Reported.UTC(),
		}
		if !r.Started.IsZero() {
			started := r.Started.UTC()
			v.StartedAt = &started
		}
		out.Replicas = append(out.Replicas, v)
	}
	for _, check := range s.checks() {
		// The other parts concern this replica alone.
		if slices.Contains([]string{"database", "replicas", "clock"}, check.Part) && check.Status != openapi.ServerCheckPass {
			out.Problems = append(out.Problems, check.Output...)
		}
	}
	out.Problems = append(out.Problems, s.relays.control.Warnings()...)
	reply(w, snap, out)
}

func databaseView(state cluster.State) openapi.ClusterDatabase {
	d := state.Database
	v := openapi.ClusterDatabase{
		Engine: openapi.ClusterDatabaseEngine(d.Engine), Version: d.Version, Host: d.Host, Role: openapi.DatabasePrimary,
		SynchronousCommit: d.SyncCommit, SynchronousStandbyNames: d.SyncNames, Standbys: []openapi.ClusterStandby{}, StandbysVisible: d.Hidden == "",
	}
	if d.Standby {
		v.Role = openapi.DatabaseStandby
	}
	if d.Timeline != 0 {
		timeline := int64(d.Timeline)
		v.Timeline = &timeline
	}
	for _, b := range d.Standbys {
		v.Standbys = append(v.Standbys, openapi.ClusterStandby{
			Name: b.Name, Address: b.Addr, State: b.State, Sync: b.Sync, LagBytes: b.LagBytes, LagMillis: b.Lag.Milliseconds(),
		})
	}
	return v
}
