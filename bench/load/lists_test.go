//go:build !race

package load

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

var (
	listsFor     = flag.Duration("lists", 3*time.Second, "how long lists are read in one turn")
	listsTurns   = flag.Int("turns", 2, "turns of reading lists")
	listsChanges = flag.Int("changes", 20, "changes per second beside lists")
)

// TestFigureLists limits the cost of a hundred list requests per second, half of them for all nodes and half
// for pages of a hundred: how long a page takes while all nodes are connected and idle, and how much more CPU
// time the server needs to send a change to a node. The scenario in meshbench describes how the CPU time is
// measured.
//
// The time of a page is checked only if other programs leave half of the machine free. Its time during
// changes is printed but not checked: a change wakes all nodes at once, including those in the generator, so
// on a small machine the figure mostly shows how long the server and the generator take for that.
func TestFigureLists(t *testing.T) {
	s, _ := build(t).startFairlead(t)
	o := s.load(t, "lists", nil, "--api-key="+s.apiKey, "--register-first", "--quiet=1s",
		"--lists-for="+listsFor.String(), fmt.Sprintf("--lists-turns=%d", *listsTurns), fmt.Sprintf("--rate=%d", *listsChanges))["lists"]

	rise, page := 10., 50.
	if o.OtherPercent > 100*float64(runtime.NumCPU())/2 {
		t.Logf("other programs use %.0f %% of a core: the time of a page is not held", o.OtherPercent)
		page = 0
	}
	if *nodes <= small {
		rise = 25 // a short run uses little CPU time, which is measured in steps of 10 ms
	}
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-44s %10s %6s\n", fmt.Sprintf("%d nodes, %d requests", *nodes, o.Requests), "fairlead", "limit")
	for _, row := range []struct {
		name          string
		figure, limit float64 // 0 means no limit
	}{
		{"page of 100, 99 % within ms", o.PagedP99, page},
		{"CPU to tell of a change, rise in %", o.CPURise, rise},
		{"CPU to tell of a change alone, µs", o.ToldAlone, 0},
		{"CPU to tell of a change beside lists, µs", o.ToldBeside, 0},
		{"CPU of lists alone, % of a core", o.ListsCPU, 0},
		{"whole list, kB", o.WholeBytes / 1000, 0},
		{"whole list, 99 % within ms", o.WholeP99, 0},
		{"page beside changes, half within ms", o.BesideP50, 0},
		{"page beside changes, 99 % within ms", o.BesideP99, 0},
		{"other programs, % of a core", o.OtherPercent, 0},
	} {
		limit := ""
		if row.limit > 0 {
			limit = fmt.Sprintf("%6g", row.limit)
			if !(row.figure <= row.limit) { // also fails if nothing was measured
				t.Errorf("%s: %.2f, more than %g", row.name, row.figure, row.limit)
			}
		}
		fmt.Fprintf(&table, "%-44s %10.2f %s\n", row.name, row.figure, limit)
	}
	t.Log(table.String())
	if want := *listsTurns * int(100*listsFor.Seconds()); o.Requests < want {
		t.Errorf("only %d requests of %d were made", o.Requests, want)
	}
}
