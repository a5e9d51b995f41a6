//go:build !race

package load

import (
	"flag"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

var (
	storm = flag.Int("storm", 0, "number of nodes, nine tenths of which reconnect at once; 0 skips the test")
	spin  = flag.Bool("spin", false, "keep a core busy with other work meanwhile")
)

// TestStorm limits what it costs when nine tenths of all nodes reconnect at once, and how long the others wait for changes
// meanwhile. No node may have to connect twice.
func TestStorm(t *testing.T) {
	if *storm == 0 {
		t.Skip("see make storm")
	}
	b := build(t)
	var ours, reference outcome
	t.Run("fairlead", func(t *testing.T) {
		s, _ := b.startFairlead(t)
		ours = s.reconnectMost(t)
	})
	t.Run("reference", func(t *testing.T) { reference = b.startReference(t).reconnectMost(t) })
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-42s %10s %10s %7s\n", fmt.Sprintf("%d of %d nodes reconnect", *storm*9/10, *storm), "fairlead", "reference", "limit")
	for _, row := range []struct {
		name       string
		our, their float64
		limit      float64 // 0 means no limit
	}{
		{"CPU s", ours.CPU, reference.CPU, 1.1 * reference.CPU},
		{"peak memory, MB", ours.PeakRSS, reference.PeakRSS, 1200},
		{"last map after s", ours.ConvergedAfter, reference.ConvergedAfter, 0},
		{"last message after s", ours.SettledAfter, reference.SettledAfter, 0},
		{"change among the others, 99 % within ms", ours.LagP99, reference.LagP99, 500},
		{"change among the others, half within ms", ours.LagP50, reference.LagP50, 0},
		{"other programs, % of a core", ours.OtherPercent, reference.OtherPercent, 0},
	} {
		limit := ""
		if row.limit > 0 {
			limit = fmt.Sprintf("%7.0f", row.limit)
			if !(row.our > 0 && row.our <= row.limit) { // also fails if nothing was measured
				t.Errorf("%s: %.2f, more than %.2f", row.name, row.our, row.limit)
			}
		}
		fmt.Fprintf(&table, "%-42s %10.2f %10.2f %s\n", row.name, row.our, row.their, limit)
	}
	t.Log(table.String())
}

// reconnectMost connects the nodes, and lets nine tenths of them reconnect.
func (s target) reconnectMost(t *testing.T) outcome {
	t.Helper()
	after := func(scenario string) {
		if *spin && scenario == "register" {
			keepCoreBusy(t)
		}
	}
	return s.load(t, "register,storm", after, "--n="+strconv.Itoa(*storm), "--register-first", "--rate=20")["storm"]
}

// keepCoreBusy uses a core until the test ends.
func keepCoreBusy(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // killed with the test's context
}
