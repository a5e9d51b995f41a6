package relay_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/relay"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// script responds to the n-th request with the n-th text, and further requests with the
// last one. A text that is not JSON is returned as a transport error.
type script struct {
	answers []string
	asked   []time.Duration // time of each request since start
	start   time.Time
}

func (s *script) RoundTrip(*http.Request) (*http.Response, error) {
	answer := s.answers[min(len(s.asked), len(s.answers)-1)]
	s.asked = append(s.asked, time.Since(s.start))
	if !strings.HasPrefix(answer, "{") {
		return nil, errors.New(answer)
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(answer))}, nil
}

type world struct {
	relayMap  []byte
	published []string
	err       error
}

// follow runs an updater for the given time of the bubble's clock.
func follow(t *testing.T, frequency, during time.Duration, w *world, answers ...string) (*script, *running) {
	t.Helper()
	s, r := &script{answers: answers, start: time.Now()}, &running{metrics: prometheus.NewRegistry(), log: &waittest.Transcript{}}
	u, err := relay.NewUpdater(relay.UpdaterConfig{
		Source:    &relay.Source{URLs: []string{"https://relays.example"}, Client: &http.Client{Transport: s}},
		Frequency: frequency,
		Current:   func() []byte { return w.relayMap },
		Publish: func(_ context.Context, text []byte) error {
			if w.err == nil {
				w.relayMap, w.published = text, append(w.published, string(text))
			}
			return w.err
		},
		Log: slog.New(slog.NewTextHandler(r.log, nil)), Registerer: r.metrics,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	if err := u.Run(ctx); err != nil {
		t.Error(err)
	}
	return s, r
}

func TestOnlyAnotherMapIsPublished(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		one, two := encode(t, relayMap(1)), encode(t, relayMap(1, 2))
		w := &world{relayMap: []byte(one)}
		s, _ := follow(t, time.Hour, 100*time.Hour, w, one, one, two, two, one)
		if diff := cmp.Diff([]string{two, one}, w.published); diff != "" {
			t.Error(diff)
		}
		if n := len(s.asked); n < 95 || n > 106 {
			t.Errorf("asked %d times in 100 hours", n)
		}
		if s.asked[0] != 0 || s.asked[1] == time.Hour && s.asked[2] == 2*time.Hour {
			t.Errorf("asked at %v", s.asked[:3])
		}
	})
}

func TestBadDownloadLeavesTheGoodMap(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		good, better := encode(t, relayMap(1)), encode(t, relayMap(2))
		w := &world{}
		s, r := follow(t, 24*time.Hour, 30*time.Hour, w,
			good, "reset by 10.0.0.1:1", "reset by 10.0.0.1:2", "{}", `{"Regions":{"1":null}}`, "reset by 10.0.0.1:3", better)
		if diff := cmp.Diff([]string{good, better}, w.published); diff != "" {
			t.Error(diff)
		}
		if got := r.value(t, "mesh_relay_map_failures_total"); got != 5 {
			t.Errorf("%v failures counted", got)
		}
		log := r.log.String()
		if n := strings.Count(log, "level=WARN"); n != 3 || strings.Contains(log, "10.0.0.1:2") {
			t.Errorf("%d warnings, want one for each new kind of failure:\n%s", n, log)
		}
		if n := strings.Count(log, "up to date again"); n != 1 {
			t.Errorf("%d ends told:\n%s", n, log)
		}
		if retried := s.asked[6] - s.asked[1]; retried > 10*time.Minute {
			t.Errorf("five failures took %v", retried)
		}
	})
}

func TestFirstMapIsTriedForUntilItIsThere(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		good := encode(t, relayMap(1))
		w := &world{}
		s, _ := follow(t, 0, 100*time.Hour, w, "down", "down", "down", good)
		if diff := cmp.Diff([]string{good}, w.published); diff != "" || len(s.asked) != 4 {
			t.Errorf("asked %d times: %s", len(s.asked), diff)
		}
		w = &world{err: errors.New("database is away")}
		_, r := follow(t, time.Minute, 10*time.Minute, w, good)
		if log := r.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "relay map: not published: database is away") {
			t.Error(log)
		}
		if got := r.value(t, "mesh_relay_map_failures_total"); got < 8 {
			t.Errorf("%v failures counted", got)
		}
	})
}

func TestUpdaterWithoutSourceDoesNothing(t *testing.T) {
	u, err := relay.NewUpdater(relay.UpdaterConfig{Source: &relay.Source{}, Frequency: time.Hour, Registerer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Run(t.Context()); err != nil {
		t.Error(err)
	}
}
