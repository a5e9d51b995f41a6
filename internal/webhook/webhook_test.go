package webhook_test

import (
	"flag"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/webhook"
)

var down = flag.Duration("down", 2*time.Second, "how long the receiver is down in TestReceiverThatWasDownMissesNothing")

func TestReceiverThatWasDownMissesNothing(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) store.Store{
		"sqlite":   sqlite,
		"postgres": func(t *testing.T) store.Store { return postgres(t, pg.Database(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, open(t))
			w, rec := r.hook()
			rec.answer(http.StatusServiceUnavailable)
			began := time.Now()
			for i := 0; time.Since(began) < *down || i < 4; i++ {
				r.busy(string(rune('a'+i%26))+strings.Repeat("x", i/26), 60)
				<-time.After(*down / 10)
			}
			eventually(t, patience, "the failure is shown", func() bool { return r.webhook(w.ID).Progress.Failures > 0 })
			if p := r.webhook(w.ID).Progress; p.LastAnswer != "503 Service Unavailable" || p.LastFailure == 0 || p.LastSuccess != 0 {
				t.Errorf("shown is %+v", p)
			}
			rec.answer(http.StatusOK)
			want := r.wanted(w)
			eventually(t, *down+patience, "all events came", func() bool { got, _ := rec.has(); return len(got) >= len(want) })
			got, again := rec.has()
			if diff := cmp.Diff(want, got); diff != "" || again != 0 {
				t.Errorf("%d came again; (-want +got):\n%s", again, diff)
			}
			eventually(t, patience, "the success is noted", func() bool {
				p := r.webhook(w.ID).Progress
				return p.Failures == 0 && p.LastSuccess != 0 && p.Replica == ""
			})
			t.Logf("down for %v: %d events in order after %d refusals", time.Since(began).Round(time.Second), len(got), rec.requests()-len(got))
		})
	}
}

func TestAnotherReplicaTakesOver(t *testing.T) {
	database := pg.Database(t)
	a, b := start(t, postgres(t, database)), start(t, postgres(t, database))
	w, rec := a.hook()
	a.busy("first", 40)
	holder, other := a, b
	eventually(t, patience, "a replica delivers", func() bool { return a.webhook(w.ID).Progress.Replica != "" })
	if a.webhook(w.ID).Progress.Replica == string(b.ledger.Cluster().Self().ID) {
		holder, other = b, a
	}
	rec.answer(http.StatusInternalServerError) // so that the holder keeps the lease
	other.user("waits")
	eventually(t, patience, "the holder meets the failure", func() bool { return other.webhook(w.ID).Progress.Failures > 0 })
	holder.kill()
	rec.answer(http.StatusNoContent)
	killed := time.Now()
	other.busy("second", 40)
	want := other.wanted(w)
	eventually(t, patience, "the other delivers", func() bool { got, _ := rec.has(); return len(got) >= len(want) })
	got, again := rec.has()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	t.Logf("taken over within %v, %d of %d events came again", time.Since(killed).Round(time.Second), again, len(want))
}

func TestSlowReceiverHurtsNoOther(t *testing.T) {
	r := start(t, sqlite(t))
	_, slow := r.hook()
	w, quick := r.hook()
	slow.mu.Lock()
	slow.held = make(chan struct{})
	slow.mu.Unlock()
	defer close(slow.held)
	r.busy("u", 40)
	want := r.wanted(w)
	eventually(t, patience, "the quick one has all", func() bool { got, _ := quick.has(); return len(got) == len(want) })
	if got, _ := slow.has(); len(got) > 0 {
		t.Errorf("the slow one has %d", len(got))
	}
}

func TestEventsAreGivenUpAndSentAgain(t *testing.T) {
	r := start(t, sqlite(t), func(c *webhook.Config) { c.Patience = time.Second })
	w, rec := r.hook("user.*")
	rec.answer(http.StatusBadGateway)
	for _, name := range []string{"anna", "bert", "carl"} {
		r.user(name)
	}
	var letters []mesh.DeadLetter
	eventually(t, patience, "all are given up", func() bool {
		var err error
		letters, _, err = r.Webhooks.DeadLetters(t.Context(), w.ID, 0, 10)
		return err == nil && len(letters) == 3
	})
	first := letters[2]
	if first.Event != "user.created" || first.Attempts < 2 || first.Answer != "502 Bad Gateway" || letters[0].Attempts != 1 {
		t.Errorf("letters %+v", letters)
	}
	if answer, err := r.Webhooks.Redeliver(t.Context(), admin, w.ID, first.ID); err != nil || answer.Delivered || answer.Status != http.StatusBadGateway || answer.Reply != "" {
		t.Errorf("%+v (%v)", answer, err)
	}
	rec.answer(http.StatusAccepted)
	if answer, err := r.Webhooks.Redeliver(t.Context(), admin, w.ID, first.ID); err != nil || !answer.Delivered || answer.Status != http.StatusAccepted {
		t.Errorf("%+v (%v)", answer, err)
	}
	if got, _ := rec.has(); !slices.Equal(got, []string{history.Position{Rev: first.Rev, Index: first.Index}.String()}) {
		t.Errorf("came %v, want %+v", got, first)
	}
	if left, _, err := r.Webhooks.DeadLetters(t.Context(), w.ID, 0, 10); err != nil || len(left) != 2 {
		t.Errorf("%d are left (%v)", len(left), err)
	}
	if n := r.deliveries("dead"); n != 3 {
		t.Errorf("%v were counted as dead", n)
	}
	r.user("dora")
	eventually(t, patience, "the next one comes", func() bool { got, _ := rec.has(); return len(got) == 2 })
}

