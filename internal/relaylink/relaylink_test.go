package relaylink_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/relay"
	"github.com/fairlead-mesh/fairlead/internal/relaylink"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
)

// server serves relays on the loopback address.
type server struct {
	url    string
	relays *control.Relays
}

// open runs a server, with a database of its own, until the test ends.
func open(t *testing.T) server {
	t.Helper()
	reg, log := prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
	st, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "db"), reg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	l, err := ledger.Open(t.Context(), ledger.Config{Store: st, History: st, Log: log, Registerer: reg})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	relays := control.New(control.Config{Ledger: l, History: st, Log: log, Registerer: reg}).Relays
	links := relaylink.New(relaylink.Config{
		Relays: relays, Ledger: l, Log: log,
		MeshKey: func(int) string { return strings.Repeat("ab", 32) }, Closed: func() bool { return false },
	})
	mux := http.NewServeMux()
	for pattern, h := range links.Routes() {
		mux.Handle(pattern, h)
	}
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return server{web.URL, relays}
}

// create creates a relay and returns its key.
func (s server) create(t *testing.T, name string) string {
	t.Helper()
	_, text, err := s.relays.Create(t.Context(), mesh.Actor{Kind: mesh.ActorServer}, control.NewRelay{Name: name, RegionCode: "ams"})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// request sends a request with the key of a relay. The body of the response is closed when the test ends.
func (s server) request(t *testing.T, method, path, relayKey string, body io.Reader) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+relayKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// A relay process ends if its report is rejected with the status of a mistake that it cannot correct.
func TestSecondProcessOfARelayIsToldToTryAgain(t *testing.T) {
	s := open(t)
	relayKey := s.create(t, "ams-1")
	report := func() (int, string) {
		t.Helper()
		text, err := json.Marshal(relay.Report{URL: "https://ams-1.example.com", STUNPort: 3478, Key: key.NewNode().Public()})
		if err != nil {
			t.Fatal(err)
		}
		resp := s.request(t, http.MethodPost, relay.ReportPath, relayKey, strings.NewReader(string(text)))
		said, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(said)
	}
	if status, said := report(); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, said)
	}
	if status, said := report(); status != http.StatusServiceUnavailable || !strings.Contains(said, "stop it") {
		t.Errorf("the second process gets status %d: %s", status, said)
	}
}
