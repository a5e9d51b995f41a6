package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/test/chaos"
)

const (
	retryEvery  = 100 * time.Millisecond // after the database did not respond
	lookEvery   = 50 * time.Millisecond
	showEvery   = 20 * time.Millisecond
	settleLimit = 20 * time.Second
)

func main() {
	r := replica{registry: prometheus.NewRegistry(), orders: make(chan string, 4)}
	db := database{postgres: sqlstore.PostgresConfig{SSLMode: "disable", MaxOpenConns: 4}}
	flag.StringVar(&r.name, "replica", "", "name of this process, never used before")
	flag.IntVar(&r.workers, "workers", 8, "how many commands are under way at once")
	flag.StringVar(&db.sqlite, "sqlite", "", "file of a SQLite database, instead of PostgreSQL")
	flag.StringVar(&db.postgres.Host, "host", "127.0.0.1", "")
	flag.IntVar(&db.postgres.Port, "port", 5432, "")
	flag.StringVar(&db.postgres.User, "user", "", "")
	flag.StringVar(&db.postgres.Name, "database", "", "")
	flag.Parse()
	if os.Getenv(chaos.FaultVariable) == chaos.FaultNoSync {
		if err := ignoreSyncs(); err != nil {
			fmt.Fprintln(os.Stderr, "replica:", err)
			os.Exit(1)
		}
	}
	if err := r.run(context.Background(), db, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "replica:", err)
		os.Exit(1)
	}
}

// database is a file, or PostgreSQL.
type database struct {
	sqlite   string
	postgres sqlstore.PostgresConfig
}

// tables are a store with the history of the network.
type tables interface {
	store.Store
	history.Store
}

func (d database) open(ctx context.Context) (tables, error) {
	if d.sqlite != "" {
		return sqlstore.OpenSQLite(ctx, d.sqlite, prometheus.NewRegistry())
	}
	return sqlstore.OpenPostgres(ctx, d.postgres, prometheus.NewRegistry())
}

// replica is the process.
type replica struct {
	name     string
	workers  int
	registry *prometheus.Registry
	ledger   *ledger.Ledger
	service  *control.Service
	keys     keyRing
	orders   chan string
}

// run works until the input ends.
func (r *replica) run(ctx context.Context, db database, input io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { r.listen(input); cancel() }()

	st, err := r.open(ctx, db)
	if err != nil || ctx.Err() != nil {
		return err
	}
	defer st.Close()
	var loops, workers sync.WaitGroup
	defer loops.Wait()
	defer cancel()
	for _, loop := range []func(context.Context) error{r.ledger.Run, r.ledger.SendHeartbeats, st.Watch, r.show, r.watchHeartbeats} {
		loops.Go(func() { _ = loop(ctx) }) // ends with ctx and without an error
	}
	working, stop := context.WithCancel(ctx)
	defer workers.Wait()
	defer stop()
	for n := range r.workers {
		workers.Go(func() { newWorker(r, n).run(working) })
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case order := <-r.orders:
			if order == chaos.OrderStop {
				stop()
				workers.Wait()
				say(chaos.Message{Quiet: true})
			} else if err := r.settle(ctx, order); err != nil {
				return err
			}
		}
	}
}

// listen handles orders until the input ends.
func (r *replica) listen(input io.Reader) {
	for lines := bufio.NewScanner(input); lines.Scan(); {
		if key, ok := strings.CutPrefix(lines.Text(), chaos.OrderKey+" "); ok {
			r.keys.add(key)
		} else {
			r.orders <- lines.Text()
		}
	}
}

// open retries until it succeeds, because the database may be down.
func (r *replica) open(ctx context.Context, db database) (store.Store, error) {
	for {
		st, err := r.try(ctx, db)
		if !errors.Is(err, store.ErrUnavailable) {
			return st, err
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(retryEvery):
		}
	}
}

