//go:build !race

package load

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

// databaseMeter measures what scenarios cost PostgreSQL.
type databaseMeter struct {
	t    *testing.T
	pg   *pgtest.Server
	last databaseUse
	used map[string]databaseUse // by scenario
}

// databaseUse is a number of transactions, and of bytes of the write-ahead log.
type databaseUse struct{ commits, bytes float64 }

func newDatabaseMeter(t *testing.T, pg *pgtest.Server) *databaseMeter {
	return &databaseMeter{t: t, pg: pg, used: map[string]databaseUse{}}
}

// note records the use since the last call as that of a scenario.
func (m *databaseMeter) note(scenario string) {
	m.t.Helper()
	conn, err := pgx.Connect(m.t.Context(), m.pg.URL("postgres"))
	if err != nil {
		m.t.Fatal(err)
	}
	defer conn.Close(m.t.Context())
	var now databaseUse
	if err := conn.QueryRow(m.t.Context(), "SELECT sum(xact_commit)::float8, (pg_current_wal_lsn() - '0/0')::float8 FROM pg_stat_database").Scan(&now.commits, &now.bytes); err != nil {
		m.t.Fatal(err)
	}
	m.used[scenario] = databaseUse{now.commits - m.last.commits, now.bytes - m.last.bytes}
	m.last = now
}

// table shows the use per node that registers or reconnects, per change, and per second of an idle server.
func (m *databaseMeter) table(nodes int, idleSeconds float64) string {
	var b strings.Builder
	b.WriteString("| PostgreSQL | transactions | bytes of WAL |\n|---|---|---|\n")
	for _, row := range []struct {
		name, scenario string
		units          float64
	}{
		{"registration, first update and stream of a node", "register", float64(nodes)},
		{"idle server, per second", "idle", idleSeconds},
		{"endpoint change", "fanout-endpoint", float64(scaleChanges(nodes))},
		{"node that reconnects", "reconnect", float64(nodes)},
	} {
		u := m.used[row.scenario]
		fmt.Fprintf(&b, "| %s | %.3g | %.0f |\n", row.name, u.commits/row.units, u.bytes/row.units)
	}
	return b.String()
}
