package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// startReference runs the reference server until the test ends.
func startReference(t *testing.T, batch, keepAlive time.Duration) (s *reference, url string) {
	s = newReference(batch, keepAlive)
	server := httptest.NewServer(s.handler())
	ctx, cancel := context.WithCancel(context.Background())
	announced := make(chan struct{})
	go func() { s.announce(ctx); close(announced) }()
	t.Cleanup(func() {
		cancel()
		<-announced
		server.CloseClientConnections()
		server.Close()
	})
	return s, server.URL
}

func TestEveryScenarioConvergesAgainstTheReference(t *testing.T) {
	s, url := startReference(t, time.Millisecond, 40*time.Millisecond)
	var out bytes.Buffer
	err := run(t.Context(), []string{
		"register,idle,fanout,churn,reconnect", "--url=" + url, "--auth-key=k", "--n=30", "--concurrency=8", "--quiet=200ms",
		"--changes=2", "--joins=1", "--churn-for=500ms", "--idle-for=200ms", "--server-pid=" + strconv.Itoa(os.Getpid()),
	}, &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range s.nodes {
		if len(n.node.Endpoints) < 2 || n.node.DiscoKey.IsZero() || n.node.HomeDERP != homeRegion {
			t.Errorf("node %d: endpoints %v, disco %v, home relay %d", n.node.ID, n.node.Endpoints, n.node.DiscoKey, n.node.HomeDERP)
		}
	}
	var scenarios []string
	for line := range strings.Lines(out.String()) {
		var r struct {
			Scenario                   string
			Errors, Incomplete, Failed int
			KeepAlives                 int     `json:"keep_alives"`
			ServerCPU                  float64 `json:"server_cpu_s"`
			Settled, Converged         *bool
			KeepsUp                    *bool `json:"keeps_up"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		scenarios = append(scenarios, r.Scenario)
		bad := r.Errors+r.Incomplete+r.Failed > 0 || r.KeepAlives == 0
		for _, ok := range []*bool{r.Settled, r.Converged, r.KeepsUp} {
			bad = bad || ok != nil && !*ok
		}
		if bad {
			t.Error(line)
		}
	}
	want := []string{"register", "idle", "fanout-endpoint", "fanout-join-leave", "churn", "reconnect"}
	if diff := cmp.Diff(want, scenarios); diff != "" {
		t.Error(diff)
	}
}

func TestNodesExpectOnlyPeersThatTheirKeySees(t *testing.T) {
	file := filepath.Join(t.TempDir(), "visibility")
	if err := os.WriteFile(file, []byte("1\n0 1\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	visible, err := readVisibility(file, 3)
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(new(target), config{authKeys: []string{"a", "b", "c"}, visible: visible, nodes: 8}, 0)
	// Keys a and b have three nodes each, key c has two.
	for i, want := range []int{3, 5, 0} {
		if got := c.expected(c.nodes[i]); got != want {
			t.Errorf("a node of key %d expects %d peers, want %d", i, got, want)
		}
	}
	if got := c.observers(c.nodes[1]); got != 5 {
		t.Errorf("%d nodes see a node of key 1, want 5", got)
	}
	if _, err := readVisibility(file, 2); err == nil {
		t.Error("three lines for two keys are accepted")
	}
	if _, err := readVisibility(file, 1); err == nil || !strings.Contains(err.Error(), "visibility:1: ") {
		t.Errorf("unknown key: %v", err)
	}
}

func TestOnlySomeNodesReadTheMapsAfterTheyReconnect(t *testing.T) {
	c := newCluster(&target{traffic: new(traffic)}, config{nodes: 4, authKeys: []string{"k"}, readEvery: 2}, 0)
	unreadable := make([]byte, largeMap+1)
	for _, tc := range []struct {
		name         string
		index        int
		id           int64
		message      []byte
		mapped, read bool
	}{
		{"a node that reconnects", 1, 7, unreadable, false, false},
		{"a node that is chosen to read its maps", 2, 7, unreadable, false, true},
		{"a node that does not know its ID", 1, 0, unreadable, false, true},
		{"a later message", 1, 7, unreadable, true, true},
		{"a small map", 1, 7, unreadable[:largeMap], false, true},
	} {
		c.expectConvergence()
		n := c.nodes[tc.index]
		n.picture = picture{peers: n.peers, wanted: c.expected(n), mapped: tc.mapped, watchdog: time.NewTimer(watchdogTimeout)}
		n.id.Store(tc.id)
		err := n.receive(bytes.NewReader(tc.message), len(tc.message))
		if read := err != nil; read != tc.read || n.converged == tc.read {
			t.Errorf("%s: read %v (%v), converged %v", tc.name, read, err, n.converged)
		}
	}
}

func TestMissingFlagsAreNamed(t *testing.T) {
	for args, want := range map[string]string{
		"":                                  "missing command",
		"dance":                             "unknown command",
		"idle":                              "missing --url",
		"idle --url=http://x":               "missing --auth-key",
		"api --url=http://x":                "missing --api-key",
		"lists --url=http://x --auth-key=k": "missing --api-key",
		"lists --url=http://x --auth-key=k --api-key=k --lists-rate=0": "--lists-turns must be",
		"churn --rate=x":                         "--rate x",
		"idle --url=http://x --auth-key=k --n=1": "--n must be",
		"refserver --keep-alive=1us":             "too short",
		"idle --url=http://x --nonsense=":        "nonsense",
	} {
		err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("meshbench %s: %v, want %q", args, err, want)
		}
	}
}

func TestQuantilesAreExactWithinTwoPercent(t *testing.T) {
	var h histogram
	for i := range 10_000 {
		h.add(time.Duration(i+1) * time.Millisecond)
	}
	for q, want := range map[float64]float64{.5: 5000, .99: 9900, 1: 10_000} {
		if got := h.quantile(q); got < want || got > want*1.02 {
			t.Errorf("quantile %v is %v ms, want %v", q, got, want)
		}
	}
	if got := new(histogram).quantile(.5); got != 0 {
		t.Errorf("quantile of nothing is %v", got)
	}
}
