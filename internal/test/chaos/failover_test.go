//go:build !race

package chaos_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tailscale.com/tailcfg"

	"github.com/fairlead-mesh/fairlead/internal/test/chaos"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

var failover = flag.Bool("failover", false, "measure all failures with 300 nodes; otherwise -chaos measures two, with fewer nodes")

const (
	markEvery   = 250 * time.Millisecond // how often all nodes are sent a change
	lookEvery   = 25 * time.Millisecond
	quietBefore = 2 * time.Second // between two failures
	repairAfter = 5 * time.Second
	frozenFor   = 20 * time.Second
	recovered   = 2 * time.Minute // limit until everything has recovered
	// A node is shown offline 2 s after its stream ended, even if it has a new one that is not saved yet.
	silent     = time.Second     // a node that received nothing for longer may be shown offline
	backWithin = 2 * time.Second // from then on, its peers know that it is back
	// Replicas begin to exchange nodes 30 s after one of them started.
	balanceLimit = time.Minute
	lostFor      = 2 * time.Second // how long an asynchronous standby lags behind before the primary dies
)

// failure is one row of the table.
type failure struct {
	name   string
	short  bool // also measured in CI
	writes time.Duration
	nodes  time.Duration // promised longest pauses
	run    func(*drill)
	wrong  int // nodes that may be shown offline although their stream works
}

// drill measures failures of a fleet.
type drill struct {
	*fleet
	*workload
	marker        *meshtest.Node
	before, after string // programs
	table         strings.Builder
}

// failures are in the order of the table.
func failures() []failure {
	return []failure{
		{"replica killed", true, 2 * time.Second, 5 * time.Second, func(d *drill) {
			d.members[0].Kill()
			<-time.After(repairAfter)
			d.members[0].Resume()
		}, 0},
		{"replica stopped", false, 2 * time.Second, 5 * time.Second, func(d *drill) {
			d.members[1].Stop()
			<-time.After(repairAfter)
			d.members[1].Resume()
		}, 0},
		{"replica frozen for 20 s", false, 6 * time.Second, frozenFor + 5*time.Second, func(d *drill) {
			d.members[2].Signal(syscall.SIGSTOP)
			<-time.After(frozenFor)
			d.members[2].Signal(syscall.SIGCONT)
		}, 0},
		{"balancer restarted, away for 1 s", true, 3 * time.Second, 10 * time.Second, func(d *drill) {
			d.balancer.Stop()
			<-time.After(time.Second)
			d.balancer.Resume(d.t)
		}, 0},
		{"primary killed, synchronous standby promoted", false, 15 * time.Second, 15 * time.Second, func(d *drill) {
			d.db.failOver()
			<-time.After(repairAfter)
			d.db.rebuild()
		}, 0},
		{"rolling upgrade: drain, stop and start each replica", false, 2 * time.Second, 5 * time.Second, func(d *drill) { d.roll(d.after) }, 0},
		{"rolling rollback: the same with the old version", false, 2 * time.Second, 5 * time.Second, func(d *drill) { d.roll(d.before) }, 0},
	}
}

// roll restarts one replica after the other with another program.
func (d *drill) roll(binary string) {
	d.t.Helper()
	for _, m := range d.members {
		m.CLI("drain")
		m.Stop()
		m.use(d.t, binary)
		m.Resume()
		d.awaitStreams()
	}
}

// awaitStreams waits until the replicas together have all nodes.
func (d *drill) awaitStreams() {
	d.t.Helper()
	waittest.Eventually(d.t, recovered, 100*time.Millisecond, func() error { return d.connected(d.t.Context(), len(d.nodes)) })
}

