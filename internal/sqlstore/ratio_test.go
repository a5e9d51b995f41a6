//go:build !race

package sqlstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/pgtest"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/store/storetest"
)

// Loading a large mesh costs at most three times what reading the same columns
// into variables costs, with keys and addresses parsed and all indexes built.
// The race detector would slow only the former.
func TestRatioLoadKeepsUpWithPlainScan(t *testing.T) {
	const nodes, online, most, tries = 50_000, 10_000, 3, 15
	server := startPostgres(t, pgtest.Options{Durable: true})
	c := configOf(server, server.Database(t))
	s, conn := openPostgres(t, c), session(t, server.URL(c.Name))
	seed(t, s, nodes, online)
	run(t, conn, "VACUUM ANALYZE")

	var ratios []float64
	for range tries { // in turns, so that both meet the same machine
		start := time.Now()
		snap, err := s.Load(t.Context())
		load := time.Since(start)
		if err != nil || snap.NodeCount() != nodes || snap.OnlineCount() != online {
			t.Fatalf("loaded %d nodes, %d online (%v)", snap.NodeCount(), snap.OnlineCount(), err)
		}
		start = time.Now()
		rows := plainScan(t, conn)
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

// seed makes one user with many nodes, all with a place in the network.
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

// plainScan reads all that Load reads.
func plainScan(t *testing.T, conn *pgx.Conn) (rows int) {
	t.Helper()
	var n [8]int64
	var s [16]string
	var b []byte
	for query, into := range map[string][]any{
		"SELECT id, name, display_name, email, provider, provider_id, profile_pic_url, created_at FROM users": {
			&n[0], &s[0], &s[1], &s[2], &s[3], &s[4], &s[5], &n[1],
		},
		"SELECT id, owner, created_by, machine_key, node_key, hostname, name, ipv4, ipv6, tags, method, preauth_key, ephemeral, os, arch, client_version, routable_ips, expiry, created_at, updated_at FROM nodes": {
			&n[0], &n[1], &n[2], &s[0], &s[1], &s[2], &s[3], &s[4], &s[5], &s[6], &s[7], &n[3], &n[4], &s[8], &s[9], &s[10], &s[11], &n[5], &n[6], &n[7],
		},
		"SELECT id, endpoints, disco_key, home_relay, online, replica, conn, last_seen FROM node_net": {
			&n[0], &s[0], &s[1], &n[1], &n[2], &s[2], &n[3], &n[4],
		},
		"SELECT id, prefix, hash, user_id, reusable, ephemeral, tags, used, expiry, created_at FROM preauth_keys": {
			&n[0], &s[0], &b, &n[1], &n[2], &n[3], &s[1], &n[4], &n[5], &n[6],
		},
		"SELECT id, prefix, hash, expiry, created_at FROM api_keys": {&n[0], &s[0], &b, &n[1], &n[2]},
	} {
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
