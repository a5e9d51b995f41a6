//go:build !race

package load

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	scale      = flag.String("scale", "", "numbers of nodes to measure, separated by commas; empty skips the test")
	generators = flag.Int("generators", 1, "how many processes run the nodes; one can have about 9,000")
	rules      = flag.Int("rules", 0, "rules of the access policy, with which a node sees about 3/RULES of the others; 0 allows everything")
	results    = flag.String("results", "", "directory for tables and plots")
)

// scaleChanges returns how many changes are measured. CPU time is counted in steps of 10 ms, so cheap changes take many of them.
// Pauses between them are short, because an idle server also needs CPU time.
func scaleChanges(n int) int { return max(30, 150_000/n) }

// row is what was measured with one number of nodes.
type row struct {
	nodes           int
	ours, reference map[string]outcome
	headscale       map[string]outcome // what it finished; nil if it was not measured
}

// scaleFigures are the columns of the table. Each that has a file is also a plot.
var scaleFigures = []struct {
	name, file, scenario string
	of                   func(outcome) float64
}{
	{"register, CPU s", "register", "register", func(o outcome) float64 { return o.CPU }},
	{"one endpoint change, CPU ms", "change", "fanout-endpoint", func(o outcome) float64 { return o.CPUPerChange }},
	{"until the last node has it, ms", "", "fanout-endpoint", func(o outcome) float64 { return o.LastNode }},
	{"all reconnect, CPU s", "reconnect", "reconnect", func(o outcome) float64 { return o.CPU }},
	{"until the last map is complete, s", "", "reconnect", func(o outcome) float64 { return o.ConvergedAfter }},
	{"all reconnect, peak MB", "peak", "reconnect", func(o outcome) float64 { return o.PeakRSS }},
	{"idle, kB per node", "memory", "idle", func(o outcome) float64 { return o.RSSPerNode }},
	{"idle, % of a core", "idle", "idle", func(o outcome) float64 { return o.CPUPercent }},
}

// TestScale measures fairlead and the reference with several numbers of nodes, one after the other in the same run, and writes a
// table and plots. With several generators, all but one only keep their nodes connected: the changes reach the nodes of all of
// them, and what registers and reconnects are the nodes of the last one.
func TestScale(t *testing.T) {
	if *scale == "" {
		t.Skip("see make scale")
	}
	b := build(t)
	var rows []row
	for _, text := range strings.Split(*scale, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < *generators {
			t.Fatalf("-scale=%s: %q is not a number of nodes", *scale, text)
		}
		r := row{nodes: n}
		t.Run(text+"/fairlead", func(t *testing.T) {
			s, pg := b.startFairlead(t)
			var policy []string
			if *rules > 0 {
				policy = s.prepareRing(t, *rules)
			}
			m := newDatabaseMeter(t, pg)
			r.ours = s.scaled(t, n, m.note, policy...)
			t.Log("\n" + m.table(n / *generators, r.ours["idle"].Wall))
		})
		if *rules == 0 { // the reference has no policy
			t.Run(text+"/reference", func(t *testing.T) { r.reference = b.startReference(t, n).scaled(t, n, nil) })
		}
		if *headscale != "" && *rules == 0 {
			t.Run(text+"/headscale", func(t *testing.T) {
				r.headscale = startHeadscale(t, *headscale, b.meshbench).attempt(t, scaleScenarios, scaleFlags(n)...)
			})
		}
		if r.ours == nil {
			t.Fatalf("%d nodes: the run did not come to its end", n)
		}
		if *rules == 0 && len(r.reference) < len(r.ours) { // the row is kept
			t.Errorf("%d nodes: the reference did not finish all scenarios", n)
		}
		rows = append(rows, r)
		t.Log("\n" + scaleTable(rows))
		if *results != "" { // after each row, because the next one may take hours
			writeScale(t, *results, rows)
		}
	}
}

