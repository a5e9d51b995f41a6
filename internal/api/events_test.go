package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/api"
	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// patience is a timeout far longer than any event should take.
const patience = 20 * time.Second

// consumer reads an event stream.
type consumer struct {
	t      testing.TB
	status int
	header http.Header
	lines  *bufio.Scanner
	last   string // the id to resume after
	close  func()
}

type received struct {
	id, name string
	data     object
}

// consume opens an event stream; call close to end it.
func (s *service) consume(headers ...string) *consumer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.dress(req, headers)
	res, err := s.client.Do(req) //nolint:bodyclose // close closes it
	if err != nil {
		s.t.Fatal(err)
	}
	c := &consumer{t: s.t, status: res.StatusCode, header: res.Header, lines: bufio.NewScanner(res.Body)}
	c.lines.Buffer(nil, 1<<20)
	c.close = func() { cancel(); res.Body.Close() }
	s.t.Cleanup(c.close)
	return c
}

// next waits for an event. It returns false if the stream has ended.
func (c *consumer) next() (e received, ok bool) {
	c.t.Helper()
	for c.lines.Scan() {
		field, value, _ := strings.Cut(c.lines.Text(), ": ")
		switch field {
		case "id":
			c.last, e.id = value, value
		case "event":
			e.name = value
		case "data":
			if err := json.Unmarshal([]byte(value), &e.data); err != nil {
				c.t.Fatalf("%v: %s", err, value)
			}
		case "":
			if e.data != nil {
				c.keepsToTheDocument(e)
				return e, true
			}
			e = received{}
		}
	}
	return e, false
}

func (c *consumer) keepsToTheDocument(e received) {
	c.t.Helper()
	if e.name == "reset" {
		return
	}
	for _, m := range contract().Mismatches("Change", any(e.data)) {
		c.t.Errorf("contract: event %s: %s", e.name, m)
	}
}

// begun waits until the stream has reported its start position.
func (c *consumer) begun() *consumer {
	c.t.Helper()
	for c.last == "" && c.lines.Scan() {
		c.last, _ = strings.CutPrefix(c.lines.Text(), "id: ")
		if strings.HasPrefix(c.last, "retry") {
			c.last = ""
		}
	}
	return c
}

func (c *consumer) names(n int) (names []string) {
	c.t.Helper()
	for range n {
		e, ok := c.next()
		if !ok {
			c.t.Fatalf("the stream ended after %v", names)
		}
		names = append(names, e.name)
	}
	return names
}

// move brings a node online or takes it offline.
func (s *service) move(node mesh.NodeID, online bool) {
	s.t.Helper()
	_, err := s.ledger.Commit(s.t.Context(), mesh.Actor{Kind: mesh.ActorServer}, func(_ *policy.World, now mesh.Time) ([]mesh.Event, error) {
		if online {
			return []mesh.Event{mesh.Online{ID: node, At: now}}, nil
		}
		return []mesh.Event{mesh.Offline{ID: node, At: now}}, nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestEventsTellWhatTheAuditKeepsAndWhoComesAndGoes(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		c := s.listen().consume().begun()
		if got := c.header.Get("Content-Type"); c.status != http.StatusOK || got != "text/event-stream" {
			t.Fatalf("status %d, %s", c.status, got)
		}
		s.newUser("alice")
		s.register(machine(1, s.preAuthKey(object{"user": "alice"}))).ok()
		s.move(1, true)
		s.move(1, false)
		s.call("DELETE", "/api/v1/user/alice", nil).ok()
		var seen []any
		var names []string
		for len(names) < 9 {
			e, ok := c.next()
			if !ok {
				t.Fatalf("the stream ended after %v", names)
			}
			if e.id != e.data["id"] || e.name != fmt.Sprintf("%s.%s", e.data["kind"], e.data["verb"]) {
				t.Errorf("%+v", e)
			}
			names = append(names, e.name)
			if !strings.HasSuffix(e.name, "line") {
				seen = append(seen, e.data)
			}
		}
		want := []string{
			"user.created", "preauthkey.created", "node.created", "preauthkey.changed", "node.online", "node.offline",
			"user.deleted", "node.deleted", "preauthkey.deleted",
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
		audit := s.call("GET", "/api/v1/audit?limit=7", nil).ok()["entries"].([]any)
		slices.Reverse(audit)
		if diff := cmp.Diff(audit, seen); diff != "" {
			t.Errorf("audit and events (-audit +events):\n%s", diff)
		}
	})
}

func TestEventsResumeAfterAnIDOrBeginNow(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		s.listen().newUser("alice")
		first := s.call("GET", "/api/v1/audit?kind=user", nil).ok()["entries"].([]any)[0].(object)["id"].(string)
		c := s.consume().begun()
		s.newUser("bob")
		if e, ok := c.next(); !ok || e.data["object"] != "2" {
			t.Errorf("from now: %+v", e)
		}
		if e, ok := s.consume("Last-Event-ID: " + first).next(); !ok || e.data["object"] != "2" {
			t.Errorf("after %s: %+v", first, e)
		}
		if got := s.consume("Last-Event-ID: 0-0").names(3); got[0] != "apikey.created" {
			t.Errorf("all: %v", got)
		}
		for _, id := range []string{"1", "x-1", "-1-0", "1-0 ", "01-0"} {
			a := s.call("GET", "/api/v1/events?after="+strings.ReplaceAll(id, " ", "+"), nil)
			if a.status != http.StatusBadRequest || a.decoded()["errors"].([]any)[0].(object)["path"] != "after" {
				t.Errorf("%q: %d %s", id, a.status, a.body)
			}
		}
	})
}