// TestFailoverTimes measures how long writes and streams pause when something fails, and what a client of the API sees.
func TestFailoverTimes(t *testing.T) {
	if *duration == 0 && !*failover {
		t.Skip("runs with -chaos=60s")
	}
	t.Parallel()
	d := &drill{}
	dir := t.TempDir()
	d.before, d.after = filepath.Join(dir, "before"), filepath.Join(dir, "after")
	built, err := meshtest.Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(built, d.before); err != nil {
		t.Fatal(err)
	}
	nodes := 30
	if *failover {
		nodes = *nodeCount
		buildVersion(t, d.after, "9.9.9")
	}
	d.fleet = startFleet(t, fleetOptions{nodes: nodes, binary: d.before})
	d.marker = meshtest.NewCrowd(t, d.balancer.URL).Node("marker")
	d.must(d.marker.Register(t.Context(), d.authKey))
	t.Cleanup(d.marker.Disconnect)
	written := startScribe(d.db)
	d.workload = startWorkload(d.fleet, "")
	fmt.Fprintln(&d.table, "| failure | longest pause of writes | slowest write, with retries | longest pause of a node's stream | responses other than 200 | failed writes | nodes shown offline: all, with a working stream |")
	fmt.Fprintln(&d.table, "|---|---|---|---|---|---|---|")
	for _, f := range failures() {
		if *failover || f.short {
			d.measure(f)
		}
	}
	d.end()
	final, err := d.db.snapshot(t.Context())
	d.must(err)
	findings := slices.Concat(d.findings, written.end(t.Context(), final), chaos.Linearizable(d.history, linearizeLimit), chaos.Revisions(d.history), d.kept(), d.agree())
	for _, found := range findings[:min(len(findings), 20)] {
		t.Error(found)
	}
	if *failover {
		d.failOverAsynchronously()
		d.forgetEverything()
	}
	t.Log("\n" + d.table.String())
	keepArtefact(t, "failover.md", d.table.String())
}

// buildVersion builds the server with another version.
func buildVersion(t *testing.T, path, version string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w -X main.version="+version, "-o", path, "github.com/fairlead-mesh/fairlead/cmd/fairlead")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building version %s: %v\n%s", version, err, out)
	}
}

// measure causes a failure, waits until everything has recovered, and adds a row to the table.
func (d *drill) measure(f failure) {
	t := d.t
	t.Helper()
	if *failover {
		t.Logf("nodes on each replica before %s: %v", f.name, d.awaitBalance())
	}
	<-time.After(quietBefore)
	writesBefore, answersBefore := d.progress()
	began := time.Now()
	pauses := d.watchStreams()
	f.run(d)
	d.awaitStreams()
	marked := time.Now()
	waittest.Eventually(t, recovered, lookEvery, func() error { return d.seen(marked) })
	<-time.After(quietBefore)
	ended := time.Now()
	silences := pauses()
	nodes := silences.longest
	writes, answers := d.progress()
	writes = writes[len(writesBefore):]
	pause := longestPause(writes, began, ended)
	offline, wrong := d.shownOffline(began, silences)
	failed := d.undecided()
	fmt.Fprintf(&d.table, "| %s | %s | %s | %s | %s | %d | %d, %d |\n", f.name, seconds(pause), seconds(slowest(writes)), seconds(nodes), difference(answersBefore, answers), failed, offline, wrong)
	t.Logf("%s: writes paused for %v, streams for %v", f.name, pause, nodes)
	if pause > slack()*f.writes || nodes > slack()*f.nodes {
		t.Errorf("%s: writes paused for %v, want %v; streams for %v, want %v", f.name, pause, f.writes, nodes, f.nodes)
	}
	if wrong > f.wrong || failed > 0 {
		t.Errorf("%s: %d connected nodes were shown offline, %d writes failed", f.name, wrong, failed)
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// progress returns the writes and the responses so far.
func (w *workload) progress() ([]span, map[string]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.writes), maps.Clone(w.answers)
}

// undecided returns how many writes failed in spite of retries.
func (w *workload) undecided() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.history {
		if o.Return == 0 {
			n++
		}
	}
	return n
}