func (r *replica) try(ctx context.Context, db database) (store.Store, error) {
	opened, err := db.open(ctx)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	var st store.Store = faulty{opened, os.Getenv(chaos.FaultVariable)}
	r.ledger, err = ledger.Open(ctx, ledger.Config{
		Store: st, Log: log, Registerer: r.registry, Describe: describe, Self: store.Report{ID: store.ReplicaID(r.name)},
	})
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	r.service = control.New(control.Config{
		Ledger: r.ledger, History: opened, Log: log, Registerer: r.registry,
		// The range is small enough that addresses are reused often.
		PrefixV4: netip.MustParsePrefix("100.64.0.0/22"), PrefixV6: netip.MustParsePrefix("fd7a:115c:a1e0::/118"),
	})
	return st, nil
}

// describe returns an audit row for each event that needs one: no two events of a command are about the same
// object, and each changes its object.
func describe(s *mesh.Snapshot, _ mesh.Time, e mesh.Event) (kind, id string, shape []byte) {
	if !chaos.Audited(e) {
		return "", "", nil
	}
	text, _ := mesh.EncodeEvents([]mesh.Event{e}) // cannot fail
	return string(e.Kind()), fmt.Sprintf("%x", sha256.Sum256(text)), fmt.Append(nil, s.Rev)
}

// settle waits until the heartbeats of all replicas have a digest of the same revision, then reports the state
// of this one. If that takes too long, it reports anyway, and the report shows how many replicas have one.
func (r *replica) settle(ctx context.Context, order string) error {
	var rev mesh.Revision
	var replicas int
	if _, err := fmt.Sscanf(order, chaos.OrderSettle+" %d %d", &rev, &replicas); err != nil {
		return fmt.Errorf("order %q: %w", order, err)
	}
	limit := time.After(settleLimit)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for r.met(rev) < replicas {
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
			return nil
		case <-limit:
		}
		break
	}
	say(chaos.Message{Final: &chaos.Final{View: r.view(), Mismatches: r.mismatches(), Compared: r.met(rev)}})
	return nil
}

// met returns how many live replicas reported a digest of rev.
func (r *replica) met(rev mesh.Revision) int {
	n := 0
	for _, report := range r.ledger.Cluster().Replicas() {
		if report.DigestRev == rev {
			n++
		}
	}
	return n
}

func (r *replica) view() chaos.View {
	s := r.ledger.World().Snapshot
	return chaos.View{Replica: r.name, Rev: s.Rev, Digest: s.Digest()}
}

// show reports the state of this replica periodically, because most faults disappear when the affected
// objects change again.
func (r *replica) show(ctx context.Context) error {
	tick := time.NewTicker(showEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		v := r.view()
		say(chaos.Message{View: &v})
	}
}

// watchHeartbeats reports at once if a heartbeat finds a difference, because the process may be killed before it
// is asked.
func (r *replica) watchHeartbeats(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for seen := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if n := r.mismatches(); n > seen {
			seen = n
			found(chaos.Digest, "a heartbeat of replica %s found a difference", r.name)
		}
	}
}

func (r *replica) mismatches() int {
	families, err := r.registry.Gather()
	if err != nil {
		found(chaos.Error, "gathering the metrics of replica %s: %v", r.name, err)
	}
	for _, f := range families {
		if f.GetName() == "mesh_ledger_digest_mismatches_total" {
			return int(f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	found(chaos.Error, "replica %s counts no digest mismatches", r.name)
	return 0
}

func found(sort chaos.Sort, format string, args ...any) {
	say(chaos.Message{Finding: &chaos.Finding{Sort: sort, Text: fmt.Sprintf(format, args...)}})
}

// say writes a line with one call, which the kernel does atomically for lines of this size: everything that
// was written before a kill can be read.
func say(m chaos.Message) {
	line, err := json.Marshal(m)
	if err == nil {
		_, err = os.Stdout.Write(append(line, '\n'))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "replica:", err)
		os.Exit(1)
	}
}
