package chaos_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/test/chaos"
)

// follower passes the log to the checker while it grows, because old entries are pruned in a long run. It has
// its own statements, so that a bug in how the store reads cannot hide from it.
type follower struct {
	cluster *cluster
	conn    *pgx.Conn
	gone    chan struct{}
	err     error // error of the last read; guarded by the cluster's mu
}

const followEvery = 50 * time.Millisecond

// follow starts a follower that stops with ctx. The tables need not exist yet.
func follow(ctx context.Context, c *cluster) *follower {
	f := &follower{cluster: c, gone: make(chan struct{})}
	go f.run(ctx)
	return f
}

func (f *follower) run(ctx context.Context) {
	defer close(f.gone)
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		// The database may be down, and the tables may not exist yet.
		err := f.read(ctx)
		f.cluster.judge(func(*chaos.Checker) { f.err = err })
		select {
		case <-ctx.Done():
			if f.conn != nil {
				f.conn.Close(context.Background())
			}
			return
		case <-tick.C:
		}
	}
}

func (f *follower) read(ctx context.Context) error {
	if f.conn == nil || f.conn.IsClosed() {
		conn, err := pgx.Connect(ctx, f.cluster.pg.URL(f.cluster.database))
		if err != nil {
			return err
		}
		f.conn = conn
	}
	rows, err := f.conn.Query(ctx, "SELECT rev, at, actor, events FROM log WHERE rev > $1 ORDER BY rev", int64(f.rev()))
	if err != nil {
		return err
	}
	entries, err := pgx.CollectRows(rows, scanEntry)
	for _, e := range entries {
		f.cluster.judge(func(k *chaos.Checker) { k.Entry(e) })
	}
	return err
}

func scanEntry(row pgx.CollectableRow) (chaos.Entry, error) {
	var e chaos.Entry
	var text []byte
	var actor mesh.Actor
	err := row.Scan(&e.Rev, &e.At, &text, &e.Raw)
	if err == nil {
		err = json.Unmarshal(text, &actor)
	}
	if err == nil {
		e.Caller, e.Seq, err = chaos.ParseRequestID(actor.RequestID)
	}
	if err == nil {
		e.Events, err = mesh.DecodeEvents(e.Raw)
	}
	return e, err
}

func (f *follower) rev() (rev mesh.Revision) {
	f.cluster.judge(func(k *chaos.Checker) { rev = k.Rev() })
	return rev
}

// head reads the newest revision from the database.
func (f *follower) head(t *testing.T) (rev mesh.Revision) {
	t.Helper()
	f.query(t, "SELECT rev FROM head", &rev)
	return rev
}

func (f *follower) query(t *testing.T, statement string, dest ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), f.cluster.pg.URL(f.cluster.database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), statement).Scan(dest...); err != nil {
		t.Fatal(err)
	}
}

// reach waits until the checker has the log up to rev, and reports rows that were added behind it or are
// missing from the audit log.
func (f *follower) reach(t *testing.T, rev mesh.Revision) {
	t.Helper()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); f.rev() < rev; <-tick.C {
		if time.Now().After(deadline) {
			f.cluster.judge(func(k *chaos.Checker) {
				t.Errorf("the log was followed to %d, its head is %d: %v", k.Rev(), rev, f.err)
			})
			t.FailNow()
		}
	}
	var rows, oldest, newest, audited int64
	f.query(t, "SELECT count(*), coalesce(min(rev), 0), coalesce(max(rev), -1) FROM log", &rows, &oldest, &newest)
	f.query(t, "SELECT count(*) FROM audit", &audited)
	f.cluster.judge(func(k *chaos.Checker) {
		if rows != newest-oldest+1 || mesh.Revision(newest) != rev {
			k.Report(chaos.Log, "%d rows from %d to %d, and the head is %d", rows, oldest, newest, rev)
		}
		if want := int64(k.Tally.Audited); audited != want {
			k.Report(chaos.Log, "the audit has %d rows, and %d events belong there", audited, want)
		}
	})
}
