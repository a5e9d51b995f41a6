package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	apispec "github.com/fairlead-mesh/fairlead/api"
	"github.com/fairlead-mesh/fairlead/internal/api"
	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/balance"
	"github.com/fairlead-mesh/fairlead/internal/cluster"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/secrets"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/test/apitest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
	"github.com/fairlead-mesh/fairlead/internal/webhook"
)

// pg is started by the first test that needs it: most tests do not, and each fuzz worker
// runs this package again.
var pg struct {
	once   sync.Once
	server *pgtest.Server
	err    error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if pg.server != nil {
		if err := pg.server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func postgres(t testing.TB) *pgtest.Server {
	t.Helper()
	pg.once.Do(func() { pg.server, pg.err = pgtest.Start(pgtest.Options{}) })
	if pg.err != nil {
		t.Fatal(pg.err)
	}
	return pg.server
}

func openPostgres(t testing.TB, database string) store.Store {
	t.Helper()
	p := postgres(t)
	st, err := sqlstore.OpenPostgres(t.Context(), sqlstore.PostgresConfig{
		Host: p.Host, Port: p.Port, Name: database, User: p.User, SSLMode: "disable",
	}, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func openSQLite(t testing.TB) store.Store {
	t.Helper()
	return openSQLiteAt(t, filepath.Join(t.TempDir(), "db"))
}

func openSQLiteAt(t testing.TB, path string) store.Store {
	t.Helper()
	st, err := sqlstore.OpenSQLite(t.Context(), path, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// counted counts the calls that reach the database, and can make them fail.
type counted struct {
	store.Store
	locks, tails atomic.Int64
	fail         atomic.Pointer[error]
}

func (c *counted) Lock(ctx context.Context, after mesh.Revision, batch store.BatchID, fn func(store.Tx) error) error {
	c.locks.Add(1)
	if err := c.fail.Load(); err != nil {
		return *err
	}
	return c.Store.Lock(ctx, after, batch, fn)
}

func (c *counted) Tail(ctx context.Context, after store.Point) ([]store.Entry, error) {
	c.tails.Add(1)
	if err := c.fail.Load(); err != nil {
		return nil, *err
	}
	return c.Store.Tail(ctx, after)
}

// contract validates every response of a service.
var contract = sync.OnceValue(func() *apitest.Contract {
	c, err := apitest.Load(apispec.Document)
	if err != nil {
		panic(err)
	}
	return c
})

// journal collects the log lines of a service.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(b)
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// lines returns the entries with exactly this message.
func (j *journal) lines(t testing.TB, msg string) (found []map[string]any) {
	t.Helper()
	for line := range strings.Lines(j.text()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if entry["msg"] == msg {
			found = append(found, entry)
		}
	}
	return found
}

// sealer creates and opens the login links of all tests.
var sealer = identity.NewLoginSealer(identity.NewServerSecrets(identity.NewServerSecret(1)))

// codeSealer seals the one-time codes of all tests.
var codeSealer = identity.NewCookieSealer(identity.NewServerSecrets(identity.NewServerSecret(1)))

// hookSecrets derives the webhook secrets of all tests.
var hookSecrets = identity.NewWebhookSecrets(identity.NewServerSecrets(identity.NewServerSecret(1)))

// service is the API over a real ledger, on its own port.
type service struct {
	t       testing.TB
	url     string
	server  *api.Server
	handler http.Handler
	local   http.Handler
	client  *http.Client
	key     string              // an API key, sent by default
	dressed func(*http.Request) // if set, called last to change each request
	ledger  *ledger.Ledger
	control *control.Service
	courier *webhook.Sender
	store   *counted
	log     *journal
	metrics *prometheus.Registry
}

// config changes the defaults of start.
type config struct {
	api     func(*api.Config)
	control func(*control.Config)
}

// start runs a service over st until the test ends.
func start(t testing.TB, st store.Store, changes ...config) *service {
	t.Helper()
	s := &service{t: t, store: &counted{Store: st}, log: &journal{}, metrics: prometheus.NewRegistry()}
	log := slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.Level(-8)}))
	var err error
	var running atomic.Pointer[control.Service]
	s.ledger, err = ledger.Open(t.Context(), ledger.Config{
		Store: s.store, Log: log, Registerer: s.metrics, Describe: api.Describe, History: st.(history.Store),
		Reserved: mesh.ReservedFor(netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fd7a:115c:a1e0::/48")),
		Fill: func(r *store.Report) {
			if c := running.Load(); c != nil {
				r.Facts, r.Uses, r.SessionUses = c.Observations.Unsaved(store.MaxSeen)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, s.ledger.Run, s.ledger.SendHeartbeats, st.Watch)
	cc := control.Config{
		Ledger: s.ledger, History: st.(history.Store), Log: log, Registerer: s.metrics,
		PrefixV4: netip.MustParsePrefix("100.64.0.0/10"), PrefixV6: netip.MustParsePrefix("fd7a:115c:a1e0::/48"),
		Logins: sealer, SessionCodes: codeSealer, ServerURL: "https://mesh.example.com", Webhooks: hookSecrets, LocalWebhooks: true,
		Deliver: func(ctx context.Context, w *mesh.Webhook, row history.AuditRow) control.WebhookAnswer {
			return s.courier.Deliver(ctx, w, row)
		},
	}
	ac := api.Config{
		Ledger: s.ledger, Log: log, Registerer: s.metrics, Document: apispec.Document,
		Version: openapi.Version{Version: "0.28.0", Product: "Fairlead", ProductVersion: "0.0.1"},
		Health:  func() openapi.Health { return openapi.Health{Status: openapi.HealthStatusPass} },
		Ready:   func() openapi.Health { return openapi.Health{Status: openapi.HealthStatusPass} },
		Facts:   openapi.ServerState{URL: "https://mesh.example.com", Database: openapi.DatabaseSQLite},
		SignIn:  openapi.SignIn{URL: "https://mesh.example.com/oidc/session", Providers: []openapi.SignInProvider{{ID: "0", Name: "id.example.com"}}},
		Checks: func() []openapi.ServerCheck {
			return []openapi.ServerCheck{{Part: "database", Status: openapi.ServerCheckPass, Output: []string{}}}
		},
	}
	ac.Cluster = cluster.New(cluster.Config{Cluster: s.ledger.Cluster(), Engine: "sqlite"}).State
	ac.Balancer = balance.New(balance.Config{Replicas: func() []ledger.Report { return []ledger.Report{{ID: "other"}} }})
	cc.Keys = &lateKeys{open: sync.OnceValue(func() *secrets.Keys {
		keys, err := secrets.Open(t.Context(), secrets.Config{Ledger: s.ledger, Log: log, NoisePath: filepath.Join(t.TempDir(), "noise.key")})
		if err != nil {
			t.Error(err)
		}
		return keys
	})}
	for _, change := range changes {
		if change.control != nil {
			change.control(&cc)
		}
		if change.api != nil {
			change.api(&ac)
		}
	}
	s.control = control.New(cc)
	running.Store(s.control)
	s.courier = webhook.New(webhook.Config{
		Ledger: s.ledger, Webhooks: s.control.Webhooks, History: s.control.History, Log: log, Registerer: s.metrics, Secret: hookSecrets.Secret, Encode: api.EncodeWebhookEvent, AllowLocal: true,
	})
	ac.Control = s.control
	s.server = api.New(ac)
	s.handler = s.server.Handler(nil)
	s.local = s.server.LocalHandler(func(context.Context) mesh.Actor {
		return mesh.Actor{Kind: mesh.ActorLocal, ID: "1000", Name: "ada"}
	})
	if _, s.key, err = s.control.APIKeys.Create(t.Context(), mesh.Actor{Kind: mesh.ActorServer}, control.NewAPIKey{Access: mesh.Access{Role: mesh.RoleAdmin}}); err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs loops until the test ends.
func run(t testing.TB, loops ...func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, loop := range loops {
		wg.Go(func() {
			if err := loop(ctx); err != nil {
				t.Errorf("loop: %v", err)
			}
		})
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
}

// sqlite starts a service over a new SQLite file.
func sqlite(t testing.TB, changes ...config) *service {
	t.Helper()
	return start(t, openSQLite(t), changes...)
}

// engines runs a test on both engines. Use it for operations that read the history, and
// once for every operation; whatever depends on the snapshot alone is the same on both.
func engines(t *testing.T, test func(t *testing.T, s *service)) {
	t.Run("sqlite", func(t *testing.T) { test(t, sqlite(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, start(t, openPostgres(t, postgres(t).Database(t)))) })
}

// listen makes the service listen on a port.
func (s *service) listen() *service {
	server := httptest.NewServer(s.handler)
	s.t.Cleanup(server.Close)
	s.url, s.client = server.URL, server.Client()
	s.client.Transport = contract().Transport(s.t, s.client.Transport)
	return s
}

// answer is a response whose body has been read.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte
}

// noKey is a header that makes call omit the API key.
const noKey = "Authorization: "

// call sends a request. body is sent as is if it is text, and encoded as JSON otherwise.
// headers are lines such as "Name: value".
func (s *service) call(method, path string, body any, headers ...string) *answer {
	s.t.Helper()
	if s.url == "" {
		s.listen()
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, reader(s.t, body))
	if err != nil {
		s.t.Fatal(err)
	}
	s.dress(req, headers)
	res, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return &answer{s.t, res.StatusCode, res.Header, data}
}

// direct calls a handler without a network in between.
func (s *service) direct(h http.Handler, method, path string, body any, headers ...string) *answer {
	s.t.Helper()
	req := httptest.NewRequestWithContext(s.t.Context(), method, path, reader(s.t, body))
	s.dress(req, headers)
	rec := serve(h, req)
	for _, m := range contract().Answer(req, rec.Code, rec.Result().Header, rec.Body.Bytes()) {
		s.t.Errorf("contract: %s %s: %s\n%s", method, path, m, rec.Body)
	}
	return &answer{s.t, rec.Code, rec.Result().Header, rec.Body.Bytes()}
}

func (s *service) dress(req *http.Request, headers []string) {
	req.Header.Set("Authorization", "Bearer "+s.key)
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Del(name)
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if s.dressed != nil {
		s.dressed(req)
	}
}

func reader(t testing.TB, body any) io.Reader {
	t.Helper()
	switch body := body.(type) {
	case nil:
		return nil
	case string:
		return strings.NewReader(body)
	case io.Reader:
		return body
	}
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(data)
}

// object is a JSON object.
type object = map[string]any

// ok fails the test unless the request succeeded, and returns the body.
func (a *answer) ok() object {
	a.t.Helper()
	if a.status != http.StatusOK || a.header.Get("Content-Type") != "application/json" {
		a.t.Fatalf("status %d, %s: %s", a.status, a.header.Get("Content-Type"), a.body)
	}
	return a.decoded()
}

func (a *answer) decoded() (body object) {
	a.t.Helper()
	if err := json.Unmarshal(a.body, &body); err != nil {
		a.t.Fatalf("%v: %s", err, a.body)
	}
	return body
}

// fails checks that the response is a Problem with this status, title and detail. path,
// if not empty, is that of the invalid field.
func (a *answer) fails(status int, title, detail, path string) {
	a.t.Helper()
	want := object{
		"type": "about:blank", "title": title, "status": float64(status), "detail": detail,
		"code": float64(grpcCode(status)), "message": detail, "details": []any{},
	}
	if path != "" {
		want["errors"] = []any{object{"path": path, "message": detail}}
	}
	if got := a.header.Get("Content-Type"); a.status != status || got != "application/problem+json" {
		a.t.Errorf("status %d, content type %s; want %d, application/problem+json\n%s", a.status, got, status, a.body)
		return
	}
	if diff := cmp.Diff(want, a.decoded()); diff != "" {
		a.t.Errorf("problem (-want +got):\n%s", diff)
	}
	if a.header.Get("Mesh-Revision") == "" {
		a.t.Error("a problem without Mesh-Revision")
	}
}

func grpcCode(status int) int {
	codes := map[int]int{400: 3, 401: 16, 403: 7, 404: 5, 409: 6, 412: 9}
	if code, ok := codes[status]; ok {
		return code
	}
	return 2
}

// lateKeys creates the server's keys when they are first used, because that is a commit.
type lateKeys struct{ open func() *secrets.Keys }

func (k *lateKeys) Rotation() func(*policy.World, mesh.Time) ([]mesh.Event, error) {
	return k.open().Rotation()
}

func (k *lateKeys) Retire(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
	if mesh.NoiseKeyOf(w.Snapshot).Public.IsZero() { // the keys cannot be created during another commit
		return nil, errors.New("the Noise key has not been created")
	}
	return k.open().Retire(w, now)
}

func (k *lateKeys) Reload()     { k.open().Reload() }
func (k *lateKeys) Stored() int { return k.open().Stored() }

func machineKey(n uint64) string { return meshgen.MachineKey(n).String() }
func nodeKey(n uint64) string    { return meshgen.NodeKey(n).String() }

func newRequest(t testing.TB, method, path string) *http.Request {
	return httptest.NewRequestWithContext(t.Context(), method, path, nil)
}

func serve(h http.Handler, req *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec
}

// audit returns all entries of the audit log.
func (s *service) audit() []history.AuditRow {
	s.t.Helper()
	rows, err := s.store.Store.(history.Store).Audit(s.t.Context(), history.AuditQuery{Limit: 10_000})
	if err != nil {
		s.t.Fatal(err)
	}
	return rows
}