// difference lists the responses other than success between two moments.
func difference(before, after map[string]int) string {
	var parts []string
	for _, outcome := range slices.Sorted(maps.Keys(after)) {
		if n := after[outcome] - before[outcome]; n > 0 && outcome != "200" {
			parts = append(parts, fmt.Sprintf("%d × %s", n, outcome))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// longestPause returns the longest time between two ends of writes, in a period.
func longestPause(writes []span, began, ended time.Time) (longest time.Duration) {
	ends := []time.Time{began, ended}
	for _, w := range writes {
		if w.end.After(began) && w.end.Before(ended) {
			ends = append(ends, w.end)
		}
	}
	slices.SortFunc(ends, time.Time.Compare)
	for i := range ends[1:] {
		longest = max(longest, ends[i+1].Sub(ends[i]))
	}
	return longest
}

// silences are the periods in which nodes received nothing for a while.
type silences struct {
	longest time.Duration
	of      map[tailcfg.NodeID][]span
}

// add records when a node received two messages in succession.
func (s *silences) add(id tailcfg.NodeID, between span) {
	length := between.end.Sub(between.begin)
	s.longest = max(s.longest, length)
	if length > silent {
		s.of[id] = append(s.of[id], between)
	}
}

// explain reports whether a node that was shown offline had no working stream then, or a moment before.
func (s *silences) explain(id tailcfg.NodeID, shown time.Time) bool {
	return slices.ContainsFunc(s.of[id], func(p span) bool { return shown.After(p.begin) && shown.Before(p.end.Add(slack()*backWithin)) })
}

// watchStreams sends all nodes a change periodically. The returned function ends that, and returns when nodes received
// nothing.
func (d *drill) watchStreams() (stop func() *silences) {
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() {
		pace(ctx, markEvery, func(n int) {
			ctx, cancel := context.WithTimeout(ctx, mapLimit)
			defer cancel()
			if d.marker.Report(ctx, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 1}), uint16(1+n%65535))) != nil {
				d.marker.Disconnect() // the next attempt goes to another replica
			}
		})
	})
	found := &silences{of: map[tailcfg.NodeID][]span{}}
	wait.Go(func() {
		last := map[*meshtest.Node]time.Time{}
		began := time.Now()
		pace(ctx, lookEvery, func(int) {
			for _, n := range d.nodes {
				at := began
				n.Look(func(v *meshtest.View) {
					if v.At.After(at) {
						at = v.At
					}
				})
				if before, known := last[n]; known && at.After(before) {
					found.add(n.ID(), span{before, at})
				}
				last[n] = at
			}
		})
		for n, at := range last {
			found.add(n.ID(), span{at, time.Now()})
		}
	})
	return func() *silences { cancel(); wait.Wait(); return found }
}

// seen checks that every node has received something since a moment.
func (d *drill) seen(since time.Time) (err error) {
	for _, n := range d.nodes {
		n.Look(func(v *meshtest.View) {
			if v.At.Before(since) {
				err = fmt.Errorf("%s has received nothing for %v", n.Hostname, time.Since(v.At))
			}
		})
	}
	return err
}

// shownOffline returns how many of the nodes were shown offline to another one since a moment, and how many of them had a
// stream that worked.
func (d *drill) shownOffline(since time.Time, silences *silences) (all, wrong int) {
	ours, offline := map[tailcfg.NodeID]bool{}, map[tailcfg.NodeID]bool{}
	for _, n := range d.nodes {
		ours[n.ID()] = true
	}
	for _, n := range d.nodes {
		n.Look(func(v *meshtest.View) {
			for _, a := range v.Absences() {
				if ours[a.Peer] && a.Since.After(since) {
					offline[a.Peer] = offline[a.Peer] || !silences.explain(a.Peer, a.Since)
				}
			}
		})
	}
	for _, connected := range offline {
		if connected {
			wrong++
		}
	}
	return len(offline), wrong
}

// awaitBalance waits a while until every replica has its share of the nodes, so that a failure hits a third of them. It
// returns how many each has.
func (d *drill) awaitBalance() (held []int) {
	d.t.Helper()
	for deadline := time.Now().Add(balanceLimit); time.Now().Before(deadline); <-time.After(500 * time.Millisecond) {
		held = nil
		for _, m := range d.members {
			n, err := m.Metric(d.t.Context(), "mesh_streams_open")
			d.must(err)
			held = append(held, int(n))
		}
		if slices.Min(held) > len(d.nodes)/5 {
			break
		}
	}
	return held
}

