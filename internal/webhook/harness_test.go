package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/api"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
	"github.com/fairlead-mesh/fairlead/internal/webhook"
)

// pg is for tests with several replicas.
var pg *pgtest.Server

func TestMain(m *testing.M) {
	os.Exit(pgtest.Main(m, pgtest.Options{}, func(s *pgtest.Server) { pg = s }))
}

// secrets are shared by all replicas of a server.
var secrets = identity.NewWebhookSecrets(identity.NewServerSecrets(identity.NewServerSecret(1)))

var admin = mesh.Actor{Kind: mesh.ActorLocal, ID: "1000", Name: "ada"}

// replica is one server process.
type replica struct {
	*control.Service
	t       *testing.T
	ledger  *ledger.Ledger
	courier *webhook.Sender
	log     *journal
	metrics *prometheus.Registry
	kill    func()
}

// journal collects log lines.
type journal struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func sqlite(t *testing.T) store.Store {
	t.Helper()
	st, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "db"), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func postgres(t *testing.T, database string) store.Store {
	t.Helper()
	st, err := sqlstore.OpenPostgres(t.Context(), sqlstore.PostgresConfig{Host: pg.Host, Port: pg.Port, Name: database, User: pg.User, SSLMode: "disable"}, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// start runs a replica until it is killed or the test ends. A kill stops the ledger first,
// as when a process dies: nothing more is committed.
func start(t *testing.T, st store.Store, changes ...func(*webhook.Config)) *replica {
	t.Helper()
	r := &replica{t: t, log: &journal{}, metrics: prometheus.NewRegistry()}
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	r.ledger, err = ledger.Open(t.Context(), ledger.Config{Store: st, Log: log, Registerer: r.metrics, Describe: api.Describe, History: st.(history.Store)})
	if err != nil {
		t.Fatal(err)
	}
	r.Service = control.New(control.Config{
		Ledger: r.ledger, History: st.(history.Store), Log: log, Registerer: r.metrics,
		PrefixV4: netip.MustParsePrefix("100.64.0.0/10"), PrefixV6: netip.MustParsePrefix("fd7a:115c:a1e0::/48"),
		Webhooks: secrets, LocalWebhooks: true, Deliver: func(ctx context.Context, w *mesh.Webhook, row history.AuditRow) control.WebhookAnswer {
			return r.courier.Deliver(ctx, w, row)
		},
	})
	c := webhook.Config{
		Ledger: r.ledger, Webhooks: r.Webhooks, History: r.History, Log: log, Registerer: r.metrics, Secret: secrets.Secret, Encode: api.EncodeWebhookEvent,
		AllowLocal: true, Retry: 50 * time.Millisecond,
	}
	for _, change := range changes {
		change(&c)
	}
	r.courier = webhook.New(c)
	base, endBase := context.WithCancel(context.Background())
	ctx, end := context.WithCancel(context.Background())
	var ledgers, loops sync.WaitGroup
	for _, loop := range []func(context.Context) error{r.ledger.Run, r.ledger.SendHeartbeats, st.Watch} {
		ledgers.Go(func() { _ = loop(base) })
	}
	loops.Go(func() { _ = r.courier.Run(ctx) })
	r.kill = sync.OnceFunc(func() {
		endBase()
		ledgers.Wait()
		end()
		loops.Wait()
		st.Close()
	})
	t.Cleanup(r.kill)
	return r
}

// hook creates a webhook and its receiver.
func (r *replica) hook(events ...string) (*mesh.Webhook, *receiver) {
	r.t.Helper()
	rec := &receiver{t: r.t, status: http.StatusNoContent}
	rec.server = httptest.NewServer(rec)
	r.t.Cleanup(rec.server.Close)
	w, secret, err := r.Webhooks.Create(r.t.Context(), admin, control.WebhookChange{URL: new(rec.server.URL + "/path-with-token"), Events: &events})
	if err != nil {
		r.t.Fatal(err)
	}
	rec.mu.Lock()
	rec.secret = secret
	rec.mu.Unlock()
	return w, rec
}

// webhook returns the current state of a webhook on the replica.
func (r *replica) webhook(id mesh.WebhookID) *mesh.Webhook {
	r.t.Helper()
	w, err := r.Webhooks.Find(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return w
}

// wanted returns the IDs of all events since a webhook was created that the webhook
// selects.
func (r *replica) wanted(w *mesh.Webhook) (ids []string) {
	r.t.Helper()
	rows, err := r.History.Changes(r.t.Context(), history.Position{Rev: w.Progress.Rev, Index: w.Progress.Index}, r.ledger.World().Rev, 100_000)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, row := range rows {
		if control.EventWanted(w, row) {
			ids = append(ids, row.Position.String())
		}
	}
	return ids
}

// deliveries returns the number of deliveries with an outcome.
func (r *replica) deliveries(outcome string) (n float64) {
	r.t.Helper()
	families, err := r.metrics.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == "mesh_webhook_deliveries_total" && m.Label[0].GetValue() == outcome {
				n = m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// user makes a change: it creates a user.
func (r *replica) user(name string) {
	r.t.Helper()
	if _, err := r.Users.Create(r.t.Context(), admin, control.NewUser{Name: name}); err != nil {
		r.t.Fatal(err)
	}
}

// busy makes many concurrent changes.
func (r *replica) busy(prefix string, n int) {
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range n / 4 {
				name := fmt.Sprintf("%s-%d-%d", prefix, i, j)
				if _, err := r.Users.Create(r.t.Context(), admin, control.NewUser{Name: name}); err != nil {
					r.t.Error(err)
					return
				}
				if _, err := r.Users.Rename(r.t.Context(), admin, name, name+"-renamed", ""); err != nil {
					r.t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// receiver verifies what it is sent, and accepts or rejects it.
type receiver struct {
	t      *testing.T
	server *httptest.Server

	mu     sync.Mutex
	secret string            // guarded by mu, like everything below
	status int               // status of its responses
	header map[string]string // header of its responses
	slow   time.Duration
	held   chan struct{} // if set, responses wait until it is closed
	asked  int           // number of requests
	taken  []string      // IDs of events, in the order of arrival
	names  []string      // names of these events
	types  []string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // the sender died
	}
	r.mu.Lock()
	slow, held := r.slow, r.held
	r.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-q.Context().Done():
			return
		}
	}
	time.Sleep(slow) //nolint:forbidigo // it is slow, that is its part
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	for name, value := range r.header {
		w.Header().Set(name, value)
	}
	if r.status/100 != 2 {
		http.Error(w, "not <now>\x00", r.status)
		return
	}
	var event struct{ ID, Event, Type, Kind, Verb string }
	if err := json.Unmarshal(body, &event); err != nil {
		r.t.Errorf("%v: %s", err, body)
	}
	sent, _ := strconv.ParseInt(q.Header.Get("Mesh-Timestamp"), 10, 64)
	mac := hmac.New(sha256.New, []byte(r.secret))
	fmt.Fprintf(mac, "%d.%s", sent, body)
	if want := "v1=" + hex.EncodeToString(mac.Sum(nil)); r.secret != "" && q.Header.Get("Mesh-Signature") != want {
		r.t.Errorf("signature %s, want %s", q.Header.Get("Mesh-Signature"), want)
	}
	if q.Method != http.MethodPost || q.Header.Get("Mesh-Event-Id") != event.ID || q.Header.Get("Mesh-Event") != event.Event || time.Since(time.Unix(sent, 0)).Abs() > time.Minute {
		r.t.Errorf("%s with %v for %s", q.Method, q.Header, body)
	}
	r.taken, r.names, r.types = append(r.taken, event.ID), append(r.names, event.Event), append(r.types, event.Type)
	w.WriteHeader(r.status)
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// has returns the received events without duplicates, and the number of duplicates.
func (r *receiver) has() (ids []string, again int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range r.taken {
		if slices.Contains(ids, id) {
			again++
		} else {
			ids = append(ids, id)
		}
	}
	return ids, again
}

func (r *receiver) requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// patience is the timeout for operations that take an instant unless the machine is busy.
const patience = time.Minute

// eventually polls until ok returns true.
func eventually(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("after %v not yet: %s", limit, what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// test returns a test event.
func test() history.AuditRow {
	return history.AuditRow{At: mesh.TimeOf(time.Now()), Kind: "webhook", Verb: "test"}
}
