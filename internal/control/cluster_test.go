package control_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/presence"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/sweep"
)

// cluster is one database for several replicas in one synctest bubble. SQLite supports
// only one replica, so the heartbeats are kept in memory.
type cluster struct {
	store.Store
	recordsFile string // of the replicas that start from now on

	mu    sync.Mutex
	beats map[store.ReplicaID]beat // guarded by mu
	away  map[store.ReplicaID]bool // guarded by mu; replicas that cannot reach the database
	tries int                      // guarded by mu; number of attempted transactions
	while func()                   // guarded by mu; called once, during the next transaction
	lose  bool                     // guarded by mu; if set, the next commit succeeds but returns no result, and then the connection is lost
}

type beat struct {
	at     time.Time
	report store.Report
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	st, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "db"), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return &cluster{Store: st, beats: map[store.ReplicaID]beat{}, away: map[store.ReplicaID]bool{}}
}

// setAway disconnects replicas from the database, or reconnects them.
func (c *cluster) setAway(away bool, replicas ...*replica) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range replicas {
		c.away[r.id] = away
	}
}

// view is the database as seen by one replica.
type view struct {
	*cluster
	id store.ReplicaID
}

func (v view) reachable() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.away[v.id] {
		return fmt.Errorf("%w: connection refused", store.ErrUnavailable)
	}
	return nil
}

func (v view) Beat(_ context.Context, self store.Report) ([]store.Report, error) {
	if err := v.reachable(); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.beats[self.ID] = beat{time.Now(), self}
	var reports []store.Report
	for _, id := range slices.Sorted(maps.Keys(v.beats)) {
		r := v.beats[id].report
		if r.Age = time.Since(v.beats[id].at); r.Age < time.Minute {
			reports = append(reports, r)
		}
	}
	return reports, nil
}

func (v view) Tail(ctx context.Context, after store.Point) ([]store.Entry, error) {
	if err := v.reachable(); err != nil {
		return nil, err
	}
	return v.Store.Tail(ctx, after)
}

func (v view) Lock(ctx context.Context, after mesh.Revision, id store.BatchID, fn func(store.Tx) error) error {
	v.mu.Lock()
	lose, while := v.lose, v.while
	v.lose, v.while = false, nil
	v.tries++
	v.mu.Unlock()
	if while != nil {
		while()
	}
	if err := v.reachable(); err != nil {
		return err
	}
	err := v.Store.Lock(ctx, after, id, fn)
	if lose && err == nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.away[v.id] = true
		return store.ErrUnknownOutcome
	}
	return err
}

// replica is one process: its ledger, presence, sweeper and use cases.
type replica struct {
	*control.Service
	id       store.ReplicaID
	ledger   *ledger.Ledger
	presence *presence.Tracker
	registry *prometheus.Registry
	kill     func()
	hangup   chan os.Signal
}

const inactivity = 3 * time.Minute

// start runs a replica until it is killed or the test ends. hash is the hash of its
// configuration.
func (c *cluster) start(t *testing.T, id store.ReplicaID, hash string) *replica {
	t.Helper()
	return c.startWith(t, id, hash, "")
}

// startWith is like start, with a policy file if one is given.
func (c *cluster) startWith(t *testing.T, id store.ReplicaID, hash, policyFile string) *replica {
	t.Helper()
	r := &replica{id: id, registry: prometheus.NewRegistry(), hangup: make(chan os.Signal)}
	st, log := view{c, id}, slog.New(slog.DiscardHandler)
	var err error
	if r.ledger, err = ledger.Open(t.Context(), ledger.Config{
		Store: st, Log: log, Registerer: r.registry, Self: store.Report{ID: id, ConfigHash: hash},
		History: c.Store.(history.Store),
		Fill: func(report *store.Report) {
			report.SSH, report.PolicyHash, report.RecordsHash = r.SSH.Waiting(), r.PolicyFile.Hash(), r.RecordsFile.Hash()
			report.Facts, report.Uses, report.SessionUses = r.Observations.Unsaved(store.MaxSeen)
		},
	}); err != nil {
		t.Fatal(err)
	}
	r.Service = control.New(control.Config{Ledger: r.ledger, History: c.Store.(history.Store), Log: log, Registerer: r.registry, PolicyFile: policyFile, RecordsFile: c.recordsFile})
	r.presence = presence.New(presence.Config{Ledger: r.ledger, Log: log, Registerer: r.registry})
	sweeper := sweep.New(sweep.Config{
		Ledger: r.ledger, Log: log, Registerer: r.registry, Interval: 10 * time.Second, Inactivity: inactivity,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	loops := []func(context.Context) error{r.ledger.Run, r.ledger.SendHeartbeats, r.presence.Run, sweeper.Run, r.PolicyWatch.RevertUnconfirmed, r.PolicyWatch.RunTests, r.RecordsFile.Follow, r.Observations.Save}
	if policyFile != "" {
		loops = append(loops, func(ctx context.Context) error {
			return errors.Join(r.PolicyFile.Load(ctx), r.PolicyFile.Follow(ctx, r.hangup))
		})
	}
	for _, loop := range loops {
		wg.Go(func() {
			if err := loop(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	r.kill = func() { cancel(); wg.Wait() }
	t.Cleanup(r.kill)
	return r
}

// pass advances the time in a synctest bubble and waits for all goroutines to react.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (r *replica) commit(t *testing.T, evs ...mesh.Event) {
	t.Helper()
	if _, err := r.ledger.Commit(t.Context(), admin, func(*policy.World, mesh.Time) ([]mesh.Event, error) { return evs, nil }); err != nil {
		t.Fatal(err)
	}
}

// addNodes adds nodes 1 to n.
func (r *replica) addNodes(t *testing.T, n mesh.NodeID) {
	t.Helper()
	evs := []mesh.Event{mesh.UserPut{User: meshgen.User(1)}}
	now := mesh.TimeOf(time.Now())
	for id := mesh.NodeID(1); id <= n; id++ {
		node := meshgen.Node(id, 1)
		node.CreatedAt, node.UpdatedAt = now, now
		evs = append(evs, mesh.NodePut{Node: node})
	}
	r.commit(t, evs...)
}

// shown returns where the world shows a node: replica and stream, or offline.
func (r *replica) shown(id mesh.NodeID) string {
	n, ok := r.ledger.World().Nodes.Get(id)
	switch {
	case !ok:
		return "gone"
	case !n.Presence.Online:
		return "offline"
	}
	return fmt.Sprint(n.Presence.Replica, n.Presence.Conn)
}

func (r *replica) want(t *testing.T, id mesh.NodeID, where string) {
	t.Helper()
	if got := r.shown(id); got != where {
		t.Fatalf("node %d is shown as %s, want %s", id, got, where)
	}
}

// metric returns the value of a gauge or counter, for one label value if it has any.
func (r *replica) metric(t *testing.T, name, label string) float64 {
	t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == name && (label == "" || m.Label[0].GetValue() == label) {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("there is no metric %s %s", name, label)
	return 0
}

// count returns how many events of a kind have been committed, and by how many commands.
func (c *cluster) count(t *testing.T, kind mesh.Kind) (events, commands int) {
	t.Helper()
	var after mesh.Revision
	for {
		entries, err := c.Tail(t.Context(), store.Point{Rev: after})
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == 0 {
			return events, commands
		}
		for _, e := range entries {
			n := 0
			for _, ev := range e.Events {
				if ev.Kind() == kind {
					n++
				}
			}
			events += n
			commands += min(n, 1)
			after = e.Rev
		}
	}
}
