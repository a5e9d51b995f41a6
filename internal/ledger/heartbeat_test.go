package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// weak is a store whose heartbeats and reads can be made to fail.
type weak struct {
	store.Store
	others int          // number of other replicas with heartbeats
	ahead  atomic.Int64 // revision of the other replicas
	mute   atomic.Bool
	unread atomic.Bool
}

func (w *weak) Beat(_ context.Context, self store.Report) ([]store.Report, error) {
	if w.mute.Load() {
		return nil, fmt.Errorf("%w: no space left on device", store.ErrUnavailable)
	}
	reports := []store.Report{self}
	for i := range w.others {
		reports = append(reports, store.Report{ID: store.ReplicaID(fmt.Sprint("other", i)), Rev: mesh.Revision(w.ahead.Load())})
	}
	return reports, nil
}

func (w *weak) Tail(ctx context.Context, after store.Point) ([]store.Entry, error) {
	if w.unread.Load() {
		return nil, errors.New("connection refused")
	}
	return w.Store.Tail(ctx, after)
}

// pass advances the time in a synctest bubble and waits for all goroutines to react.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestReplicaJudgesNobodyUntilItHasBeatenThreeTimes(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		st := &weak{Store: openSQLite(t)}
		l := run(t, ledger.Config{Store: st})
		steadyAfter := func(d time.Duration, want bool) {
			t.Helper()
			pass(d)
			if p := l.Cluster().Heartbeats(); p.Steady(time.Now()) != want {
				t.Fatalf("steady is not %v: %+v", want, p)
			}
		}
		steadyAfter(3*time.Second, false)
		steadyAfter(2*time.Second, true)
		steadyAfter(time.Hour, true)
		st.mute.Store(true)
		steadyAfter(3*time.Second, false)
		st.mute.Store(false)
		steadyAfter(5*time.Second, false)
		steadyAfter(2*time.Second, true)
	})
}

func TestPulseThatIsOldIsNotSteady(t *testing.T) {
	now := time.Now()
	p := ledger.Heartbeats{Last: now, Successes: 100}
	if !p.Steady(now.Add(6*time.Second)) || p.Steady(now.Add(7*time.Second)) {
		t.Error("a replica that was stopped judges others by what it knew before")
	}
}

func TestReplicaIsCutOffOnlyWhenOthersCanServe(t *testing.T) {
	for name, c := range map[string]struct {
		others       int
		mute, unread bool
		want         bool
	}{
		"database out of reach":        {others: 1, mute: true, unread: true, want: true},
		"nobody else to serve":         {others: 0, mute: true, unread: true},
		"disk full, still readable":    {others: 1, mute: true},
		"beats although reading fails": {others: 1, unread: true},
	} {
		t.Run(name, func(t *testing.T) {
			waittest.Bubble(t, func(t *testing.T) {
				st := &weak{Store: openSQLite(t), others: c.others}
				l := run(t, ledger.Config{Store: st})
				pass(time.Minute)
				st.mute.Store(c.mute)
				st.unread.Store(c.unread)
				pass(55 * time.Second)
				if p := l.Cluster().Heartbeats(); p.CutOff(time.Now()) {
					t.Errorf("cut off too early: %+v", p)
				}
				pass(10 * time.Second)
				if p := l.Cluster().Heartbeats(); p.CutOff(time.Now()) != c.want {
					t.Errorf("cut off is not %v: %+v", c.want, p)
				}
				st.mute.Store(false)
				pass(3 * time.Second)
				if p := l.Cluster().Heartbeats(); p.CutOff(time.Now()) {
					t.Errorf("still cut off after a beat: %+v", p)
				}
			})
		})
	}
}

func TestReportsCarryWhatOtherPartsAdd(t *testing.T) {
	want := store.WaitingLogin{
		Code: "ABCD2345", MachineKey: meshgen.MachineKey(1), NodeKey: meshgen.NodeKey(1), Hostname: "läptop", OS: "linux", Addr: "192.0.2.1", Tags: []string{"tag:web"}, Since: meshgen.Start,
	}
	db := pg.Database(t)
	run(t, ledger.Config{Store: openPostgres(t, pg, db), Self: store.Report{ID: "a"}, Fill: func(r *store.Report) {
		r.Held, r.Logins = 7, []store.WaitingLogin{want}
	}})
	reader := run(t, ledger.Config{Store: openPostgres(t, pg, db), Self: store.Report{ID: "b"}})
	eventually(t, "the report of the other replica arrives whole", func() bool {
		for _, r := range reader.Cluster().Replicas() {
			if r.ID == "a" {
				return r.Held == 7 && reflect.DeepEqual(r.Logins, []store.WaitingLogin{want})
			}
		}
		return false
	})
}
