//go:build !race

package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestRatioToReference limits how much more CPU time and memory fairlead may use than the reference
// server, which has no database and no policy and encodes every message only once.
func TestRatioToReference(t *testing.T) {
	figures := []struct {
		name  string
		limit float64
		of    func(map[string]outcome) float64
	}{
		{"register until settled, CPU s", 4, func(o map[string]outcome) float64 { return o["register"].CPU }},
		{"endpoint change, CPU ms", 3, func(o map[string]outcome) float64 { return o["fanout-endpoint"].CPUPerChange }},
		{"all reconnecting, CPU s", 3, func(o map[string]outcome) float64 { return o["reconnect"].CPU }},
		{"idle node, RSS kB", 2, func(o map[string]outcome) float64 { return o["idle"].RSSPerNode }},
	}
	b := build(t)
	var ours, reference []map[string]outcome
	for range *rounds {
		// Each server runs in its own subtest, which stops it at the end, so that it is measured alone.
		t.Run("fairlead", func(t *testing.T) {
			s, _ := b.startFairlead(t)
			ours = append(ours, s.scenarios(t))
		})
		t.Run("reference", func(t *testing.T) {
			reference = append(reference, b.startReference(t).scenarios(t))
		})
	}
	if len(ours) < *rounds || len(reference) < *rounds {
		t.Fatal("a run did not come to its end")
	}
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-30s %10s %10s %7s %6s\n", fmt.Sprintf("%d nodes", *nodes), "fairlead", "reference", "ratio", "limit")
	for _, f := range figures {
		our, their := median(ours, f.of), median(reference, f.of)
		ratio := our / their
		fmt.Fprintf(&table, "%-30s %10.2f %10.2f %7.2f %6.0f\n", f.name, our, their, ratio, f.limit)
		if !(ratio <= f.limit) { // also fails if nothing was measured
			t.Errorf("%s: %.2f times the reference, more than %.0f", f.name, ratio, f.limit)
		}
	}
	fmt.Fprintf(&table, "%-30s %10.0f %10.0f\n", "other programs, % of a core", median(ours, busiest), median(reference, busiest))
	t.Log(table.String())
}

// scenarios runs the scenarios to compare. They are shorter for a small mesh, in which each step is cheap.
func (s target) scenarios(t *testing.T) map[string]outcome {
	t.Helper()
	flags := []string{"--changes=30", "--idle-for=10s", "--quiet=3s"}
	if *nodes <= small {
		flags = []string{"--changes=20", "--idle-for=2s", "--quiet=1s"}
	}
	return s.load(t, "register,idle,fanout,reconnect", nil, flags...)
}

func median(rounds []map[string]outcome, figure func(map[string]outcome) float64) float64 {
	var all []float64
	for _, round := range rounds {
		all = append(all, figure(round))
	}
	slices.Sort(all)
	return all[len(all)/2]
}