func TestEventsRestartAfterPrunedHistory(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		s.listen().newUser("alice")
		s.newUser("bob")
		if _, err := s.store.Store.(history.Store).Forget(t.Context(), 0, 0); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"1-0", "99999999-0"} { // too old, and from another history
			c := s.consume("Last-Event-ID: " + id)
			e, ok := c.next()
			if rev := fmt.Sprint(s.ledger.World().Rev); !ok || e.name != "reset" || e.data["revision"] != rev || !strings.HasPrefix(e.id, rev+"-") {
				t.Errorf("after %s: %+v", id, e)
			}
			s.newUser("after-" + strings.TrimSuffix(id, "-0"))
			if got := c.names(1); got[0] != "user.created" {
				t.Errorf("after the reset: %v", got)
			}
			resumed := s.consume("Last-Event-ID: " + e.id)
			if got := resumed.names(1); got[0] != "user.created" {
				t.Errorf("resumed from the reset: %v", got)
			}
		}
	})
}

// A replica that is gone may have been the only one that saw changes before the database lost them.
func TestEventsRestartAfterLostChangesThatNoReplicaKnows(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		s.listen().newUser("alice")
		last := s.ledger.World().Rev
		_, err := s.ledger.Commit(t.Context(), mesh.Actor{Kind: mesh.ActorServer}, func(w *policy.World, _ mesh.Time) ([]mesh.Event, error) {
			return []mesh.Event{mesh.NewEpoch(w.Snapshot, w.Rev, w.Counters, 2, mesh.Loss{})}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := s.consume(fmt.Sprintf("Last-Event-ID: %d-0", last+1)).next(); !ok || e.name != "reset" {
			t.Errorf("after a lost revision: %+v", e)
		}
		kept := s.consume(fmt.Sprintf("Last-Event-ID: %d-9", last))
		s.newUser("bob")
		if got := kept.names(1); got[0] != "user.created" {
			t.Errorf("after the last revision that was kept: %v", got)
		}
	})
}

func TestEventStreamEndsWithItsKeyOnEveryReplica(t *testing.T) {
	a, b := replicas(t)
	for name, end := range map[string]func(id string){
		"expired": func(id string) { a.call("POST", "/api/v1/apikey/expire", object{"id": id}).ok() },
		"deleted": func(id string) { a.call("DELETE", "/api/v1/apikey/"+id, nil).ok() },
	} {
		id, key := a.newKey()
		streams := []*consumer{a.consume("Authorization: Bearer " + key).begun(), b.consume("Authorization: Bearer " + key).begun()}
		other := b.consume().begun()
		end(id)
		since := time.Now()
		for _, c := range streams {
			for ok := true; ok; _, ok = c.next() {
			}
		}
		if took := time.Since(since); took > 5*time.Second {
			t.Errorf("%s: the streams lasted %v", name, took)
		}
		if e, ok := other.next(); !ok || e.data["object"] != id {
			t.Errorf("%s: the stream of another key: %+v", name, e)
		}
	}
}

