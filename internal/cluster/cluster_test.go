package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
)

// states lists the replicas as "name state".
func states(s State) (out []string) {
	for _, r := range s.Replicas {
		out = append(out, r.Name+" "+r.State)
	}
	return out
}

func TestReplicasAreListedByNameUntilTheyStartAgain(t *testing.T) {
	const alive, dead = time.Second, 10 * time.Minute
	now := time.Now()
	seen := &description{at: now, runs: []ledger.Report{
		{ID: "1", Name: "a", Age: dead, Uptime: time.Hour},                                        // started again as 2
		{ID: "2", Name: "a", Age: 5 * time.Second, Uptime: time.Minute},                           // newer in the reports below
		{ID: "3", Name: "b", Age: dead, Uptime: time.Hour},                                        // died
		{ID: "4", Name: "c", Age: dead, Uptime: time.Hour, Stopped: true},                         // stopped on purpose
		{ID: "5", Name: "d", Age: dead, Uptime: time.Hour, Stopped: true},                         // stopped, and started again as 6
		{ID: "7", Name: "twin", Age: dead, Uptime: time.Hour},                                     // died; 8 was already running
		{ID: "9", Name: "e", Age: dead, Uptime: time.Hour, Stopped: true},                         // started again as 10,
		{ID: "10", Name: "e", Age: 2 * time.Minute, Uptime: 7 * time.Minute},                      // which died
		{ID: "11", Age: time.Second}, {ID: "12", Name: "f", Age: 5 * time.Minute, Lag: time.Hour}, // of an earlier version; 12 died
	}}
	reports := []ledger.Report{
		{ID: "2", Name: "a", Age: alive, Uptime: time.Minute},
		{ID: "6", Name: "d", Age: alive, Uptime: time.Minute, Draining: true},
		{ID: "8", Name: "twin", Age: alive, Uptime: time.Hour},
		{ID: "11", Age: alive},
	}
	s := describe("2", seen, reports, now)
	want := []string{"11 active", "a active", "b missing", "c stopped", "d draining", "e missing", "f missing", "twin missing", "twin active"}
	if diff := cmp.Diff(want, states(s)); diff != "" {
		t.Errorf("replicas (-want +got):\n%s", diff)
	}
	var missing []string
	for _, p := range s.Problems {
		missing = append(missing, strings.Fields(p)[1])
	}
	if diff := cmp.Diff([]string{"b", "e", "f", "twin"}, missing); diff != "" {
		t.Errorf("problems (-want +got):\n%s\n%s", diff, strings.Join(s.Problems, "\n"))
	}
	for _, r := range s.Replicas {
		if r.ID == "2" && (!r.Reported.Equal(now.Add(-alive)) || !r.Started.Equal(now.Add(-alive-time.Minute))) {
			t.Errorf("a reported at %v and started at %v", r.Reported, r.Started)
		}
		if r.ID == "11" && !r.Started.IsZero() {
			t.Errorf("the earlier version started at %v", r.Started)
		}
	}
}

func TestProblemsAndNotes(t *testing.T) {
	streaming := func(sync string, lag time.Duration) ledger.Standby {
		return ledger.Standby{Name: "s1", State: "streaming", Sync: sync, Lag: lag}
	}
	replica := func(change func(*ledger.Report)) []ledger.Report {
		r := ledger.Report{ID: "2", Name: "b", Version: "1", Database: "db-1:5432"}
		change(&r)
		return []ledger.Report{{ID: "1", Name: "a", Version: "1", Database: "db-1:5432"}, r}
	}
	none := func(*ledger.Report) {}
	for name, c := range map[string]struct {
		database ledger.Database
		reports  []ledger.Report
		problem  string
		note     string
	}{
		"healthy":             {reports: replica(none), database: ledger.Database{SyncNames: "*", Standbys: []ledger.Standby{streaming("quorum", time.Second)}}},
		"no standbys":         {reports: replica(none)},
		"lag":                 {reports: replica(func(r *ledger.Report) { r.Lag = 20 * time.Second }), problem: "replica b is 20s behind"},
		"different servers":   {reports: replica(func(r *ledger.Report) { r.Database = "db-2:5432" }), problem: "different database servers: [db-1:5432 db-2:5432]"},
		"server not reported": {reports: replica(func(r *ledger.Report) { r.Database = "" })},
		"versions":            {reports: replica(func(r *ledger.Report) { r.Version = "2" }), note: "different versions"},
		"names":               {reports: replica(func(r *ledger.Report) { r.Name = "a" }), note: "2 replicas are named a; set replica_name"},
		"standby":             {database: ledger.Database{Host: "db", Standby: true}, problem: "db is a standby"},
		"catching up":         {database: ledger.Database{Standbys: []ledger.Standby{{Name: "s1", State: "catchup"}}}, problem: "its state is catchup"},
		"backup":              {database: ledger.Database{Standbys: []ledger.Standby{{Name: "pg_basebackup", State: "backup"}}}},
		"slow standby":        {database: ledger.Database{Standbys: []ledger.Standby{streaming("async", 2*time.Minute)}}, problem: "standby s1 is 2m0s behind"},
		"no synchronous one":  {database: ledger.Database{SyncNames: "*", Standbys: []ledger.Standby{streaming("async", 0)}}, problem: "no synchronous standby"},
		"hidden":              {database: ledger.Database{SyncNames: "*", Hidden: "GRANT pg_monitor"}, note: "GRANT pg_monitor"},
	} {
		s := describe("1", &description{database: c.database}, c.reports, time.Now())
		for what, got := range map[string][2]string{"problem": {fmt.Sprint(s.Problems), c.problem}, "note": {fmt.Sprint(s.Notes), c.note}} {
			if got[1] == "" && got[0] != "[]" || !strings.Contains(got[0], got[1]) {
				t.Errorf("%s: %ss are %s, want %q", name, what, got[0], got[1])
			}
		}
	}
}
