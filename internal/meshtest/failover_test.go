//go:build !race

package meshtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/pgtest"
)

const usersPath = "/api/v1/user"

// startStandby starts a streaming standby that ends with the test.
func startStandby(t *testing.T, primary *pgtest.Server) *pgtest.Server {
	t.Helper()
	standby, err := primary.Standby(0)
	must(t, err)
	t.Cleanup(func() { must(t, standby.Stop()) })
	return standby
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// failOver kills a primary and promotes its standby. It returns when the standby
// began to accept writes.
func failOver(t *testing.T, primary, standby *pgtest.Server) time.Time {
	t.Helper()
	must(t, primary.Pause("immediate"))
	must(t, standby.Promote())
	return time.Now()
}

// ask sends a request to a server, with an API key and an Idempotency-Key if they
// are given.
func ask(ctx context.Context, s *Server, method, path, key, once, body string) (status int, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + key, "Idempotency-Key": once} {
		if strings.TrimPrefix(value, "Bearer ") != "" {
			req.Header.Set(name, value)
		}
	}
	res, err := (&http.Client{}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, string(answer), err
}

// lossReported wants a server to report that acknowledged changes are lost, in its
// log, its metrics and /health.
func lossReported(ctx context.Context, s *Server) error {
	const message = "database history went back: acknowledged changes are lost; see the runbook page FairleadHistoryRewound"
	if n := s.Says(message); n != 1 {
		return fmt.Errorf("%s logs %d times that changes are lost", s.Addr, n)
	}
	for _, name := range []string{"mesh_ledger_history_rewinds_total", "mesh_ledger_lost_revisions_total"} {
		if n, err := s.Metric(ctx, name); err != nil || n < 1 {
			return fmt.Errorf("%s: %s is %v, %w", s.Addr, name, n, err)
		}
	}
	if _, text, err := ask(ctx, s, http.MethodGet, "/health", "", "", ""); err != nil || !strings.Contains(text, "acknowledged revisions lost") {
		return fmt.Errorf("%s: /health answers %s, %w", s.Addr, text, err)
	}
	return nil
}

// The time counts from the moment at which the promoted standby accepts writes,
// because replicas cannot be connected to it earlier. It includes the time that a
// replica needs to connect.
func TestPromotedStandbyThatLacksCommitsIsReportedByEveryReplica(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Second
	primary := startPostgres(t, pgtest.Options{})
	standby := startStandby(t, primary)
	r := startReplicas(t, primary, 3, map[string]string{"database.postgres.host": primary.Host + "," + standby.Host})
	r.servers[0].CLI("users", "create", "kept")
	must(t, standby.Detach())
	r.servers[1].CLI("users", "create", "lost")
	key := r.servers[2].APIKey() // lost as well
	for _, s := range r.servers {
		eventually(t, patience, func() error { return wantStatus(t, s, usersPath, key, http.StatusOK) })
	}
	delays := watchDelays(t)
	promoted := failOver(t, primary, standby)
	took := map[*Server]time.Duration{}
	eventually(t, patience, func() (missing error) {
		for _, s := range r.servers {
			if _, done := took[s]; done {
				continue
			}
			if err := lossReported(t.Context(), s); err != nil {
				missing = err
				continue
			}
			took[s] = time.Since(promoted)
		}
		return missing
	})
	delay := delays()
	for i, s := range r.servers {
		t.Logf("replica %d reported the loss %v after the promotion", i, took[s].Round(time.Millisecond))
		if took[s] > limit+delay {
			t.Errorf("that is later than %v, and nothing delayed the test itself for more than %v", limit, delay)
		}
		if err := wantStatus(t, s, usersPath, key, http.StatusUnauthorized); err != nil {
			t.Errorf("an API key of the old history: %v", err)
		}
	}
	r.servers[0].CLI("users", "create", "lost") // its name is free, and its revision was used before
	for _, s := range r.servers {
		eventually(t, patience, func() error { return wantUsers(s, "kept", "lost") })
	}
	mustAgree(t, r.servers...)
}

// watchDelays measures for how long the machine keeps this process from running.
func watchDelays(t *testing.T) (longest func() time.Duration) {
	t.Helper()
	const every = 10 * time.Millisecond
	var mu sync.Mutex
	var most time.Duration
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() {
		for last := time.Now(); ctx.Err() == nil; {
			<-time.After(every)
			now := time.Now()
			mu.Lock()
			most = max(most, now.Sub(last)-every)
			mu.Unlock()
			last = now
		}
	})
	t.Cleanup(func() { stop(); wait.Wait() })
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return most
	}
}

// wantUsers wants exactly these users, by the order of their names.
func wantUsers(s *Server, names ...string) error {
	out, err := s.TryCLI(context.Background(), "users", "list", "-o", "json")
	if err != nil {
		return err
	}
	var users []struct{ Name string }
	if err := json.Unmarshal([]byte(out), &users); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	var got []string
	for _, u := range users {
		got = append(got, u.Name)
	}
	if fmt.Sprint(got) != fmt.Sprint(names) {
		return fmt.Errorf("the users are %v, want %v", got, names)
	}
	return nil
}