func TestEventStreamsEndWhenTheReplicaIsNotHealthy(t *testing.T) {
	var sick atomic.Bool
	s := sqlite(t, config{api: func(c *api.Config) {
		c.Health = func() openapi.Health {
			if sick.Load() {
				return openapi.Health{Status: openapi.HealthStatusFail}
			}
			return openapi.Health{Status: openapi.HealthStatusPass}
		}
	}}).listen()
	c := s.consume().begun()
	sick.Store(true)
	if e, ok := c.next(); ok {
		t.Errorf("%+v", e)
	}
	s.call("GET", "/api/v1/events", nil).fails(http.StatusServiceUnavailable, "Service Unavailable", "this replica cannot read the latest changes; try again", "")
}

func TestOneReplicaServesSixtyFourStreamsAndEightOfThemToEachKeyAndLocally(t *testing.T) {
	s := sqlite(t).listen()
	full := func(handler http.Handler, detail string, headers ...string) {
		t.Helper()
		s.direct(handler, "GET", "/api/v1/events", nil, headers...).fails(http.StatusServiceUnavailable, "Service Unavailable", detail, "")
	}
	keys := []string{"Authorization: Bearer " + s.key}
	for range 7 {
		keys = append(keys, s.limited(mesh.RoleRead, "history"))
	}
	var open []*consumer
	for _, key := range keys[:7] {
		for range 8 {
			open = append(open, s.consume(key).begun())
		}
		full(s.handler, "this API key already has 8 event streams open on this replica, the maximum per key; close one, or use another replica", key)
	}
	full(s.handler, "this replica already serves 56 event streams, the maximum; close one, or use another replica", keys[7])
	local := *s
	server := httptest.NewServer(s.local)
	t.Cleanup(server.Close)
	local.url = server.URL
	for range 8 {
		open = append(open, local.consume(noKey).begun())
	}
	full(s.local, "this replica already serves 64 event streams, the maximum; close one, or use another replica", noKey)
	s.newUser("alice")
	for _, c := range open {
		if got := c.names(1); got[0] != "user.created" {
			t.Errorf("%v", got)
		}
	}
	open[0].close()
	for deadline := time.Now().Add(patience); ; {
		c := s.consume()
		c.close()
		if c.status == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the place of a stream that ended is not free")
		}
	}
}

// A consumer that is killed repeatedly and resumes on either replica sees every event
// once and in order, while both replicas write.
func TestKilledConsumerMissesNothingAndSeesNothingTwice(t *testing.T) {
	a, b := replicas(t)
	a.newUser("alice")
	a.register(machine(1, a.preAuthKey(object{"user": "alice"}))).ok()
	const resumes = 100
	both := []*service{a, b}
	c := a.consume().begun()
	begin := c.last
	var killed, written atomic.Int64
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; killed.Load() < resumes; i++ {
			s := both[rand.IntN(2)]
			if i%5 == 0 {
				s.move(1, i%10 == 0)
				continue
			}
			s.newUser(fmt.Sprintf("user%d", i))
			written.Add(1)
		}
		a.newUser("last")
		written.Add(1)
	})
	seen := map[string]bool{}
	var previous history.Position
	for ended := false; !ended; {
		for range rand.IntN(10) {
			e, ok := c.next()
			at, err := history.ParsePosition(e.id)
			if !ok || err != nil || at.Compare(previous) <= 0 || e.name == "reset" {
				t.Fatalf("%s %s after %v: %v", e.id, e.name, previous, err)
			}
			previous, seen[e.id] = at, true
			after, _ := e.data["after"].(object)
			if ended = after["name"] == "last"; ended {
				break
			}
		}
		c.close()
		killed.Add(1)
		last := c.last
		c = both[rand.IntN(2)].consume("Last-Event-ID: " + last)
		c.last = last
	}
	writer.Wait()
	after, err := history.ParsePosition(begin)
	if err != nil {
		t.Fatal(err)
	}
	past := a.store.Store.(history.Store)
	rows, err := past.Audit(t.Context(), history.AuditQuery{After: after, Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	moves, err := past.Transitions(t.Context(), after, history.EndOf(previous.Rev), 10_000)
	if err != nil {
		t.Fatal(err)
	}
	missed := map[string]bool{}
	for _, row := range rows {
		missed[row.Position.String()] = true
	}
	for _, m := range moves { // transitions merged since then may have been seen too
		missed[m.Position.String()] = true
	}
	for id := range seen {
		delete(missed, id)
	}
	if len(missed) > 0 || len(rows) != int(written.Load()) {
		t.Errorf("missed of %d and %d: %v", len(rows), len(moves), slices.Sorted(maps.Keys(missed)))
	}
}
