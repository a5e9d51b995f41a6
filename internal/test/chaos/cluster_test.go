package chaos_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/test/chaos"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

// patience limits every wait for the cluster.
const patience = 60 * time.Second

// cluster is a database and the replicas that use it.
type cluster struct {
	t        *testing.T
	program  string
	fault    string
	args     []string       // select the database
	pg       *pgtest.Server // nil for SQLite
	database string
	started  int // processes started so far; each has a unique name

	mu       sync.Mutex
	checker  *chaos.Checker // guarded by mu
	replicas []*process     // guarded by mu; the live ones, by slot
	keys     []string       // guarded by mu; the newest ones, for the next process
}

// keptKeys is how many pre-auth keys a new process gets.
const keptKeys = 8

// process is one replica.
type process struct {
	name    string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stderr  bytes.Buffer // may be read once gone is closed
	leaving atomic.Bool  // whether it was killed or asked to stop
	quiet   chan struct{}
	final   chan chaos.Final
	gone    chan struct{} // closed after its last line has been read
}

func newCluster(t *testing.T, pg *pgtest.Server, program, fault string, replicas int) *cluster {
	c := &cluster{t: t, program: program, fault: fault, pg: pg, database: pg.Database(t)}
	c.args = []string{"-host", pg.Host, "-port", fmt.Sprint(pg.Port), "-user", pg.User, "-database", c.database}
	c.prepare(replicas)
	return c
}

// prepare makes room for a number of replicas, which end with the test.
func (c *cluster) prepare(replicas int) {
	t := c.t
	c.checker, c.replicas = chaos.NewChecker(), make([]*process, replicas)
	t.Cleanup(func() {
		for _, p := range c.alive() {
			c.kill(p)
			if t.Failed() {
				t.Logf("replica %s: %s", p.name, p.stderr.String())
			}
		}
		if findings := c.checker.Findings(); t.Failed() {
			t.Logf("%d findings, the first of them %s", len(findings), findings[:min(len(findings), 20)])
		}
	})
}

// build compiles the replica.
func build(t *testing.T, args ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "replica")
	args = append(append([]string{"build", "-ldflags=-s -w", "-o", program}, args...), "./replica")
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
	return program
}

// judge lets one goroutine at a time use the checker.
func (c *cluster) judge(f func(*chaos.Checker)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.checker)
}

func (c *cluster) alive() []*process {
	c.mu.Lock()
	defer c.mu.Unlock()
	var alive []*process
	for _, p := range c.replicas {
		if p != nil {
			alive = append(alive, p)
		}
	}
	return alive
}

func (c *cluster) start(slot int) {
	c.t.Helper()
	c.started++
	p := &process{
		name: fmt.Sprintf("%d.%d", slot, c.started), quiet: make(chan struct{}), final: make(chan chaos.Final, 1), gone: make(chan struct{}),
	}
	p.cmd = exec.CommandContext(context.Background(), c.program, append([]string{"-replica", p.name}, c.args...)...)
	p.cmd.Env = append(os.Environ(), chaos.FaultVariable+"="+c.fault)
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		c.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	c.replicas[slot] = p
	keys := slices.Clone(c.keys)
	c.mu.Unlock()
	go c.read(p, stdout)
	for _, key := range keys {
		p.order("%s %s", chaos.OrderKey, key)
	}
}

// read handles the output of a process until its end, then waits for it.
func (c *cluster) read(p *process, stdout io.Reader) {
	defer close(p.gone)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break // a partial last line does not count
		}
		var m chaos.Message
		if err := json.Unmarshal(line, &m); err != nil {
			c.judge(func(k *chaos.Checker) { k.Report(chaos.Error, "replica %s says %q: %v", p.name, line, err) })
			continue
		}
		c.take(p, m)
	}
	if err := p.cmd.Wait(); !p.leaving.Load() {
		c.judge(func(k *chaos.Checker) {
			k.Report(chaos.Error, "replica %s ended by itself (%v): %s", p.name, err, p.stderr.String())
		})
	}
}

func (c *cluster) take(p *process, m chaos.Message) {
	switch {
	case m.Answer != nil:
		c.judge(func(k *chaos.Checker) { k.Answer(*m.Answer) })
	case m.View != nil:
		c.judge(func(k *chaos.Checker) { k.View(*m.View) })
	case m.Finding != nil:
		c.judge(func(k *chaos.Checker) { k.Report(m.Finding.Sort, "%s", m.Finding.Text) })
	case m.Key != "":
		c.mu.Lock()
		c.keys = append(c.keys, m.Key)
		c.keys = c.keys[max(0, len(c.keys)-keptKeys):]
		c.mu.Unlock()
		for _, other := range c.alive() {
			other.order("%s %s", chaos.OrderKey, m.Key)
		}
	case m.Quiet:
		close(p.quiet)
	case m.Final != nil:
		p.final <- *m.Final
	}
}

// order writes a line to the standard input of a process. It has no effect on a process that has exited.
func (p *process) order(format string, args ...any) {
	_, _ = fmt.Fprintf(p.stdin, format+"\n", args...)
}

// kill kills a process and waits until all of its output has been handled.
func (c *cluster) kill(p *process) {
	p.leaving.Store(true)
	_ = p.cmd.Process.Kill() // fails only if it has exited
	<-p.gone
}

// replace kills a random replica and starts another in its place.
func (c *cluster) replace(int) {
	slot := rand.IntN(len(c.replicas))
	c.kill(c.alive()[slot])
	c.start(slot)
}

// restartDatabase stops PostgreSQL, alternately by a crash and gracefully, and starts it again.
func (c *cluster) restartDatabase(n int) {
	how := []string{"immediate", "fast"}[n%2]
	if err := errors.Join(c.pg.Pause(how), c.pg.Resume()); err != nil {
		c.judge(func(k *chaos.Checker) { k.Report(chaos.Error, "restarting PostgreSQL: %v", err) })
	}
}

// settle stops all work, waits until every replica and the follower are at the head of the log, and returns
// the state of each replica.
func (c *cluster) settle(f *follower) []chaos.Final {
	c.t.Helper()
	replicas := c.alive()
	for _, p := range replicas {
		p.order(chaos.OrderStop)
	}
	for _, p := range replicas {
		await(c.t, "the workers of "+p.name, p.quiet)
	}
	head := f.head(c.t)
	for _, p := range replicas {
		p.order("%s %d %d", chaos.OrderSettle, head, len(replicas))
	}
	var finals []chaos.Final
	for _, p := range replicas {
		finals = append(finals, await(c.t, "what "+p.name+" holds", p.final))
	}
	for _, p := range replicas {
		p.leaving.Store(true)
		p.stdin.Close()
		await(c.t, "the end of "+p.name, p.gone)
		if !p.cmd.ProcessState.Success() {
			c.judge(func(k *chaos.Checker) {
				k.Report(chaos.Error, "replica %s ended with %v: %s", p.name, p.cmd.ProcessState, p.stderr.String())
			})
		}
	}
	f.reach(c.t, head)
	return finals
}

// tables reads the tables like a replica that starts now.
func (c *cluster) tables() *mesh.Snapshot {
	c.t.Helper()
	db, err := sqlstore.OpenPostgres(c.t.Context(), sqlstore.PostgresConfig{
		Host: c.pg.Host, Port: c.pg.Port, User: c.pg.User, Name: c.database, SSLMode: "disable",
	}, prometheus.NewRegistry())
	if err != nil {
		c.t.Fatal(err)
	}
	defer db.Close()
	s, err := db.Load(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

func await[T any](t *testing.T, what string, ch <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
	}
	return v
}
