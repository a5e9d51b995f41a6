//go:build !race

package load

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	// tolerance is how far a ratio may be above the recorded one.
	tolerance = 1.3
	// busy is how much CPU time other programs may use, in percent of a core, while ratios are compared with recorded ones, which
	// are the medians of several runs on a quiet machine. On busy machines, the ratio of reconnecting varied between 1.1 and 2.4.
	busy = 100
)

// TestRatioToReference limits how much more CPU time and memory fairlead may use than the reference
// server, which has no database and no policy and encodes every message only once. With 500 nodes, the default, each ratio is
// compared with the recorded one, so that no change makes the server much slower without being noticed. Record a lower ratio when
// you improve one. With other numbers of nodes, and on a busy machine, the limits are the promised ones. One round is enough if all
// ratios are within their limits. If not, the medians of several rounds decide.
func TestRatioToReference(t *testing.T) {
	size := ratioNodes()
	figures := []ratioFigure{
		{"register until settled, CPU s", 4, 1.1, func(o map[string]outcome) float64 { return o["register"].CPU }},
		{"endpoint change, CPU ms", 3, 0.8, func(o map[string]outcome) float64 { return o["fanout-endpoint"].CPUPerChange }},
		{"all reconnecting, CPU s", 3, 1.3, func(o map[string]outcome) float64 { return o["reconnect"].CPU }},
		{"idle node, RSS kB", 2, 0.35, func(o map[string]outcome) float64 { return o["idle"].RSSPerNode }},
	}
	b := build(t)
	var ours, reference []map[string]outcome
	var problems []string
	for round := 1; round <= *rounds && (round == 1 || len(problems) > 0); round++ {
		// Each server runs in its own subtest, which stops it at the end, so that it is measured alone.
		t.Run("fairlead", func(t *testing.T) {
			s, _ := b.startFairlead(t)
			ours = append(ours, s.scenarios(t, size))
		})
		t.Run("reference", func(t *testing.T) {
			reference = append(reference, b.startReference(t, size).scenarios(t, size))
		})
		if len(ours) < round || len(reference) < round {
			t.Fatal("a run did not come to its end")
		}
		var table string
		table, problems = compareRatios(size, figures, ours, reference)
		t.Log(table)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}

// ratioFigure is a figure of fairlead that is compared with that of the reference.
type ratioFigure struct {
	name            string
	limit, recorded float64
	of              func(map[string]outcome) float64
}

// compareRatios compares the medians of all rounds with their limits.
func compareRatios(size int, figures []ratioFigure, ours, reference []map[string]outcome) (table string, problems []string) {
	var b strings.Builder
	others := max(median(ours, busiest), median(reference, busiest))
	fmt.Fprintf(&b, "\n%-30s %10s %10s %7s %6s\n", fmt.Sprintf("%d nodes", size), "fairlead", "reference", "ratio", "limit")
	for _, f := range figures {
		our, their := median(ours, f.of), median(reference, f.of)
		ratio, limit := our/their, f.limit
		if size == small && others <= busy {
			limit = tolerance * f.recorded
		}
		fmt.Fprintf(&b, "%-30s %10.2f %10.2f %7.2f %6.2f\n", f.name, our, their, ratio, limit)
		if !(ratio <= limit) { // also fails if nothing was measured
			problems = append(problems, fmt.Sprintf("%s: %.2f times the reference, more than %.2f", f.name, ratio, limit))
		}
	}
	fmt.Fprintf(&b, "%-30s %10.0f %10.0f\n", "other programs, % of a core", median(ours, busiest), median(reference, busiest))
	if others > busy {
		b.WriteString("The machine is too busy to compare with recorded ratios.\n")
	}
	return b.String(), problems
}

// ratioNodes returns the number of nodes for which ratios are recorded, unless a flag sets another one.
func ratioNodes() int {
	size := small
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "nodes" {
			size = *nodes
		}
	})
	return size
}

// scenarios runs the scenarios to compare. They are shorter for a small mesh, in which each step is cheap.
func (s target) scenarios(t *testing.T, size int) map[string]outcome {
	t.Helper()
	flags := []string{"--changes=30", "--idle-for=10s", "--quiet=3s", idleAfter}
	if size <= small {
		// Idle for long enough that returning memory after the registrations does not count as part of the changes.
		flags = []string{"--changes=100", "--pause=200ms", "--joins=0", "--idle-for=6s", "--quiet=1s"}
	}
	return s.load(t, "register,idle,fanout,reconnect", nil, append(flags, "--n="+strconv.Itoa(size))...)
}

func median(rounds []map[string]outcome, figure func(map[string]outcome) float64) float64 {
	var all []float64
	for _, round := range rounds {
		all = append(all, figure(round))
	}
	slices.Sort(all)
	return all[len(all)/2]
}
