//go:build !race

package sqlstore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/store/storetest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

// Loading a large mesh takes at most three times as long as scanning the same columns
// into variables, although Load also parses keys and addresses and builds all indexes. It
// does not run under the race detector, which would slow down only Load.
func TestRatioLoadKeepsUpWithPlainScan(t *testing.T) {
	const nodes, online, most, tries = 50_000, 10_000, 3, 15
	server := startPostgres(t, pgtest.Options{Durable: true})
	c := configOf(server, server.Database(t))
	s, conn := openPostgres(t, c), session(t, server.URL(c.Name))
	seed(t, s, nodes, online)
	run(t, conn, "VACUUM ANALYZE")

	queries := plainQueries(t)
	var ratios []float64
	for range tries { // alternating, so that both see the same load on the machine
		start := time.Now()
		snap, err := s.Load(t.Context())
		load := time.Since(start)
		if err != nil || snap.Nodes.Len() != nodes || snap.Nodes.OnlineCount() != online {
			t.Fatalf("loaded %d nodes, %d online (%v)", snap.Nodes.Len(), snap.Nodes.OnlineCount(), err)
		}
		start = time.Now()
		rows := plainScan(t, conn, queries)
		scan := time.Since(start)
		if rows != 2*nodes+1 {
			t.Fatalf("read %d rows", rows)
		}
		ratios = append(ratios, float64(load)/float64(scan))
	}
	slices.Sort(ratios)
	median := ratios[tries/2]
	t.Logf("a load takes %.2f times as long as a plain scan (from %.2f to %.2f)", median, ratios[0], ratios[tries-1])
	if median > most {
		t.Errorf("a load takes %.2f times as long as a plain scan, at most %d", median, most)
	}
}

// seed creates one user with many nodes, all with network information.
func seed(t *testing.T, s store.Store, nodes, online mesh.NodeID) {
	t.Helper()
	rev := storetest.Append(t, s, user(1))
	for id := mesh.NodeID(1); id <= nodes; {
		err := s.Lock(t.Context(), rev, storetest.Batch(), func(tx store.Tx) error {
			var evs []mesh.Event
			for range 1000 {
				evs = append(evs, mesh.NodePut{Node: meshgen.Node(id, 1)}, mesh.NodeNet{ID: id, Net: meshgen.Net(int(id))})
				if id <= online {
					evs = append(evs, mesh.Online{ID: id, Replica: "replica-a", Conn: int64(id), At: meshgen.Start})
				}
				id++
			}
			var err error
			rev, err = tx.Append(store.Command{Events: evs})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// plainQueries returns, for the tables that have rows, queries of the columns that
// Load reads, each with the variables to scan into.
func plainQueries(t *testing.T) map[string][]any {
	t.Helper()
	newest, err := sqlstore.NewestSchema()
	if err != nil {
		t.Fatal(err)
	}
	tables, err := sqlstore.Tables(t.Context(), newest)
	if err != nil {
		t.Fatal(err)
	}
	queries := map[string][]any{}
	for _, table := range tables {
		if !slices.Contains([]string{"users", "nodes", "node_net"}, table.Name) {
			continue
		}
		var names []string
		var into []any
		for _, c := range table.Columns {
			names = append(names, c.Name)
			if c.Type == "integer" {
				into = append(into, new(int64))
			} else {
				into = append(into, new(string))
			}
		}
		queries["SELECT "+strings.Join(names, ", ")+" FROM "+table.Name] = into
	}
	return queries
}

func plainScan(t *testing.T, conn *pgx.Conn, queries map[string][]any) (rows int) {
	t.Helper()
	for query, into := range queries {
		result, err := conn.Query(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		for result.Next() {
			if err := result.Scan(into...); err != nil {
				t.Fatal(err)
			}
			rows++
		}
		if err := result.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return rows
}
