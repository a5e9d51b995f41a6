package main_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// shownReplicas returns the replicas of cluster status as "name state", and the command's result.
func shownReplicas(t *testing.T, p *process) ([]string, result) {
	t.Helper()
	r := command(t, p.settings, "cluster", "status", "--output", "json")
	var shown struct {
		Replicas []struct{ Name, State, URL, StartedAt, Database string }
		Database struct{ Engine, Role, Host string }
	}
	if err := json.Unmarshal([]byte(r.stdout), &shown); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	var states []string
	for _, replica := range shown.Replicas {
		state := replica.Name + " " + replica.State
		if replica.URL == "" || replica.Database == "" || replica.StartedAt == "" { // it is not in the first heartbeat
			state += " without details"
		}
		states = append(states, state)
	}
	if d := shown.Database; d.Role != "primary" || d.Host == "" {
		t.Errorf("the database is %+v", d)
	}
	return states, r
}

// shows waits until cluster status shows the replicas and has the exit status.
func shows(t *testing.T, p *process, status int, words string, replicas ...string) {
	t.Helper()
	eventually(t, func() error {
		if got, r := shownReplicas(t, p); !slices.Equal(got, replicas) || r.status != status || !strings.Contains(r.stderr, words) {
			return fmt.Errorf("got %v, status %d, %s", got, r.status, r.stderr)
		}
		return nil
	})
}

func TestClusterStatusKnowsWhoStoppedAndWhoDied(t *testing.T) {
	t.Parallel()
	keys := t.TempDir()
	shared := onPostgres(t, pg).with("noise.private_key_path", keys+"/noise.key", "replica_name", "mesh-1")
	other := shared.with("unix_socket", keys+"/other.sock", "replica_name", "mesh-2")
	a, b := serve(t, shared), serve(t, other)
	shows(t, a, 0, "", "mesh-1 active", "mesh-2 active")
	b.kill(t)
	shows(t, a, 1, "Error: 1 problem: replica mesh-2 has not reported since", "mesh-1 active", "mesh-2 missing")
	b = serve(t, other)
	shows(t, a, 0, "", "mesh-1 active", "mesh-2 active")
	b.stop(t)
	shows(t, a, 0, "", "mesh-1 active", "mesh-2 stopped")
}

func TestClusterStatusOfASingleServer(t *testing.T) {
	t.Parallel()
	p := serve(t, onSQLite(t).with("replica_name", "only"))
	shows(t, p, 0, "", "only active")
}
