//go:build !race

package meshtest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

const usersPath = "/api/v1/user"

// startStandby starts a streaming standby and stops it when the test ends.
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

// failOver kills a primary and promotes its standby. It returns the time at which the standby started to
// accept writes.
func failOver(t *testing.T, primary, standby *pgtest.Server) time.Time {
	t.Helper()
	must(t, primary.Pause("immediate"))
	must(t, standby.Promote())
	return time.Now()
}

// ask sends a request to a server, with an API key if one is given.
func ask(ctx context.Context, s *Server, method, path, key, body string) (status int, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := (&http.Client{}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, string(answer), err
}

// lossReported checks that a server reports the loss of acknowledged changes in its log, its metrics and
// /health.
func lossReported(ctx context.Context, s *Server) error {
	const message = "database went back to an earlier state, acknowledged changes are lost; see the runbook page FairleadHistoryRewound"
	if n := s.Says(message); n != 1 {
		return fmt.Errorf("%s logs %d times that changes are lost", s.Addr, n)
	}
	for _, name := range []string{"mesh_ledger_history_rewinds_total", "mesh_ledger_lost_revisions_total"} {
		if n, err := s.Metric(ctx, name); err != nil || n < 1 {
			return fmt.Errorf("%s: %s is %v, %w", s.Addr, name, n, err)
		}
	}
	if _, text, err := ask(ctx, s, http.MethodGet, "/health", "", ""); err != nil || !strings.Contains(text, "acknowledged revisions lost") {
		return fmt.Errorf("%s: /health answers %s, %w", s.Addr, text, err)
	}
	return nil
}

func TestPromotedStandbyThatLacksCommitsIsReportedByEveryReplica(t *testing.T) {
	t.Parallel()
	primary := startPostgres(t, pgtest.Options{})
	standby := startStandby(t, primary)
	r := startReplicas(t, primary, 3, map[string]string{"database.postgres.host": primary.Host + "," + standby.Host})
	r.servers[0].CLI("users", "create", "kept")
	reader := r.servers[0].APIKey()
	for _, s := range r.servers {
		eventually(t, patience, func() error { return wantStatus(t, s, usersPath, reader, http.StatusOK) })
	}
	must(t, standby.Detach())
	live := followEvents(t, r.servers[0], reader, "")
	r.servers[1].CLI("users", "create", "lost")
	lostUser, lostEvent := userID(t, r.servers[1], "lost"), live.next(t, "user.created")
	key := r.servers[2].APIKey() // the failover loses it too
	for _, s := range r.servers {
		eventually(t, patience, func() error { return wantStatus(t, s, usersPath, key, http.StatusOK) })
	}
	promoted := failOver(t, primary, standby)
	reported := map[*Server]bool{}
	eventually(t, patience, func() (missing error) {
		for _, s := range r.servers {
			if reported[s] {
				continue
			}
			if err := lossReported(t.Context(), s); err != nil {
				missing = err
				continue
			}
			t.Logf("%s reported the loss %v after the promotion", s.Addr, time.Since(promoted).Round(time.Millisecond))
			reported[s] = true
		}
		return missing
	})
	for _, s := range r.servers {
		if err := wantStatus(t, s, usersPath, key, http.StatusUnauthorized); err != nil {
			t.Errorf("an API key of the old history: %v", err)
		}
	}
	r.servers[0].CLI("users", "create", "lost") // the name is free again
	for _, s := range r.servers {               // the event is now in the past, but of another history
		followEvents(t, s, reader, lostEvent).next(t, "reset")
	}
	for _, s := range r.servers {
		eventually(t, patience, func() error { return wantUsers(s, "kept", "lost") })
	}
	if id := userID(t, r.servers[0], "lost"); id <= lostUser {
		t.Errorf("the user ID %d was assigned before, when it was %d", id, lostUser)
	}
	if out := r.servers[1].CLI("audit", "list", "--kind", "history", "-o", "json"); !strings.Contains(out, "lostFrom") {
		t.Errorf("the audit log does not record the loss: %s", out)
	}
	mustAgree(t, r.servers...)

	// The old primary returns and accepts writes.
	must(t, primary.Resume())
	must(t, wantCount(t, standby, "SELECT count(pg_terminate_backend(pid)) * 0 FROM pg_stat_activity WHERE application_name = 'fairlead'", 0))
	for i, s := range r.servers {
		eventually(t, patience, func() error {
			_, err := s.TryCLI(t.Context(), "users", "create", fmt.Sprint("later", i))
			if err != nil && strings.Contains(err.Error(), "already") {
				return nil
			}
			return err
		})
	}
	for _, s := range r.servers {
		eventually(t, patience, func() error { return wantUsers(s, "kept", "lost", "later0", "later1", "later2") })
	}
	mustAgree(t, r.servers...)
}

// userID returns the ID of a user.
func userID(t *testing.T, s *Server, name string) (id int) {
	t.Helper()
	var users []struct{ ID, Name string }
	must(t, json.Unmarshal([]byte(s.CLI("users", "list", "-o", "json")), &users))
	for _, u := range users {
		if u.Name == name {
			n, err := strconv.Atoi(u.ID)
			must(t, err)
			return n
		}
	}
	t.Fatalf("no user %s", name)
	return 0
}

// eventReader is a consumer of the event stream.
type eventReader struct{ lines chan string }

// followEvents opens the event stream of a server, after an event if one is given.
func followEvents(t *testing.T, s *Server, key, after string) *eventReader {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/events", nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	var res *http.Response
	eventually(t, patience, func() error {
		if res, err = (&http.Client{}).Do(req); err != nil { //nolint:bodyclose // the cleanup closes it
			return err
		}
		if res.StatusCode != http.StatusOK {
			res.Body.Close()
			return fmt.Errorf("the event stream is answered with %s", res.Status)
		}
		return nil
	})
	t.Cleanup(func() { res.Body.Close() })
	r := &eventReader{make(chan string, 1024)}
	go func() {
		defer close(r.lines)
		for in := bufio.NewScanner(res.Body); in.Scan(); {
			r.lines <- in.Text()
		}
	}()
	return r
}

// next waits for an event with this name, and returns its ID.
func (r *eventReader) next(t *testing.T, name string) (id string) {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case line, open := <-r.lines:
			if !open {
				t.Fatalf("the stream ended before an event %s", name)
			}
			if after, ok := strings.CutPrefix(line, "id: "); ok {
				id = after
			}
			if line == "event: "+name {
				return id
			}
		case <-limit:
			t.Fatalf("no event %s", name)
		}
	}
}