// failOverAsynchronously adds the row of a primary that dies with changes which its standby does not have. Their
// revisions and IDs must not be used again.
func (d *drill) failOverAsynchronously() {
	t := d.t
	t.Helper()
	d.db.sync = false
	d.must(d.db.main().Synchronous(false))
	written := startScribe(d.db)
	d.workload = startWorkload(d.fleet, "async-")
	d.measure(failure{
		"primary killed, asynchronous standby promoted that lacks the last 2 s", false, 15 * time.Second, 15 * time.Second,
		func(d *drill) { d.loseChanges(func() {}) },
		len(d.nodes) / 20, // the database does not know that they moved in the last 2 s
	})
	d.end()
	lost := 0
	users, err := d.users(d.members[0])
	d.must(err)
	for _, u := range d.created {
		if !slices.Contains(users, u) && !d.deleted[u.Name] {
			lost++
		}
	}
	reported := 0.0
	for _, m := range d.members {
		n, err := m.Metric(t.Context(), "mesh_ledger_lost_revisions_total")
		d.must(err)
		reported = max(reported, n)
	}
	fmt.Fprintf(&d.table, "\nThe asynchronous failover lost %d acknowledged users; the replicas report %.0f lost revisions.\n", lost, reported)
	final, err := d.db.snapshot(t.Context())
	d.must(err)
	for _, found := range written.end(t.Context(), final) {
		t.Error(found)
	}
	if written.checker.Tally.Rewound == 0 || reported == 0 {
		t.Errorf("the log lost %d revisions, the replicas report %.0f", written.checker.Tally.Rewound, reported)
	}
}

// loseChanges cuts off the standby, waits, and promotes it. Before the promotion, it calls a function.
func (d *drill) loseChanges(then func()) {
	d.t.Helper()
	link := d.db.links[d.db.primary.Load()]
	link.Freeze()
	<-time.After(lostFor)
	then()
	d.db.failOver()
	<-time.After(repairAfter)
	link.Thaw()
	d.db.rebuild()
}

// forgetEverything is a failover after which no replica knows what was lost, so that nobody begins a new epoch. The
// checker must find that.
func (d *drill) forgetEverything() {
	t := d.t
	t.Helper()
	written := startScribe(d.db)
	create := func(name string) { d.members[0].CLI("users", "create", name) }
	create("kept")
	<-time.After(quietBefore)
	d.loseChanges(func() {
		create("forgotten")
		<-time.After(quietBefore) // the scribe reads it
		for _, m := range d.members {
			m.Kill()
		}
	})
	for _, m := range d.members {
		m.Resume()
	}
	create("other")
	final, err := d.db.snapshot(t.Context())
	d.must(err)
	findings := written.end(t.Context(), final)
	if len(findings) == 0 {
		t.Error("a failover after which revisions and IDs are used again was not found")
		return
	}
	t.Logf("found, as it should be: %v", findings[0])
}

func TestPausesAreMeasured(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(0, 0).Add(time.Duration(s * float64(time.Second))) }
	writes := []span{{at(0), at(1)}, {at(1), at(5)}, {at(1), at(4)}, {at(9), at(12)}}
	for name, c := range map[string]struct {
		got, want time.Duration
	}{
		"between writes":    {longestPause(writes, at(0), at(6)), 3 * time.Second},
		"no write at all":   {longestPause(nil, at(0), at(6)), 6 * time.Second},
		"until the end":     {longestPause(writes, at(0), at(10)), 5 * time.Second},
		"slowest of writes": {slowest(writes), 4 * time.Second},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	quiet := &silences{of: map[tailcfg.NodeID][]span{}}
	quiet.add(1, span{at(1), at(2)})
	quiet.add(1, span{at(2), at(9)})
	if quiet.longest != 7*time.Second || !quiet.explain(1, at(8)) || quiet.explain(1, at(1.5)) || quiet.explain(1, at(60)) || quiet.explain(2, at(8)) {
		t.Errorf("silences: %+v", quiet)
	}
	if got := difference(map[string]int{"200": 1, "503": 2}, map[string]int{"200": 5, "503": 4, "no response": 1}); got != "2 × 503, 1 × no response" {
		t.Errorf("responses: %s", got)
	}
}
