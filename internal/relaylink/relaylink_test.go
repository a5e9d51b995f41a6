package relaylink_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/relay"
	"github.com/fairlead-mesh/fairlead/internal/relaylink"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
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

// request sends a request with the key of a relay. The response is closed when the test ends.
func (s server) request(t *testing.T, method, path, relayKey string, body io.Reader) (status int, answer io.Reader) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+relayKey)
	resp, err := new(http.Client).Do(req) // the context of the test limits it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp.StatusCode, resp.Body
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
		status, answer := s.request(t, http.MethodPost, relay.ReportPath, relayKey, strings.NewReader(string(text)))
		said, err := io.ReadAll(answer)
		if err != nil {
			t.Fatal(err)
		}
		return status, string(said)
	}
	if status, said := report(); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, said)
	}
	if status, said := report(); status != http.StatusServiceUnavailable || !strings.Contains(said, "stop it") {
		t.Errorf("the second process gets status %d: %s", status, said)
	}
}

// stream follows the server until the test ends. The first message has been read.
func (s server) stream(t *testing.T, relayKey string) (lines *bufio.Scanner) {
	t.Helper()
	waittest.Eventually(t, 20*time.Second, 5*time.Millisecond, func() error {
		status, answer := s.request(t, http.MethodGet, relay.FollowPath, relayKey, nil)
		lines = bufio.NewScanner(answer)
		if u, ok := next(t, lines); !ok || !u.Complete { // a new relay is announced a moment after it was created
			return fmt.Errorf("status %d, first message %+v", status, u)
		}
		return nil
	})
	return lines
}

// next returns the next message of a stream that is not empty, and whether there is one.
func next(t *testing.T, lines *bufio.Scanner) (u relay.Update, ok bool) {
	t.Helper()
	for lines.Scan() {
		u = relay.Update{}
		if err := json.Unmarshal(lines.Bytes(), &u); err != nil {
			t.Fatal(err)
		}
		if u.Mesh != nil || u.Reset {
			return u, true
		}
	}
	return u, false
}

// A relay whose key has leaked must not take the streams of all others.
func TestRelayHasAFewStreamsAndKeepsTheNewest(t *testing.T) {
	s := open(t)
	one, other := s.create(t, "ams-1"), s.create(t, "ams-2")
	open := []*bufio.Scanner{s.stream(t, other)}
	for range 4 {
		open = append(open, s.stream(t, one))
	}
	peer := mesh.RelayPlace{URL: "https://ams-3.example.com", Key: key.NewNode().Public()}
	s.create(t, "ams-3")
	if err := s.relays.Report(t.Context(), 3, peer, mesh.RelayReport{}); err != nil {
		t.Fatal(err)
	}
	for i, lines := range open {
		if u, ok := next(t, lines); ok != (i != 1) || ok && len(u.Mesh.Peers) != 1 {
			t.Errorf("stream %d: open: %v, change: %+v", i, ok, u)
		}
	}
}
