package api_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/api"
	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

func TestWhatNoOperationDoesIsAProblem(t *testing.T) {
	s := sqlite(t)
	s.call("GET", "/api/v1/nothing", nil).fails(404, "Not Found", "unknown path /api/v1/nothing; all operations are listed at /api/v1/docs", "")
	s.call("GET", "/", nil, noKey).fails(404, "Not Found", "unknown path /; all operations are listed at /api/v1/docs", "")
	s.call("POST", "/api/v1/node/7", nil).fails(405, "Method Not Allowed", "/api/v1/node/7 supports GET, HEAD, DELETE, not POST", "")
	for path, allow := range map[string]string{
		"/api/v1/user": "GET, HEAD, POST", "/api/v1/user/1": "GET, HEAD, DELETE", "/api/v1/preauthkey": "GET, HEAD, POST, DELETE", "/health": "GET, HEAD",
	} {
		for _, method := range []string{"PUT", "OPTIONS", "BREW"} {
			a := s.call(method, path, nil)
			a.fails(405, "Method Not Allowed", fmt.Sprintf("%s supports %s, not %s", path, allow, method), "")
			if a.header.Get("Allow") != allow {
				t.Errorf("%s: Allow %q, want %q", path, a.header.Get("Allow"), allow)
			}
		}
	}
}

func TestPathThatIsNotCleanIsNoOtherPath(t *testing.T) {
	s := sqlite(t)
	for _, path := range []string{"//api/v1/user", "/api/v1//user", "/api/v1/../v1/user", "/api/v1/./user", "/api/v1/user/", "//", "/health/..", "/.", "/../health"} {
		for _, method := range []string{"GET", "POST"} {
			s.call(method, path, nil).fails(404, "Not Found", "unknown path "+path+"; all operations are listed at /api/v1/docs", "")
		}
	}
	s.call("GET", "/api/v1/../v1/user", nil, noKey).fails(401, "Unauthorized", "Unauthorized: bearer token missing", "")
}

func TestQueryThatCannotBeReadIsRefused(t *testing.T) {
	s := sqlite(t)
	for query, reason := range map[string]string{
		"name=%zz": `invalid URL escape "%zz"`, "name=a;b": "invalid semicolon separator in query", "%=1": `invalid URL escape "%"`,
	} {
		for _, path := range []string{"/api/v1/user", "/api/v1/node", "/api/v1/preauthkey"} {
			s.direct(s.handler, "GET", path+"?"+query, nil).fails(400, "Bad Request", "invalid query string: "+reason, "")
		}
	}
	if a := s.direct(s.handler, "GET", "/health?%zz", nil, noKey); a.status != http.StatusOK {
		t.Errorf("a probe with a strange query: %d", a.status)
	}
	s.call("GET", "/api/v1/user?name=a%3Bb", nil).ok()
}

func TestPanicIsAnsweredAndLogged(t *testing.T) {
	s := sqlite(t, config{api: func(c *api.Config) { c.Health = func() openapi.Health { panic("boom") } }})
	s.call("GET", "/health", nil).fails(500, "Internal Server Error", "internal error; see the server log", "")
	lines := s.log.lines(t, "request panicked")
	if len(lines) != 1 || lines[0]["panic"] != "boom" || !strings.Contains(lines[0]["stack"].(string), "Health") {
		t.Errorf("%v", lines)
	}
	s.call("GET", "/version", nil).ok()
}

// cutOff is a response writer that panics in the middle of a response.
type cutOff struct {
	*httptest.ResponseRecorder
	reason any
}

func (w *cutOff) Write([]byte) (int, error) { panic(w.reason) }

func TestPanicInTheMiddleOfAnAnswerCutsItOff(t *testing.T) {
	s := sqlite(t)
	for _, reason := range []any{"boom", http.ErrAbortHandler} {
		func() {
			defer func() {
				if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // net/http compares with ==
					t.Errorf("recovered %v", p)
				}
			}()
			s.handler.ServeHTTP(&cutOff{httptest.NewRecorder(), reason}, newRequest(t, "GET", "/version"))
		}()
	}
	if lines := s.log.lines(t, "request panicked"); len(lines) != 1 {
		t.Errorf("an aborted request is logged: %v", lines)
	}
}

