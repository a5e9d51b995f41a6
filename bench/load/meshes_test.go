//go:build !race

package load

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

var meshes = flag.Int("meshes", 0, "how many meshes to host on one PostgreSQL; 0 skips the test")

// TestManyMeshes hosts many meshes on one machine: one process and one database of the same PostgreSQL for each. It measures what
// they cost while idle, and that each of them works.
func TestManyMeshes(t *testing.T) {
	if *meshes == 0 {
		t.Skip("see make meshes")
	}
	const pool = 2 // connections of a small mesh
	b := build(t)
	pg, err := pgtest.Start(pgtest.Options{Durable: true, Args: []string{"-c", "max_connections=" + strconv.Itoa(*meshes*(pool+3)+20)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Stop(); err != nil {
			t.Error(err)
		}
	})
	began := time.Now()
	var servers []*meshtest.Server
	for range *meshes {
		servers = append(servers, meshtest.Start(t, meshtest.Config{Binary: b.fairlead, Postgres: pg, Database: pg.Database(t), Set: map[string]string{
			"log.level": "info", "database.postgres.max_open_conns": strconv.Itoa(pool), "database.postgres.max_idle_conns": "1",
		}}))
	}
	started := time.Since(began)
	for i, s := range servers {
		name := fmt.Sprintf("user%d", i)
		s.CLI("users", "create", name)
		if list := s.CLI("users", "list"); !strings.Contains(list, name) || strings.Count(list, "user") > strings.Count(list, name)+2 {
			t.Errorf("mesh %d does not have exactly its own user:\n%s", i, list)
		}
	}
	cpu := func() (seconds float64) {
		for _, s := range servers {
			seconds += cpuOf(t, s.PID())
		}
		return seconds
	}
	before := cpu()
	<-time.After(*idle) // what is measured
	used := cpu() - before
	var rss, most float64
	for _, s := range servers {
		mb := residentMB(t, s.PID())
		rss, most = rss+mb, max(most, mb)
	}
	n := float64(*meshes)
	t.Logf("\n%d meshes: started in %.0f s, %.1f MB each and at most %.1f MB, %.2f %% of a core each while idle, %.1f connections to PostgreSQL each",
		*meshes, started.Seconds(), rss/n, most, 100*used/idle.Seconds()/n, connectionsOf(t, pg)/n)
}

// cpuOf returns the CPU seconds that a process has used.
func cpuOf(t *testing.T, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100 // the unit of /proc
}

func residentMB(t *testing.T, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb / 1024
}

// connectionsOf returns how many clients are connected to PostgreSQL.
func connectionsOf(t *testing.T, pg *pgtest.Server) (n float64) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pg.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), "SELECT count(*)-1 FROM pg_stat_activity WHERE backend_type = 'client backend'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