// wantUsers checks that exactly these users exist, ordered by ID.
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

// A synchronous standby stays connected and does not respond. At first nobody sees the change. Then an
// administrator ends every wait for the standby, so that the change is visible although the standby does
// not have it. Neither the first request nor a retry may succeed before the standby responds again.
func TestRequestThatTheSynchronousStandbyLacksIsNeverAcknowledged(t *testing.T) {
	t.Parallel()
	primary := startPostgres(t, pgtest.Options{Args: []string{"-c", "synchronous_standby_names=" + pgtest.StandbyName}})
	standby := startStandby(t, primary)
	s := Start(t, Config{Binary: fairlead, Postgres: primary, Database: primary.Database(t)})
	s.CLI("users", "create", "alice")
	create := func() error {
		_, err := s.API(t.Context(), http.MethodPost, usersPath, `{"name": "bob"}`)
		return err
	}
	thaw, err := standby.Freeze()
	must(t, err)
	defer func() { must(t, thaw()) }()
	began, answer, pending := time.Now(), error(nil), sync.WaitGroup{}
	pending.Go(func() { answer = create() })
	eventually(t, patience, func() error {
		return wantCount(t, primary, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'", 1)
	})
	<-time.After(time.Second)
	must(t, wantUsers(s, "alice"))

	stop := terminateWaits(t, primary)
	eventually(t, patience, func() error { return wantUsers(s, "alice", "bob") })
	pending.Wait()
	t.Logf("after %v: %v", time.Since(began).Round(time.Millisecond), answer)
	for what, err := range map[string]error{"the request": answer, "a retry": create()} {
		if err == nil || !strings.Contains(err.Error(), " 503 ") {
			t.Errorf("%s is answered with %v, although the standby does not have the change", what, err)
		}
	}
	if err := wantStatus(t, s, "/health", "", http.StatusServiceUnavailable); err != nil {
		t.Error(err)
	}
	mustBeReady(t, s)

	stop()
	must(t, thaw())
	eventually(t, patience, func() error {
		if err := create(); err == nil || !strings.Contains(err.Error(), " 409 ") {
			return fmt.Errorf("when the standby has the change, a retry is answered with %w", err)
		}
		return nil
	})
	s.CLI("users", "create", "carol")
	eventually(t, patience, func() error { return wantStatus(t, s, "/health", "", http.StatusOK) })
}

// terminateWaits ends every wait for the standby, until stop is called.
func terminateWaits(t *testing.T, primary *pgtest.Server) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() {
		for ctx.Err() == nil {
			_ = wantCount(t, primary, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'", 0)
			<-time.After(pollEvery)
		}
	})
	stop = func() { cancel(); wait.Wait() }
	t.Cleanup(stop)
	return stop
}

// wantCount checks the number that a query returns.
func wantCount(t *testing.T, server *pgtest.Server, query string, want int) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	var got int
	if err := conn.QueryRow(t.Context(), query).Scan(&got); err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%s: %d, want %d", query, got, want)
	}
	return nil
}