func TestMinRevisionWaitsForTheRevision(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		s := sqlite(t)
		rev := s.ledger.World().Rev
		got := make(chan *answer, 1)
		run(t, func(context.Context) error {
			got <- s.direct(s.handler, "GET", "/api/v1/user", nil, fmt.Sprintf("Mesh-Min-Revision: %d", rev+2))
			return nil
		})
		synctest.Wait()
		s.direct(s.handler, "POST", "/api/v1/user", object{"name": "alice"}).ok()
		synctest.Wait()
		if len(got) != 0 {
			t.Fatal("answered before the revision was there")
		}
		second := s.direct(s.handler, "POST", "/api/v1/user", object{"name": "bob"})
		a := <-got
		if users := a.ok()["users"].([]any); len(users) != 2 || a.header.Get("Mesh-Revision") != second.header.Get("Mesh-Revision") {
			t.Errorf("%d users at revision %s", len(users), a.header.Get("Mesh-Revision"))
		}
	})
}

func TestMinRevisionThatDoesNotComeIs503AfterFiveSeconds(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		s := sqlite(t)
		for _, method := range []string{"GET", "POST"} {
			begin := time.Now()
			a := s.direct(s.handler, method, "/api/v1/user", object{"name": "alice"}, "Mesh-Min-Revision: 4711")
			a.fails(503, "Service Unavailable", "this replica has not reached this revision yet; try again", "")
			if took := time.Since(begin); took != 5*time.Second || a.header.Get("Retry-After") != "1" {
				t.Errorf("%s: after %v, Retry-After %q", method, took, a.header.Get("Retry-After"))
			}
		}
		if s.ledger.World().Users.Len() != 0 {
			t.Error("a request that was refused made a user")
		}
		begin := time.Now()
		s.direct(s.handler, "GET", "/health", nil, "Mesh-Min-Revision: 4711")
		if time.Since(begin) != 0 {
			t.Error("a probe waits")
		}
	})
}

func TestMinRevisionMustBeARevision(t *testing.T) {
	s := sqlite(t)
	for _, text := range []string{"x", "-1", "1.5", "99999999999999999999"} {
		s.call("GET", "/api/v1/user", nil, "Mesh-Min-Revision: "+text).
			fails(400, "Bad Request", "Mesh-Min-Revision must be a revision number, as in the response header Mesh-Revision", "Mesh-Min-Revision")
	}
	s.call("GET", "/api/v1/user", nil, "Mesh-Min-Revision: 1").ok()
}

func TestRevisionOfAWriteIsItsOwn(t *testing.T) {
	s := sqlite(t)
	for want := 2; want < 6; want++ {
		a := s.call("POST", "/api/v1/user", object{"name": fmt.Sprintf("u%d", want)})
		a.ok()
		if got := a.header.Get("Mesh-Revision"); got != fmt.Sprint(want) {
			t.Errorf("revision %s, want %d", got, want)
		}
	}
	a := s.call("POST", "/api/v1/user", object{"name": "u2"})
	a.fails(409, "Conflict", `user "u2" already exists; user names are not case-sensitive`, "")
	if got := a.header.Get("Mesh-Revision"); got != "5" {
		t.Errorf("a refusal carries revision %s, want 5", got)
	}
}

func TestLargeBodyIsRefused(t *testing.T) {
	s := sqlite(t)
	body := func(size int) string {
		head, tail := `{"name":"alice","ignored":"`, `"}`
		return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
	}
	s.call("POST", "/api/v1/user", body(1<<20+1)).fails(413, "Request Entity Too Large", "the request body is larger than 1024 KiB", "")
	// Without a Content-Length, the size is known only after reading.
	s.call("POST", "/api/v1/user", io.MultiReader(strings.NewReader(body(1<<20+1)))).
		fails(413, "Request Entity Too Large", "the request body is larger than 1024 KiB", "")
	for _, h := range []http.Handler{s.handler, s.local} {
		s.direct(h, "POST", "/api/v1/machine", body(64<<10+1), noKey).fails(413, "Request Entity Too Large", "the request body is larger than 64 KiB", "")
		s.direct(h, "POST", "/api/v1/machine", body(64<<10), noKey).fails(400, "Bad Request", "hostname is required", "hostname")
	}
	if s.ledger.World().Users.Len() != 0 {
		t.Fatal("a body that was refused made a user")
	}
	s.call("POST", "/api/v1/user", body(1<<20)).ok()
}

