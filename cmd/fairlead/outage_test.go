package main_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/test/disktest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

// Every test here takes a resource away from a running server, checks what the operator
// sees, restores the resource and expects the server to recover by itself.

// quiet is how long a state has to last to count as stable: several heartbeats.
const quiet = 7 * time.Second

// outage is a running server that is about to lose something.
type outage struct {
	*process
	client *client
	health *monitor
}

func beforeOutage(t *testing.T, s settings) *outage {
	t.Helper()
	o := &outage{process: serve(t, s)}
	mustCommand(t, s, "users", "create", "alice")
	o.client = o.process.client(newKey(t, s))
	o.health = watchHealth(t, o.client)
	return o
}

// during waits until the health check fails with this reason, and then checks what must
// be true for as long as the outage lasts.
func (o *outage) during(t *testing.T, reason string, logged ...string) {
	t.Helper()
	eventually(t, func() error {
		status, body, err := o.client.do("GET", "/health", "")
		if err != nil {
			return err
		}
		var got healthBody
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			return err
		}
		delete(got.Checks, "relay") // no relay is configured
		want := healthBody{Status: "fail", Checks: map[string][]check{"database": {{Status: "fail", Output: reason}}}}
		if diff := cmp.Diff(want, got); status != 503 || diff != "" {
			return fmt.Errorf("status %d (-want +got):\n%s", status, diff)
		}
		return nil
	})
	begin := len(o.log.records())
	for stop := time.After(quiet); ; {
		says(t, o.client.must(t, 200, "GET", "/api/v1/user", ""), "alice")
		if status, body, err := o.client.do("POST", "/api/v1/user", largeUser()); err != nil || status != 503 {
			t.Fatalf("a write during the outage: %d (%v) %s", status, err, body)
		}
		select {
		case <-time.After(pollTime):
			continue
		case <-stop:
		}
		break
	}
	if more := len(o.log.records()) - begin; more > 10 {
		t.Errorf("%d more log lines while nothing changed", more)
	}
	says(t, o.log.String(), logged...)
	if r := command(t, o.settings, "health"); r.status != 1 || r.stdout != "" ||
		!strings.HasPrefix(r.stderr, "Error: the server is not healthy: database fail: "+reason) || !strings.HasSuffix(r.stderr, "; see its log\n") {
		t.Errorf("fairlead health during the outage: %+v", r)
	}
}

// after waits until the server is healthy, checks that it stays so, and stops it.
func (o *outage) after(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		if status, body, err := o.client.do("GET", "/health", ""); err != nil || status != 200 || !strings.HasSuffix(body, `"status":"pass"}`) {
			return fmt.Errorf("status %d (%w): %s", status, err, body)
		}
		return nil
	})
	o.client.must(t, 200, "POST", "/api/v1/user", `{"name": "afterwards"}`)
	<-time.After(quiet)
	if diff := cmp.Diff([]int{200, 503, 200}, o.health.changes()); diff != "" {
		t.Errorf("the health check flaps (-want +got):\n%s", diff)
	}
	again := slices.IndexFunc(o.log.records(), func(r map[string]any) bool { return r["msg"] == "database recovered" })
	if again < 0 {
		t.Error("the log does not say that the database recovered")
	}
	o.stop(t)
}

type check struct{ Status, Output string }

type healthBody struct {
	Status string
	Checks map[string][]check
}

// monitor records changes of the health status.
type monitor struct {
	mu       sync.Mutex
	statuses []int // guarded by mu
}

func (m *monitor) note(status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.statuses); n == 0 || m.statuses[n-1] != status {
		m.statuses = append(m.statuses, status)
	}
}

func (m *monitor) changes() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.statuses)
}

// watchHealth polls the health check until the test ends.
func watchHealth(t *testing.T, c *client) *monitor {
	m, stop, ended := &monitor{}, make(chan struct{}), make(chan struct{})
	look := func() {
		if status, _, err := c.do("GET", "/health", ""); err == nil {
			m.note(status)
		}
	}
	look() // the first check happens before the test continues
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case <-time.After(pollTime):
			}
			look()
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-ended
	})
	return m
}

// largeUser returns a request body that creates a user who takes up disk space.
func largeUser() string {
	return fmt.Sprintf(`{"name": %q, "displayName": %q, "pictureUrl": %q}`,
		"u"+rand.Text(), strings.Repeat(rand.Text(), 18), "https://example.com/"+strings.Repeat(rand.Text(), 18))
}

func TestServiceOutlivesPostgres(t *testing.T) {
	t.Parallel()
	server := startPostgres(t, pgtest.Options{})
	o := beforeOutage(t, onPostgres(t, server))
	if err := server.Pause("fast"); err != nil {
		t.Fatal(err)
	}
	o.during(t, "connection refused", "failed to connect to database", "connection refused")
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	o.after(t)
}

func TestServiceOutlivesFullDiskOfPostgres(t *testing.T) {
	t.Parallel()
	dir := disktest.Small(t, "120m")
	server := startPostgres(t, pgtest.Options{Dir: dir})
	o := beforeOutage(t, onPostgres(t, server))
	o.fillDisk(t, dir)
}

func TestServiceOutlivesFullDiskOfSQLite(t *testing.T) {
	t.Parallel()
	dir := disktest.Small(t, "1m")
	o := beforeOutage(t, onSQLite(t).with("database.sqlite.path", filepath.Join(dir, "db.sqlite")))
	o.fillDisk(t, dir)
}

// fillDisk fills the disk, checks the outage, frees the disk again and checks the
// recovery.
func (o *outage) fillDisk(t *testing.T, dir string) {
	t.Helper()
	filler := disktest.Fill(t, dir)
	for status := 200; status == 200; { // the files have some free space inside
		var err error
		if status, _, err = o.client.do("POST", "/api/v1/user", largeUser()); err != nil {
			t.Fatal(err)
		}
	}
	o.during(t, "no space left on device", "no space left on device", "database write failed")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	o.after(t)
}
