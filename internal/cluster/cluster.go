// Package cluster describes all replicas and their database for administrators: who reports, who is missing, and what is wrong.
// It decides nothing that affects clients, and knows nothing about HTTP.
//
// Definitions. A run is one process of a replica, from its start to its end; it has a random ID. A replica is known by its name,
// which it keeps across runs.
package cluster

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/periodic"
)

const (
	// describeEvery is how often the database is described. Heartbeats report living replicas more often.
	describeEvery = 5 * time.Second
	// A replica or a standby that is further behind is a problem.
	maxLag, maxStandbyLag = 5 * time.Second, time.Minute
)

// The states of a replica.
const (
	Active   = "active"
	Draining = "draining" // it sends its nodes to the others, before maintenance
	Stopped  = "stopped"  // it was stopped on purpose within the last hour
	Missing  = "missing"  // it no longer reports, without having been stopped
)

// Replica is the last run of a replica.
type Replica struct {
	ledger.Report
	Name  string
	State string
	// Started and Reported are when the run started and when it last reported, by this machine's clock. Started is
	// zero if an earlier version did not report it.
	Started, Reported time.Time
}

// State is what is known of all replicas and the database.
type State struct {
	// Self is the ID of the replica that returns it.
	Self     string
	Replicas []Replica // by name
	Database ledger.Database
	// Problems need attention. Notes do not.
	Problems, Notes []string
}

// Config configures a Watch. All fields are required.
type Config struct {
	Cluster *ledger.Cluster
	Engine  string // of the database, for the time before it is described
	// Describe describes the database, and returns the last report of every run of the last hour.
	Describe func(context.Context) (ledger.Database, []ledger.Report, error)
	Log      *slog.Logger
}

// Watch follows the state of all replicas and the database.
type Watch struct {
	config Config
	seen   atomic.Pointer[description]
}

// description is what the database returned.
type description struct {
	database ledger.Database
	runs     []ledger.Report
	at       time.Time
}

// New returns a Watch. It knows nothing of the database before Run.
func New(c Config) *Watch { return &Watch{config: c} }

// Run describes the database every few seconds until ctx ends. It keeps the last description while the database is away:
// /health says that it is.
func (w *Watch) Run(ctx context.Context) error {
	look := func() {
		at := time.Now()
		d, runs, err := w.config.Describe(ctx)
		if err != nil {
			w.config.Log.Debug("cannot describe the database", "error", err)
			return
		}
		w.seen.Store(&description{d, runs, at})
	}
	look()
	return periodic.Run(ctx, describeEvery, look)
}

// State returns what was last seen. It does no I/O.
func (w *Watch) State() State {
	reports, at := w.config.Cluster.Reports()
	seen := w.seen.Load()
	if seen == nil {
		seen = &description{database: ledger.Database{Engine: w.config.Engine}}
	}
	return describe(string(w.config.Cluster.Self().ID), seen, reports, at)
}

// describe combines the reports of the last heartbeat with the description of the database, which is older but also has the
// runs of the last hour.
func describe(self string, seen *description, reports []ledger.Report, at time.Time) State {
	s := State{Self: self, Database: seen.database}
	runs := map[string]Replica{}
	for _, r := range seen.runs {
		runs[string(r.ID)] = replica(r, seen.at)
	}
	for _, r := range reports {
		runs[string(r.ID)] = replica(r, at)
	}
	for _, r := range runs {
		if !superseded(r, runs) {
			s.Replicas = append(s.Replicas, r)
		}
	}
	slices.SortFunc(s.Replicas, func(a, b Replica) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	s.judgeReplicas()
	s.judgeDatabase()
	return s
}

// replica describes a report that was received at a moment.
func replica(r ledger.Report, at time.Time) Replica {
	out := Replica{Report: r, Name: cmp.Or(r.Name, string(r.ID)), Reported: at.Add(-r.Age), State: Active}
	if r.Uptime > 0 {
		out.Started = out.Reported.Add(-r.Uptime)
	}
	switch {
	case r.Stopped:
		out.State = Stopped
	case !ledger.Alive(r):
		out.State = Missing
	case r.Draining:
		out.State = Draining
	}
	return out
}

// superseded reports whether a run has ended, and its replica was started again. Two replicas with the same name by mistake do
// not supersede each other: the one that is left started before the other ended.
func superseded(r Replica, runs map[string]Replica) bool {
	if r.State != Stopped && r.State != Missing {
		return false
	}
	for _, other := range runs {
		if other.ID != r.ID && other.Name == r.Name && other.Started.After(r.Reported) {
			return true
		}
	}
	return false
}

func (s *State) problem(format string, args ...any) {
	s.Problems = append(s.Problems, fmt.Sprintf(format, args...))
}

func (s *State) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

func (s *State) judgeReplicas() {
	names, versions, hosts := map[string]int{}, map[string]bool{}, map[string]bool{}
	for _, r := range s.Replicas {
		switch {
		case r.State == Missing:
			s.problem("replica %s has not reported since %s; start it again, or look at its log. After an hour it is no longer listed", r.Name, r.Reported.UTC().Format(time.RFC3339))
			continue
		case r.State == Stopped:
			continue
		case r.Lag > maxLag:
			s.problem("replica %s is %s behind the log of the database; see its log", r.Name, r.Lag.Round(time.Second))
		}
		names[r.Name]++
		versions[r.Version] = true
		if r.Database != "" {
			hosts[r.Database] = true
		}
	}
	for _, name := range sorted(names) {
		if names[name] > 1 {
			s.note("%d replicas are named %s; set replica_name to tell them apart", names[name], name)
		}
	}
	if len(versions) > 1 {
		s.note("the replicas run different versions, as during an upgrade")
	}
	if len(hosts) > 1 {
		s.problem("the replicas are connected to different database servers: %v; only one of them can be the primary", sorted(hosts))
	}
}

func (s *State) judgeDatabase() {
	d := s.Database
	if d.Standby {
		s.problem("the database server %s is a standby and accepts no changes", d.Host)
	}
	confirming := 0
	for _, b := range d.Standbys {
		if b.Sync == "sync" || b.Sync == "quorum" {
			confirming++
		}
		switch {
		case b.State == "backup": // somebody copies the database
		case b.State != "streaming":
			s.problem("standby %s does not have all changes yet: its state is %s", standbyName(b), cmp.Or(b.State, "unknown"))
		case b.Lag > maxStandbyLag:
			s.problem("standby %s is %s behind", standbyName(b), b.Lag.Round(time.Second))
		}
	}
	if d.Hidden != "" {
		s.note("%s", d.Hidden)
	} else if d.SyncNames != "" && confirming == 0 {
		s.problem("no synchronous standby is connected, but synchronous_standby_names is %q: changes wait until one is", d.SyncNames)
	}
}

func standbyName(b ledger.Standby) string { return cmp.Or(b.Name, b.Addr, "without a name") }

func sorted[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