func TestOldEventsOutliveOneFailure(t *testing.T) {
	r := start(t, sqlite(t), func(c *webhook.Config) { c.Patience = time.Second })
	w, rec := r.hook("user.*")
	rec.mu.Lock()
	rec.slow = 1500 * time.Millisecond // so that later events become older than patience
	rec.mu.Unlock()
	for _, name := range []string{"anna", "bert", "carl", "dora"} {
		r.user(name)
	}
	eventually(t, patience, "the first one came", func() bool { return rec.requests() == 1 })
	rec.answer(http.StatusServiceUnavailable)
	rec.mu.Lock()
	rec.slow = 0
	rec.mu.Unlock()
	eventually(t, patience, "the second one is refused", func() bool { return rec.requests() > 1 })
	rec.answer(http.StatusOK)
	want := r.wanted(w)
	eventually(t, patience, "all came", func() bool { got, _ := rec.has(); return len(got) == len(want) })
	if letters, _, err := r.Webhooks.DeadLetters(t.Context(), w.ID, 0, 10); err != nil || len(letters) != 0 {
		t.Errorf("given up were %+v (%v)", letters, err)
	}
}

func TestReceiverThatIsGoneDisablesItsWebhook(t *testing.T) {
	r := start(t, sqlite(t))
	w, rec := r.hook()
	rec.answer(http.StatusGone)
	r.user("anna")
	eventually(t, patience, "it is disabled", func() bool { return r.webhook(w.ID).Disabled })
	rows, _, err := r.History.Audit(t.Context(), history.AuditQuery{Kinds: []string{"webhook"}, Verbs: []string{"changed"}})
	if err != nil || len(rows) != 1 || rows[0].Actor.Kind != mesh.ActorServer || !strings.Contains(rows[0].Actor.Reason, "410 Gone") {
		t.Errorf("audit %+v (%v)", rows, err)
	}
	rec.answer(http.StatusOK)
	r.user("bert")
	if _, err := r.Webhooks.Change(t.Context(), admin, w.ID, control.WebhookChange{Enabled: new(true)}); err != nil {
		t.Fatal(err)
	}
	r.user("carl")
	eventually(t, patience, "what comes after it is enabled", func() bool { got, _ := rec.has(); return len(got) == 1 })
	got, _ := rec.has()
	if all := r.wanted(w); got[0] != all[len(all)-1] {
		t.Errorf("came %v of %v", got, all)
	}
}

func TestReceiverLearnsOfPrunedEvents(t *testing.T) {
	database := pg.Database(t)
	a := start(t, postgres(t, database))
	w, rec := a.hook()
	rec.answer(http.StatusServiceUnavailable)
	a.user("anna")
	eventually(t, patience, "the receiver was asked", func() bool { return rec.requests() > 0 })
	a.kill()
	st := postgres(t, database)
	if n, err := st.(history.Store).Forget(t.Context(), -time.Hour, -time.Hour); n == 0 || err != nil {
		t.Fatalf("forgot %d (%v)", n, err)
	}
	rec.answer(http.StatusOK)
	b := start(t, st)
	eventually(t, patience, "the gap is told", func() bool { got, _ := rec.has(); return len(got) == 1 })
	b.user("bert")
	eventually(t, patience, "the next event comes", func() bool { got, _ := rec.has(); return len(got) == 2 })
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if diff := cmp.Diff([]string{control.EventReset, "user.created"}, rec.names); diff != "" {
		t.Errorf("webhook %d (-want +got):\n%s", w.ID, diff)
	}
}

// After a failover that lost changes, receivers that knew them must reload, whatever they
// subscribe to.
func TestReceiverLearnsOfLostChanges(t *testing.T) {
	r := start(t, sqlite(t))
	_, rec := r.hook()
	r.user("anna")
	eventually(t, patience, "an event comes", func() bool { got, _ := rec.has(); return len(got) == 1 })
	_, err := r.ledger.Commit(t.Context(), mesh.Actor{Kind: mesh.ActorServer}, func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
		return []mesh.Event{mesh.NewEpoch(w.Snapshot, w.Rev+5, w.Counters, 2, mesh.Loss{At: now, From: w.Rev + 1, To: w.Rev + 5})}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.user("bert")
	eventually(t, patience, "the next events come", func() bool { got, _ := rec.has(); return len(got) == 3 })
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if diff := cmp.Diff([]string{"user.created", control.EventReset, "user.created"}, rec.names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
