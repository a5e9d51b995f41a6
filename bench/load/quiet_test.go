//go:build !race

package load

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

const (
	small = 500  // number of nodes in a short run
	many  = 1000 // number of nodes for which the specification sets targets
)

// TestFigureQuietNodes limits the cost of nodes that are connected, know each other and are idle. The targets
// of the specification apply to up to a thousand nodes; with more nodes, memory is not limited, but the CPU
// limit is lower. In both cases there must be no messages except keep-alives.
func TestFigureQuietNodes(t *testing.T) {
	s, pg := build(t).startFairlead(t)
	flags := []string{"--idle-for=" + idle.String(), idleAfter}
	if *nodes > many {
		flags = append(flags, largeCrowd()...)
	}
	pg.Exec(t, "postgres", "CREATE EXTENSION pg_stat_statements")
	o := s.load(t, "register,idle", func(scenario string) {
		if scenario == "register" {
			pg.Exec(t, "postgres", "SELECT pg_stat_statements_reset()")
		}
	}, flags...)["idle"]

	cpu, rss := 10., 512.
	if *nodes > many {
		cpu, rss = 5, math.Inf(1)
	}
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-36s %10s %6s\n", fmt.Sprintf("%d quiet nodes for %v", *nodes, *idle), "fairlead", "limit")
	for _, row := range []struct {
		name          string
		figure, limit float64
	}{
		{"CPU, % of a core", o.CPUPercent, cpu},
		{"RSS at most, MB", o.PeakRSS, rss},
		{"written with PostgreSQL, MB/s", (o.Written + o.DBWritten) / o.Wall, 10},
		{"slowest statement, ms", slowestStatement(t, pg), 1000},
		{"messages that are no keep-alive", float64(o.MapMessages), 0},
	} {
		fmt.Fprintf(&table, "%-36s %10.2f %6g\n", row.name, row.figure, row.limit)
		if !(row.figure <= row.limit) {
			t.Errorf("%s: %.2f, more than %g", row.name, row.figure, row.limit)
		}
	}
	fmt.Fprintf(&table, "%-36s %10d\n", "keep-alives", o.KeepAlives)
	fmt.Fprintf(&table, "%-36s %10.0f\n", "other programs, % of a core", o.OtherPercent)
	t.Log(table.String())
	if o.Wall < idle.Seconds() {
		t.Errorf("measured for %.1f s only", o.Wall)
	}
}

// slowestStatement returns the longest duration of a statement in PostgreSQL since the last reset, in
// milliseconds.
func slowestStatement(t *testing.T, pg *pgtest.Server) (ms float64) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pg.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), "SELECT max(max_exec_time) FROM pg_stat_statements").Scan(&ms); err != nil {
		t.Fatal(err)
	}
	return ms
}
