//go:build !race

package chaos_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/test/disktest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
)

// pair is a PostgreSQL primary with a standby. Each server has a small disk.
type pair struct {
	t        *testing.T
	database string
	sync     bool // the standby is synchronous
	servers  [2]*pgtest.Server
	links    [2]*meshtest.Balancer // how the other server reaches each one
	disks    [2]string
	primary  atomic.Int32 // index of the primary
	clock    *os.File
	env      []string
}

// Small enough that a server of this test fits on a small disk.
func pairArgs() []string {
	return []string{"-c", "max_wal_size=96MB", "-c", "min_wal_size=32MB", "-c", "wal_keep_size=48MB", "-c", "wal_sender_timeout=10s", "-c", "wal_receiver_timeout=10s"}
}

const diskSize = "600m"

func startPair(t *testing.T, sync bool) *pair {
	t.Helper()
	p := &pair{t: t, sync: sync, disks: [2]string{disktest.Small(t, diskSize), disktest.Small(t, diskSize)}}
	p.movableClock()
	var err error
	p.servers[0], err = pgtest.Start(pgtest.Options{Dir: p.disks[0], Args: append(pairArgs(), "-c", "cluster_name="+pgtest.StandbyName), Env: p.env})
	p.must(err)
	t.Cleanup(func() {
		for _, s := range p.servers {
			if s != nil {
				if err := s.Stop(); err != nil {
					t.Error(err)
				}
			}
		}
	})
	p.database = p.servers[0].Database(t)
	p.links[0] = meshtest.NewBalancer(t, address(p.servers[0]))
	p.rebuild()
	p.links[1] = meshtest.NewBalancer(t, address(p.servers[1]))
	return p
}

func address(s *pgtest.Server) string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// main returns the primary.
func (p *pair) main() *pgtest.Server { return p.servers[p.primary.Load()] }

func (p *pair) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// movableClock builds the library that moves the clock of both servers.
func (p *pair) movableClock() {
	p.t.Helper()
	dir := disktest.Open(p.t)
	library, offset := filepath.Join(dir, "clock.so"), filepath.Join(dir, "offset")
	if out, err := exec.CommandContext(p.t.Context(), "gcc", "-shared", "-fPIC", "-O1", "-o", library, "testdata/clock.c").CombinedOutput(); err != nil {
		p.t.Fatalf("building clock.c: %v\n%s", err, out)
	}
	p.must(os.WriteFile(offset, make([]byte, 8), 0o644))
	file, err := os.OpenFile(offset, os.O_WRONLY, 0)
	p.must(err)
	p.t.Cleanup(func() { file.Close() })
	p.clock, p.env = file, []string{"LD_PRELOAD=" + library, "CLOCK_OFFSET=" + offset}
}

// moveClock moves the clock of both servers, relative to the time of the machine.
func (p *pair) moveClock(by time.Duration) {
	p.t.Helper()
	_, err := p.clock.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(int64(by/time.Second))), 0)
	p.must(err)
}

// rebuild replaces the server that is not the primary by a copy of the primary, which becomes its standby.
func (p *pair) rebuild() {
	p.t.Helper()
	now := p.primary.Load()
	other := 1 - now
	o := pgtest.StandbyOptions{Dir: p.disks[other], Args: pairArgs(), Env: p.env, From: p.links[now].Addr}
	if old := p.servers[other]; old != nil {
		o.Host, o.Port = old.Host, old.Port
		p.must(old.Stop())
		p.servers[other] = nil
	}
	standby, err := p.servers[now].StandbyWith(o)
	p.must(err)
	p.servers[other] = standby
	p.must(p.main().Synchronous(p.sync))
}

// failOver kills the primary and promotes the standby, which serves without a standby until rebuild is called.
func (p *pair) failOver() {
	p.t.Helper()
	next := 1 - p.primary.Load()
	standby := p.servers[next]
	p.must(p.main().Pause("immediate"))
	// It takes effect when the server accepts writes.
	p.must(standby.Synchronous(false))
	p.must(standby.Promote())
	p.primary.Store(next)
}

// revive starts both servers again if they have given up, for example because their disk was full, and waits
// until the standby has caught up.
func (p *pair) revive() {
	p.t.Helper()
	for _, s := range p.servers {
		if err := p.query(s, "SELECT 1", new(int)); err != nil {
			p.must(errors.Join(s.Pause("immediate"), s.Resume()))
		}
	}
	p.must(p.main().Synchronous(p.sync))
}

func (p *pair) query(s *pgtest.Server, statement string, dest ...any) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL(p.database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.QueryRow(ctx, statement).Scan(dest...)
}

// snapshot reads the tables of the primary like a replica that starts now.
func (p *pair) snapshot(ctx context.Context) (*mesh.Snapshot, error) {
	s := p.main()
	db, err := sqlstore.OpenPostgres(ctx, sqlstore.PostgresConfig{
		Host: s.Host, Port: s.Port, User: s.User, Name: p.database, SSLMode: "disable",
	}, prometheus.NewRegistry())
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return db.Load(ctx)
}

func TestPairFailsOverAndBack(t *testing.T) {
	if *duration == 0 {
		t.Skip("runs with -chaos=60s")
	}
	t.Parallel()
	p := startPair(t, true)
	for i := range 2 {
		var before, after time.Time
		p.must(p.query(p.main(), "SELECT now()", &before))
		p.moveClock(time.Hour)
		p.must(p.query(p.main(), "SELECT now()", &after))
		if after.Sub(before) < time.Hour {
			t.Errorf("the clock was at %v and is at %v", before, after)
		}
		p.moveClock(0)
		p.main().Exec(t, p.database, fmt.Sprintf("CREATE TABLE t%d ()", i))
		p.failOver()
		p.rebuild()
	}
	var tables int
	p.must(p.query(p.main(), "SELECT count(*) FROM pg_tables WHERE tablename IN ('t0', 't1')", &tables))
	if tables != 2 {
		t.Errorf("%d of 2 tables are left", tables)
	}
}