func TestBodyThatEndsEarlyIsTheCallersFault(t *testing.T) {
	s := sqlite(t).listen()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /api/v1/user HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 100\r\n\r\n{\"name\":", s.key)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil || !bytes.HasPrefix(got, []byte("HTTP/1.1 400 ")) || !bytes.Contains(got, []byte("the request body is incomplete")) {
		t.Errorf("%v: %s", err, got)
	}
	if lines := s.log.lines(t, "request failed"); len(lines) != 0 {
		t.Errorf("%v", lines)
	}
}

func TestBodyThatTricklesInTimesOut(t *testing.T) {
	for path, patience := range map[string]time.Duration{"/api/v1/user": 30 * time.Second, "/api/v1/machine": 5 * time.Second} {
		waittest.Bubble(t, func(t *testing.T) { trickleIn(t, path, patience) })
	}
}

func trickleIn(t *testing.T, path string, patience time.Duration) {
	s := sqlite(t)
	caller, l := waittest.Caller()
	server := &http.Server{Handler: s.handler}
	run(t, func(context.Context) error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	defer server.Close()
	defer caller.Close()
	begin := time.Now()
	fmt.Fprintf(caller, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 100\r\n\r\n{\"name\":", path, s.key)
	res, err := http.ReadResponse(bufio.NewReader(caller), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if took := time.Since(begin); res.StatusCode != http.StatusRequestTimeout || took != patience {
		t.Errorf("%s: status %d after %v", path, res.StatusCode, took)
	}
}

func TestFailureOfTheDatabaseIsAnAnswer(t *testing.T) {
	s := sqlite(t)
	const unavailable = "database unavailable: nothing was changed; try again"
	for _, c := range []struct {
		err    error
		status int
		title  string
		detail string
	}{
		{fmt.Errorf("%w: connection refused", store.ErrUnavailable), 503, "Service Unavailable", unavailable},
		{context.DeadlineExceeded, 503, "Service Unavailable", unavailable},
		{errors.New("page 7 is upside down"), 500, "Internal Server Error", "internal error; see the server log for request r1"},
	} {
		s.store.fail.Store(&c.err)
		a := s.call("POST", "/api/v1/user", object{"name": "alice"}, "X-Request-Id: r1")
		a.fails(c.status, c.title, c.detail, "")
		if (a.header.Get("Retry-After") != "") != (c.status == 503) {
			t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
		}
	}
	lines := s.log.lines(t, "request failed")
	if len(lines) != 1 || lines[0]["error"] != "page 7 is upside down" || lines[0]["req"] != "r1" || lines[0]["path"] != "/api/v1/user" {
		t.Errorf("%v", lines)
	}
	// During an outage, no object can be reported as unknown, because another replica may have
	// created it.
	s.call("GET", "/api/v1/user", nil, "Authorization: Bearer flk_a_b").fails(503, "Service Unavailable", unavailable, "")
	s.call("GET", "/api/v1/node/1", nil).fails(503, "Service Unavailable", unavailable, "")
	s.call("GET", "/api/v1/node?user=alice", nil).fails(503, "Service Unavailable", unavailable, "")
	s.register(machine(1, "flp_a_b")).fails(503, "Service Unavailable", unavailable, "")
	s.call("GET", "/api/v1/user", nil).ok()
	if got := s.call("GET", "/api/v1/health", nil).ok(); got["databaseConnectivity"] != false {
		t.Errorf("%v", got)
	}
	s.store.fail.Store(nil)
	s.call("POST", "/api/v1/user", object{"name": "alice"}).ok()
	for deadline := time.Now().Add(10 * time.Second); s.call("GET", "/api/v1/health", nil).ok()["databaseConnectivity"] != true; {
		if time.Now().After(deadline) {
			t.Fatal("the database has recovered, and the log does not say so")
		}
	}
}

func TestHealthSaysPassOrFail(t *testing.T) {
	state := openapi.Health{Status: openapi.HealthStatusPass}
	s := sqlite(t, config{api: func(c *api.Config) {
		c.Health = func() openapi.Health { return state }
		c.Ready = c.Health
	}})
	check := func(status int, want object) {
		t.Helper()
		for _, path := range []string{"/health", "/ready"} {
			a := s.call("GET", path, nil, noKey)
			if a.status != status || a.header.Get("Content-Type") != "application/health+json" {
				t.Errorf("%s: status %d, %s", path, a.status, a.header.Get("Content-Type"))
			}
			if diff := cmp.Diff(want, a.decoded()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		}
	}
	check(200, object{"status": "pass"})
	state.Status = openapi.HealthStatusFail
	state.Checks = map[string][]openapi.HealthCheck{"database": {{Status: openapi.HealthCheckStatusFail, Output: "connection refused"}}}
	check(503, object{"status": "fail", "checks": object{"database": []any{object{"status": "fail", "output": "connection refused"}}}})
}

func TestDrainedReplicaCanTellProxiesToKeepItsConnections(t *testing.T) {
	failing := openapi.HealthCheck{Status: openapi.HealthCheckStatusFail, Output: "drained"}
	state := openapi.Health{Status: openapi.HealthStatusPass}
	s := sqlite(t, config{api: func(c *api.Config) { c.Ready = func() openapi.Health { return state } }})
	check := func(want map[string]int) {
		t.Helper()
		for query, status := range want {
			if a := s.call("GET", "/ready"+query, nil, noKey); a.status != status {
				t.Errorf("%q: status %d, want %d", query, a.status, status)
			}
		}
	}
	check(map[string]int{"": 200, "?draining=404": 200, "?draining=503": 200})
	state.Status, state.Checks = openapi.HealthStatusFail, map[string][]openapi.HealthCheck{api.CheckService: {failing}}
	check(map[string]int{"": 503, "?draining=404": 404, "?draining=503": 503})
	state.Checks["replicas"] = []openapi.HealthCheck{failing}
	check(map[string]int{"": 503, "?draining=404": 503, "?draining=503": 503})
}

func TestReplicaThatMustNotServeRefusesKeysButNotPeopleOnTheMachine(t *testing.T) {
	var closed atomic.Bool
	s := sqlite(t, config{api: func(c *api.Config) { c.Closed = closed.Load }})
	closed.Store(true)
	const detail = "this replica cannot reach the database and cannot verify API keys; use another replica"
	s.call("GET", "/api/v1/user", nil).fails(503, "Service Unavailable", detail, "")
	s.call("GET", "/api/v1/user", nil, "Authorization: Bearer flk_a_b").fails(503, "Service Unavailable", detail, "") // even for wrong keys
	s.call("GET", "/api/v1/events", nil).fails(503, "Service Unavailable", detail, "")
	if a := s.direct(s.local, "GET", "/api/v1/user", nil, noKey); a.status != http.StatusOK {
		t.Errorf("on the local socket: %d", a.status)
	}
	for _, path := range []string{"/health", "/ready", "/version"} {
		if a := s.call("GET", path, nil, noKey); a.status != http.StatusOK {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	closed.Store(false)
	s.call("GET", "/api/v1/user", nil).ok()
}

func TestMetricsEqualWhatWasSent(t *testing.T) {
	s := sqlite(t)
	// Failure counters start at zero: Prometheus sees no increase when a series first appears.
	counted, total := map[string]int{"500": 0, "503": 0}, 0
	call := func(h http.Handler, method, path string, body any, headers ...string) {
		a := s.direct(h, method, path, body, headers...)
		counted[fmt.Sprint(a.status)]++
		total++
	}
	for range 7 {
		call(s.handler, "GET", "/api/v1/user", nil)
		call(s.local, "GET", "/api/v1/node", nil, noKey)
		call(s.handler, "GET", "/health", nil)
	}
	for range 3 {
		call(s.handler, "POST", "/api/v1/user", object{"name": "alice"})
		call(s.handler, "GET", "/api/v1/user", nil, noKey)
		call(s.handler, "GET", "/api/v1/node/99", nil)
		call(s.handler, "PUT", "/api/v1/user", nil)
		call(s.handler, "POST", "/api/v1/user", "{")
	}
	if diff := cmp.Diff(counted, s.counts("mesh_http_requests_total")); diff != "" {
		t.Errorf("mesh_http_requests_total (-counted +metric):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"": total}, s.counts("mesh_http_request_duration_seconds")); diff != "" {
		t.Errorf("mesh_http_request_duration_seconds (-counted +metric):\n%s", diff)
	}
	if len(counted) != 8 {
		t.Errorf("only these were tried: %v", counted)
	}
}

// counts returns a counter's values, or a histogram's number of observations, by label.
func (s *service) counts(name string) map[string]int {
	s.t.Helper()
	families, err := s.metrics.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	counts := map[string]int{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			label := ""
			for _, l := range m.GetLabel() {
				label = l.GetValue()
			}
			if f.GetName() == name {
				counts[label] = int(m.GetCounter().GetValue()) + int(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return counts
}
