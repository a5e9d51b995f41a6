//go:build !race

package load

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

var spread = flag.Int("spread", 0, "number of nodes to spread over four replicas; 0 skips the test")

// TestReplicas connects many nodes to four replicas, with a policy of 500 rules, and measures 20 endpoint changes per second: in a
// quiet network, while a replica is killed and the others take over its nodes, and while the policy is saved.
func TestReplicas(t *testing.T) {
	if *spread == 0 {
		t.Skip("see make replicas")
	}
	const (
		count  = 4
		tags   = 500
		crowd  = 8_000 // nodes of a generator
		window = time.Minute
	)
	b := build(t)
	replicas := b.startReplicas(t, count)
	s := replicas[0]
	ring := s.prepareRing(t, tags)
	var urls []string
	for _, r := range replicas {
		urls = append(urls, r.url)
	}
	s.url = strings.Join(urls, ",")

	begin := time.Now()
	last := *spread
	for ; last > crowd; last -= crowd {
		o := s.hold(t, crowd, ring...)
		t.Logf("%d nodes more are connected after %.0f s", crowd, o.ConvergedAfter)
	}
	cmd, out, problem := s.start(t, append([]string{
		"register,churn", "--url=" + s.url, "--n=" + strconv.Itoa(last), "--register-first", "--repeat=3", "--rate=20", "--churn-for=" + window.String(),
	}, ring...)...)
	lines := json.NewDecoder(out)
	next := func() (o outcome) {
		t.Helper()
		if err := lines.Decode(&o); err != nil {
			t.Fatalf("the generator: %v\n%s", err, problem.Bytes())
		}
		return o
	}
	if o := next(); o.Failed > 0 || o.Converged == nil || !*o.Converged {
		t.Fatalf("not all nodes are connected: %+v", o)
	}
	t.Logf("%d nodes are connected after %.0f s: %s", *spread, time.Since(begin).Seconds(), showReplicas(t, replicas))

	report := func(when string, o outcome) {
		t.Logf("%s: a change reaches half of the nodes that see it within %.0f ms, 99 %% within %.0f ms; %d changes lost, %d errors; other programs use %.0f %% of a core",
			when, o.LagP50, o.LagP99, o.Undelivered, o.Errors, o.OtherPercent)
		if o.Undelivered > 0 || o.LagP50 == 0 {
			t.Errorf("%s: %+v", when, o)
		}
	}
	before := cpuOfAll(t, replicas)
	o := next()
	report("20 changes per second", o)
	t.Logf("20 changes per second: the replicas use %.0f %% of a core", 100*(cpuOfAll(t, replicas)-before)/o.Wall)

	replicas[count-1].server.Kill()
	left := replicas[:count-1]
	took := untilStreams(t, left, *spread, 5*time.Minute)
	t.Logf("a replica is killed: the others have all nodes after %.1f s: %s", took.Seconds(), showReplicas(t, left))
	report("a replica is killed", next())

	begin = time.Now()
	s.saveRing(t, tags, 8443)
	t.Logf("a policy with %d changed rules is saved in %.2f s", tags, time.Since(begin).Seconds())
	report("the policy is saved", next())
	if err := cmd.Wait(); err != nil {
		t.Errorf("the generator: %v\n%s", err, problem.Bytes())
	}
	for _, r := range left {
		for _, name := range []string{"mesh_stream_check_failures_total", "mesh_ledger_digest_mismatches_total"} {
			if n, err := r.server.Metric(t.Context(), name); err != nil || n != 0 {
				t.Errorf("%s of %s is %v (%v)", name, r.url, n, err)
			}
		}
	}
	t.Logf("at the end: %s", showReplicas(t, left))
}

// startReplicas starts replicas with one PostgreSQL.
func (b binaries) startReplicas(t *testing.T, count int) (all []target) {
	t.Helper()
	pg, err := pgtest.Start(pgtest.Options{Durable: true, Args: []string{"-c", "max_connections=300"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Stop(); err != nil {
			t.Error(err)
		}
	})
	config := meshtest.Config{
		Binary: b.fairlead, Postgres: pg, Database: pg.Database(t), URL: "http://mesh.example", NoiseKey: filepath.Join(t.TempDir(), "noise.key"),
		Set: map[string]string{"log.level": "info"},
	}
	for range count {
		server := meshtest.Start(t, config)
		all = append(all, target{meshbench: b.meshbench, url: "http://" + server.Addr, pid: server.PID(), server: server})
	}
	return all
}

// untilStreams returns how long it takes until replicas together have a number of streams.
func untilStreams(t *testing.T, replicas []target, want int, limit time.Duration) time.Duration {
	t.Helper()
	begin := time.Now()
	for {
		sum := 0.
		for _, r := range replicas {
			sum += metric(t.Context(), r, "mesh_streams_open")
		}
		took := time.Since(begin)
		if int(sum) >= want {
			return took
		}
		if took > limit {
			t.Fatalf("only %.0f of %d nodes have a stream after %v", sum, want, limit)
		}
		<-time.After(200 * time.Millisecond)
	}
}

// metric returns a metric of a replica, or zero if it does not answer.
func metric(ctx context.Context, r target, name string) float64 {
	v, err := r.server.Metric(ctx, name)
	if err != nil {
		return 0
	}
	return v
}

func showReplicas(t *testing.T, replicas []target) string {
	t.Helper()
	var parts []string
	for _, r := range replicas {
		parts = append(parts, fmt.Sprintf("%.0f streams and %.0f MB", metric(t.Context(), r, "mesh_streams_open"), residentMB(t, r.pid)))
	}
	return strings.Join(parts, ", ")
}

func cpuOfAll(t *testing.T, replicas []target) (seconds float64) {
	t.Helper()
	for _, r := range replicas {
		seconds += cpuOf(t, r.pid)
	}
	return seconds
}
