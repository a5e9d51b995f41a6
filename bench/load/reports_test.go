//go:build !race

package load

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var reports = flag.Int("reports", 0, "number of nodes, each of which reports an endpoint once per second; 0 skips the test")

// TestReports limits how long endpoint reports wait for their commit, and the latency of everything else meanwhile: /health, the
// API, and nodes that register. Each node sees about 30 others.
func TestReports(t *testing.T) {
	if *reports == 0 {
		t.Skip("see make reports")
	}
	s, _ := build(t).startFairlead(t)
	ring := s.prepareRing(t, *reports/10)
	cmd, out, problem := s.start(t, append([]string{
		"register,churn", "--url=" + s.url, "--n=" + strconv.Itoa(*reports), "--register-first",
		"--rate=" + strconv.Itoa(*reports), "--churn-for=1m", "--server-pid=" + strconv.Itoa(s.pid),
	}, ring...)...)
	lines := json.NewDecoder(out)
	var o, joined outcome
	if err := lines.Decode(&o); err != nil || o.Converged == nil || !*o.Converged {
		t.Fatalf("not all nodes are connected: %v, %+v\n%s", err, o, problem.Bytes())
	}

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	defer cancel()
	var asking sync.WaitGroup
	var health, users []time.Duration
	asking.Go(func() { health = latencies(ctx, s, "/health") })
	asking.Go(func() { users = latencies(ctx, s, "/api/v1/user") })
	asking.Go(func() {
		joined = s.load(t, "register", nil, "--n=100", "--concurrency=1", "--quiet=0s", ring[0], ring[1])["register"]
	})
	o = outcome{}
	err := lines.Decode(&o)
	asking.Wait()
	if err != nil {
		t.Fatalf("the generator: %v\n%s", err, problem.Bytes())
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the generator: %v\n%s", err, problem.Bytes())
	}
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-46s %10s %6s\n", fmt.Sprintf("%d reports per second for a minute", *reports), "fairlead", "limit")
	for _, row := range []struct {
		name          string
		figure, limit float64 // 0 means no limit
	}{
		{"report until it is committed, 99 % within ms", o.RequestP99, 100},
		{"report until a peer has it, 99 % within ms", o.LagP99, 0},
		{"/health, 99 % within ms", quantile(health, .99), 10},
		{"API, 99 % within ms", quantile(users, .99), 50},
		{"registration, 99 % within ms", joined.RegisterP99, 500},
		{"CPU of the server, % of a core", o.CPUPercent, 0},
		{"other programs, % of a core", o.OtherPercent, 0},
	} {
		limit := ""
		if row.limit > 0 {
			limit = fmt.Sprintf("%6g", row.limit)
			if !(row.figure > 0 && row.figure <= row.limit) { // also fails if nothing was measured
				t.Errorf("%s: %.2f, more than %g", row.name, row.figure, row.limit)
			}
		}
		fmt.Fprintf(&table, "%-46s %10.2f %s\n", row.name, row.figure, limit)
	}
	t.Log(table.String())
	if o.Failed+o.Errors+o.Undelivered > 0 {
		t.Errorf("%d reports failed, %d errors, %d reports did not reach everyone", o.Failed, o.Errors, o.Undelivered)
	}
}

// latencies sends GET requests, one after the other, until ctx ends.
func latencies(ctx context.Context, s target, path string) (all []time.Duration) {
	client := &http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
		if err != nil {
			return nil
		}
		req.Header.Set("Authorization", "Bearer "+s.apiKey)
		begin := time.Now()
		ok := false
		if res, err := client.Do(req); err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			ok = err == nil && res.StatusCode == http.StatusOK
		}
		switch {
		case ok:
			all = append(all, time.Since(begin))
		case ctx.Err() == nil:
			all = append(all, time.Minute) // a failure is worse than any latency
		}
		select {
		case <-ctx.Done():
			return all
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// quantile returns a quantile of durations in milliseconds, or 0 if there are none.
func quantile(all []time.Duration, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return float64(all[int(q*float64(len(all)-1))].Microseconds()) / 1000
}