// scaled runs the scenarios with n nodes in several processes.
func (s target) scaled(t *testing.T, n int, after func(scenario string), policy ...string) map[string]outcome {
	t.Helper()
	share := n / *generators
	for range *generators - 1 {
		s.hold(t, share, policy...)
	}
	if after != nil {
		after("") // what follows is measured
	}
	flags := append(scaleFlags(n-share*(*generators-1)), policy...)
	if s.server == nil { // with many nodes, the generator runs out of memory when those of the reference reconnect
		return s.attempt(t, scaleScenarios, append(flags, "--step-limit=20m")...)
	}
	return s.load(t, scaleScenarios, after, flags...)
}

const scaleScenarios = "register,idle,fanout,reconnect"

// idleAfter is a flag with which an idle server is measured only after it has returned memory to the operating system, which
// fairlead does five seconds after the last full map.
const idleAfter = "--idle-after=10s"

func scaleFlags(n int) []string {
	flags := []string{"--changes=" + strconv.Itoa(scaleChanges(n)), "--pause=200ms", "--quiet=3s", "--idle-for=" + idle.String(), idleAfter, "--n=" + strconv.Itoa(n)}
	if n > many {
		flags = append(flags, largeCrowd()...)
	}
	return flags
}

// largeCrowd returns flags with which the generator is not the bottleneck.
func largeCrowd() []string { return []string{"--register-first", "--read-every=16"} }

// hold keeps n nodes connected until the test ends.
func (s target) hold(t *testing.T, n int, flags ...string) outcome {
	t.Helper()
	cmd, out, problem := s.start(t, append([]string{
		"register,idle", "--url=" + s.url, "--auth-key=" + s.authKey, "--n=" + strconv.Itoa(n), "--idle-for=24h", "--register-first",
		"--quiet=0s", // they are not alone: other nodes join meanwhile
	}, flags...)...)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	var o outcome
	if err := json.NewDecoder(out).Decode(&o); err != nil || o.Converged == nil || !*o.Converged || o.Failed > 0 {
		t.Fatalf("%d nodes are not connected: %v, %+v\n%s", n, err, o, problem.Bytes())
	}
	return o
}

func scaleTable(rows []row) string {
	var b strings.Builder
	b.WriteString("| nodes |")
	for _, f := range scaleFigures {
		fmt.Fprintf(&b, " %s |", f.name)
	}
	b.WriteString(" other programs, % of a core |\n|---|" + strings.Repeat("---|", len(scaleFigures)+1) + "\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %d |", r.nodes)
		for _, f := range scaleFigures {
			our, their := f.of(r.ours[f.scenario]), f.of(r.reference[f.scenario])
			fmt.Fprintf(&b, " %.4g", our)
			if their > 0 {
				fmt.Fprintf(&b, " / %.4g = %.2f", their, our/their)
			}
			b.WriteString(" |")
		}
		fmt.Fprintf(&b, " %.0f / %.0f |\n", busiest(r.ours), busiest(r.reference))
		if r.headscale == nil {
			continue
		}
		fmt.Fprintf(&b, "| %d, Headscale |", r.nodes)
		for _, f := range scaleFigures {
			if o, finished := r.headscale[f.scenario]; finished {
				fmt.Fprintf(&b, " %.4g |", f.of(o))
			} else {
				b.WriteString(" did not finish |")
			}
		}
		fmt.Fprintf(&b, " %.0f |\n", busiest(r.headscale))
	}
	return b.String()
}

func writeScale(t *testing.T, dir string, rows []row) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("Measured %s with %d generators and %d rules (the reference has none). Each cell is fairlead / reference = ratio.\n\n%s", time.Now().UTC().Format(time.DateOnly), *generators, *rules, scaleTable(rows))
	files := map[string]string{"scale.md": text}
	for _, f := range scaleFigures {
		if f.file == "" {
			continue
		}
		var ours, reference []point
		for _, r := range rows {
			ours = append(ours, point{float64(r.nodes), f.of(r.ours[f.scenario])})
			if _, finished := r.reference[f.scenario]; finished {
				reference = append(reference, point{float64(r.nodes), f.of(r.reference[f.scenario])})
			}
		}
		files[f.file+".svg"] = plot(f.name, ours, reference)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
