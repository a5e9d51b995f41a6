//go:build !race

package chaos_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/chaos"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

var (
	seed      = flag.Uint64("seed", 0, "chooses the faults of the run with a whole deployment; zero: a random one, which is printed")
	nodeCount = flag.Int("nodes", 300, "virtual nodes of a whole deployment")
	artefacts = flag.String("artefacts", "", "directory for the summary, the history and the logs of a run")
	strict    = flag.Bool("strict", false, "enforce the promised times, on a machine with nothing else to do")
)

const (
	// The promised times after the last fault.
	mapsWithin     = 10 * time.Second
	presenceWithin = 15 * time.Second
	// busy is by how much a busy machine may exceed them.
	busy = 6

	progressEvery  = 30 * time.Second
	linearizeLimit = 2 * time.Minute // for each register
)

// slack is by how much this run may exceed promised times.
func slack() time.Duration {
	if *strict {
		return 1
	}
	return busy
}

// run is one run with a whole deployment.
type run struct {
	*fleet
	*workload
	seed   uint64
	began  time.Time
	mu     sync.Mutex
	faults strings.Builder // guarded by mu
}

// log records what happens to the fleet.
func (r *run) log(format string, args ...any) {
	line := fmt.Sprintf("%6.1fs %s", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
	r.t.Log(line)
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(&r.faults, line)
}

// TestDeploymentKeepsItsPromisesWhileEverythingBreaks runs for the duration of -chaos: a minute in CI, and half
// an hour with make chaos-long.
func TestDeploymentKeepsItsPromisesWhileEverythingBreaks(t *testing.T) {
	if *duration == 0 {
		t.Skip("runs with -chaos=60s")
	}
	t.Parallel()
	r := &run{seed: *seed}
	if r.seed == 0 {
		r.seed = rand.Uint64()
	}
	t.Logf("-seed=%d", r.seed)
	binary, err := meshtest.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r.fleet = startFleet(t, fleetOptions{nodes: *nodeCount, clients: 4, binary: binary})
	t.Cleanup(r.keep)
	written := startScribe(r.db)
	r.workload = startWorkload(r.fleet, "")
	r.began = r.workload.began
	stop := r.report()
	defer stop()

	b := &breaker{fleet: r.fleet, random: rand.New(rand.NewPCG(r.seed, 0)), short: *duration < 5*time.Minute, broken: r.availability.Broken}
	counts, healed := b.wreak(*duration, r.log)
	availability := r.availability.Text(time.Now())
	r.end()
	stop()
	r.log("all requests are answered")
	took, final, err := r.converge(healed, slack()*mapsWithin, slack()*presenceWithin)
	if err != nil {
		t.Error(err)
	}
	if final == nil {
		t.Fatal("there is no final snapshot")
	}
	findings := slices.Concat(r.findings, written.end(t.Context(), final), chaos.Linearizable(r.history, linearizeLimit), chaos.Revisions(r.history), r.kept(), r.agree(), r.streams())
	for _, found := range findings[:min(len(findings), 20)] {
		t.Error(found)
	}
	r.checkEnough()
	r.summarize(counts, took, availability, len(findings))
}

// report prints the progress until the returned function is called.
func (r *run) report() (stop func()) {
	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			r.log("writes: %s; available: %s", r.tally(), r.availability.Text(time.Now()))
		}
	})
	return sync.OnceFunc(func() { close(done); wait.Wait() })
}

// streams ends the TCP streams between clients, which must have worked until now.
func (r *run) streams() (found []chaos.Finding) {
	for _, k := range r.talks {
		err := awaitMore(k.Bytes)
		if err = errors.Join(err, k.End()); err != nil {
			found = append(found, chaos.Finding{Sort: chaos.Error, Text: err.Error()})
		}
	}
	return found
}

// awaitMore waits until a number grows.
func awaitMore(number func() int64) error {
	before := number()
	for range 600 {
		if number() > before {
			return nil
		}
		<-time.After(100 * time.Millisecond)
	}
	return fmt.Errorf("a TCP stream between clients stands still after %d bytes", before)
}

// checkEnough fails a run in which too little happened.
func (r *run) checkEnough() {
	r.t.Helper()
	seconds := int(duration.Seconds())
	for what, n := range map[string]struct{ got, want int }{
		"successful writes":            {r.answers["200"], seconds / 2},
		"operations on registers":      {len(r.history), seconds},
		"users created":                {len(r.created), seconds / 10},
		"single-use keys used by two":  {r.races, seconds / 60},
		"TCP streams between clients":  {len(r.talks), 2},
		"KiB through the first stream": {int(r.talks[0].Bytes() >> 10), seconds / 4},
	} {
		if n.got < n.want {
			r.t.Errorf("%s: %d, want at least %d", what, n.got, n.want)
		}
	}
}

// summarize prints the result as Markdown.
func (r *run) summarize(counts map[string]int, took converged, availability string, findings int) {
	var text strings.Builder
	fmt.Fprintf(&text, "| | |\n|---|---|\n| duration, seed | %v, %d |\n", time.Since(r.began).Round(time.Second), r.seed)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&text, "| %s | %s |\n", name, fmt.Sprintf(format, args...))
	}
	row("deployment", "%d replicas, primary with a synchronous standby, %d virtual nodes, %d real clients", len(r.members), len(r.nodes), len(r.clients))
	row("broken promises", "%d", findings)
	unknown := 0
	for _, o := range r.history {
		if o.Return == 0 {
			unknown++
		}
	}
	row("attempts to write, by response", "%s", r.tally())
	row("writes that failed despite retries", "%d", unknown)
	row("slowest successful write, with retries", "%v", slowest(r.writes).Round(time.Millisecond))
	row("operations checked for linearizability", "%d on %d registers", len(r.history), len(r.registers))
	row("single-use keys used by two devices at once", "%d", r.races)
	row("a write and a map request succeed", "%s", availability)
	row("all maps equal the final snapshot after the last fault", "%v (promised: %v)", took.maps.Round(time.Millisecond), mapsWithin)
	row("presence correct after the last fault", "%v (promised: %v)", took.presence.Round(time.Millisecond), presenceWithin)
	for i, k := range r.talks {
		row(fmt.Sprintf("TCP stream %d", i+1), "%d KiB, longest pause %v", k.Bytes()>>10, k.Stalled())
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		row("fault: "+name, "%d", counts[name])
	}
	r.t.Log("\n" + text.String())
	r.save("summary.md", text.String())
}

// keep writes what helps to find out what went wrong.
func (r *run) keep() {
	if *artefacts == "" || r.workload == nil {
		return
	}
	r.save("seed", fmt.Sprintln(r.seed))
	r.save("faults.txt", r.faults.String())
	var history strings.Builder
	for _, o := range r.history {
		line, _ := json.Marshal(o) // cannot fail
		fmt.Fprintf(&history, "%s\n", line)
	}
	r.save("history.jsonl", history.String())
	for i, m := range r.members {
		r.save(fmt.Sprintf("replica-%d.log", i), m.Transcript())
	}
}

func (r *run) save(name, text string) { keepArtefact(r.t, name, text) }

// keepArtefact writes a file to the directory for artefacts, if there is one.
func keepArtefact(t *testing.T, name, text string) {
	t.Helper()
	if *artefacts == "" {
		return
	}
	err := os.MkdirAll(*artefacts, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(*artefacts, name), []byte(text), 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}
