package chaos_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	_ "modernc.org/sqlite" // the driver

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/test/chaos"
	"github.com/fairlead-mesh/fairlead/internal/test/disktest"
)

var kills = flag.Int("kills", 20, "how often a server on SQLite is killed under writes")

const (
	killsPerFile = 100                    // then a new database is created
	underWrites  = 120 * time.Millisecond // at most, before a kill
	whileBroken  = 150 * time.Millisecond // how long a disk stays full or read-only
	smallDisk    = "256m"
	losingDisk   = "256M"
)

// medium is where a database is.
type medium int

const (
	plain    medium = iota // the disk of the machine
	small                  // a disk that can be full or read-only
	powerCut               // a disk that loses power instead of a process that is killed
	media
)

// file is a SQLite database and the process that uses it.
type file struct {
	*cluster
	path    string
	disk    string           // a small disk that can be filled, or ""
	power   *disktest.Disk   // a disk that can lose power, or nil
	written map[string]int64 // the newest command of each caller that was found in a copy
	tally   fileTally
}

// fileTally counts what happened to a file.
type fileTally struct{ Kills, Idle, Copies, Cut, Full, ReadOnly, PowerCuts int }

func newFile(t *testing.T, program, fault string, on medium) *file {
	t.Helper()
	f := &file{cluster: &cluster{t: t, program: program, fault: fault}, written: map[string]int64{}}
	dir := t.TempDir()
	switch on {
	case small:
		f.disk = disktest.Small(t, smallDisk)
		dir = f.disk
	case powerCut:
		f.power = disktest.NewDisk(t, losingDisk)
		dir = f.power.Dir
	case plain, media:
	}
	f.path = filepath.Join(dir, "db.sqlite")
	f.args = []string{"-sqlite", f.path}
	f.prepare(1)
	return f
}

// acknowledged returns the newest command of each caller that was acknowledged and had something to do.
func (f *file) acknowledged() (acked map[string]int64) {
	f.judge(func(k *chaos.Checker) { acked = k.Acknowledged() })
	return acked
}

func (f *file) answers() (n int) {
	f.judge(func(k *chaos.Checker) { n = k.Tally.Answers[chaos.Done] })
	return n
}

// awaitWrites waits until the process has acknowledged something.
func (f *file) awaitWrites() {
	f.t.Helper()
	before := f.answers()
	for deadline := time.Now().Add(patience); f.answers() == before; <-time.After(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("nothing was acknowledged within %v", patience)
		}
	}
}

// round starts a process and kills it at a random moment. Depending on the number of the round, it is killed
// while it starts, its files are copied while it works, or its disk is full.
func (f *file) round(n int) {
	f.t.Helper()
	before := f.answers()
	f.start(0)
	if n%10 == 5 {
		<-time.After(rand.N(underWrites))
	} else {
		f.awaitWrites()
		<-time.After(rand.N(underWrites))
	}
	if n%3 == 0 {
		f.copyWhileWorking()
	}
	filler := ""
	if n%10 == 3 && f.disk != "" {
		f.tally.Full++
		filler = disktest.Fill(f.t, f.disk)
		<-time.After(whileBroken)
		if n%20 == 3 { // otherwise it is killed while the disk is full
			f.free(filler)
			filler = ""
			f.awaitWrites()
		}
	}
	acked := f.crash()
	if f.answers() == before {
		f.tally.Idle++
	}
	f.inspect(f.copy(), acked)
	f.inspectCut(f.copy())
	if filler != "" {
		f.free(filler)
	}
	if n%10 == 6 && f.disk != "" {
		f.startReadOnly()
	}
}

func (f *file) free(filler string) {
	f.t.Helper()
	if err := os.Remove(filler); err != nil {
		f.t.Fatal(err)
	}
}

// crash kills the process, or cuts the power of its disk, and returns what was acknowledged.
func (f *file) crash() map[string]int64 {
	f.t.Helper()
	f.tally.Kills++
	if f.power != nil {
		f.tally.PowerCuts++
		// If a sync is under way when the file system is shut down, Linux may say that it succeeded.
		proceed := f.pause()
		f.power.Fail()
		proceed()
		<-time.After(rand.N(underWrites / 4))
	}
	f.kill(f.alive()[0])
	if f.power != nil {
		f.power.Restore()
	}
	return f.acknowledged()
}

// copyWhileWorking copies the files at one moment, as a snapshot of the file system does.
func (f *file) copyWhileWorking() {
	f.t.Helper()
	acked := f.acknowledged()
	proceed := f.pause()
	copied := f.copy()
	proceed()
	f.tally.Copies++
	f.inspect(copied, acked)
}

// pause stops the process when none of its threads is in a system call, until the returned function is called.
func (f *file) pause() (proceed func()) {
	f.t.Helper()
	process := f.alive()[0].cmd.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		f.t.Fatal(err)
	}
	for !stopped(f.t, process.Pid) {
		<-time.After(time.Millisecond)
	}
	return func() {
		f.t.Helper()
		if err := process.Signal(syscall.SIGCONT); err != nil {
			f.t.Fatal(err)
		}
	}
}

// stopped reports whether all threads of a process are stopped.
func stopped(t *testing.T, pid int) bool {
	t.Helper()
	states, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range states {
		text, err := os.ReadFile(state)
		if err != nil {
			return false
		}
		if _, rest, _ := strings.Cut(string(text), ") "); !strings.HasPrefix(rest, "T") {
			return false
		}
	}
	return len(states) > 0
}

// startReadOnly starts the process on a read-only file system, where it must not acknowledge anything.
func (f *file) startReadOnly() {
	f.t.Helper()
	f.tally.ReadOnly++
	disktest.ReadOnly(f.t, f.disk, true)
	before := f.answers()
	f.start(0)
	<-time.After(whileBroken)
	f.kill(f.alive()[0])
	if db, err := sqlstore.OpenSQLite(f.t.Context(), f.path, prometheus.NewRegistry()); err == nil {
		db.Close()
		f.t.Error("a database on a read-only file system was opened")
	} else if !strings.Contains(err.Error(), "read-only") {
		f.t.Errorf("opening a database on a read-only file system: %v", err)
	}
	if n := f.answers(); n != before {
		f.judge(func(k *chaos.Checker) {
			k.Report(chaos.Error, "%d commands were acknowledged on a read-only file system", n-before)
		})
	}
	disktest.ReadOnly(f.t, f.disk, false)
}

// copy copies the database and its write-ahead log, and returns the path of the copy.
func (f *file) copy() string {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), "copy.sqlite")
	for _, suffix := range []string{"", logSuffix, "-shm"} {
		data, err := os.ReadFile(f.path + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(path+suffix, data, 0o600)
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
	return path
}

// inspect passes what is new in a copy to the checker. What was acknowledged before must be there.
func (f *file) inspect(path string, acked map[string]int64) {
	f.t.Helper()
	os.Remove(path + "-shm") // a copy need not have it
	defer f.discard(path)
	f.judge(func(k *chaos.Checker) {
		if err := f.read(path, k); err != nil {
			k.Report(chaos.Damaged, "%v", err)
			return
		}
		for caller, seq := range acked {
			if f.written[caller] < seq {
				k.Report(chaos.Lost, "a copy has commands of %s up to %d, and %d was acknowledged", caller, f.written[caller], seq)
			}
		}
		view, err := viewOf(f.t, path)
		if err != nil {
			k.Report(chaos.Damaged, "%v", err)
			return
		}
		k.View(view)
	})
}

// inspectCut cuts the write-ahead log of a copy at a random place, as a power loss can. The rest must be the state
// at an earlier moment.
func (f *file) inspectCut(path string) {
	f.t.Helper()
	defer f.discard(path)
	log, err := readLog(path)
	if err != nil {
		f.t.Fatal(err)
	}
	least := log.offset(log.checkpointed)
	if len(log.data) <= least {
		return
	}
	f.tally.Cut++
	log.write(f.t, path, least+rand.IntN(len(log.data)-least))
	view, err := viewOf(f.t, path)
	f.judge(func(k *chaos.Checker) {
		switch {
		case err != nil:
			k.Report(chaos.Damaged, "after a power loss: %v", err)
		case view.Rev > k.Rev():
			k.Report(chaos.Log, "after a power loss, the revision is %d instead of at most %d", view.Rev, k.Rev())
		default:
			k.View(view)
		}
	})
}

func (f *file) discard(path string) {
	f.t.Helper()
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		f.t.Fatal(err)
	}
}

// read checks a copy, and passes the entries that the checker does not have to it.
func (f *file) read(path string, k *chaos.Checker) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer db.Close()
	if created, err := sound(f.t, db); !created {
		return err
	}
	rows, err := db.QueryContext(f.t.Context(), "SELECT rev, at, actor, events FROM log WHERE rev > ? ORDER BY rev", int64(k.Rev()))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var e chaos.Entry
		var text []byte
		var actor mesh.Actor
		err := rows.Scan(&e.Rev, &e.At, &text, &e.Raw)
		if err == nil {
			err = json.Unmarshal(text, &actor)
		}
		if err == nil {
			e.Caller, e.Seq, err = chaos.ParseRequestID(actor.RequestID)
		}
		if err == nil {
			e.Events, err = mesh.DecodeEvents(e.Raw)
		}
		if err != nil {
			return err
		}
		k.Entry(e)
		f.written[e.Caller] = max(f.written[e.Caller], e.Seq)
	}
	return rows.Err()
}

// sound checks that a file is not damaged, and that its log ends at the current revision, without a gap. Nothing is
// created if the process was killed before.
func sound(t *testing.T, db *sql.DB) (created bool, err error) {
	t.Helper()
	var verdict string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check(1)").Scan(&verdict); err != nil || verdict != "ok" {
		return false, errors.Join(fmt.Errorf("the integrity check says %q", verdict), err)
	}
	var tables int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM sqlite_master WHERE name IN ('log', 'head')").Scan(&tables); err != nil || tables < 2 {
		return false, err
	}
	var rows, newest, head int64
	err = db.QueryRowContext(t.Context(), "SELECT (SELECT count(*) FROM log), (SELECT coalesce(max(rev), 0) FROM log), (SELECT rev FROM head)").Scan(&rows, &newest, &head)
	if err == nil && (rows != head || newest != head) {
		err = fmt.Errorf("the log has %d rows up to revision %d, and the revision is %d", rows, newest, head)
	}
	return err == nil, err
}

// viewOf checks a copy and opens it as a server does.
func viewOf(t *testing.T, path string) (v chaos.View, err error) {
	t.Helper()
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		return v, err
	}
	defer raw.Close()
	if _, err := sound(t, raw); err != nil {
		return v, err
	}
	db, err := sqlstore.OpenSQLite(t.Context(), path, prometheus.NewRegistry())
	if err != nil {
		return v, err
	}
	defer db.Close()
	s, err := db.Load(t.Context())
	if err != nil {
		return v, err
	}
	return chaos.View{Replica: "a copy", Rev: s.Rev, Digest: s.Digest()}, nil
}

// finish lets a last process start and stop gracefully, and compares everything.
func (f *file) finish() {
	f.t.Helper()
	f.start(0)
	f.awaitWrites()
	p := f.alive()[0]
	p.order(chaos.OrderStop)
	await(f.t, "the workers of "+p.name, p.quiet)
	f.inspect(f.copy(), f.acknowledged())
	var rev mesh.Revision
	f.judge(func(k *chaos.Checker) { rev = k.Rev() })
	p.order("%s %d %d", chaos.OrderSettle, rev, 1)
	final := await(f.t, "what "+p.name+" holds", p.final)
	p.leaving.Store(true)
	p.stdin.Close()
	await(f.t, "the end of "+p.name, p.gone)
	db, err := sqlstore.OpenSQLite(f.t.Context(), f.path, prometheus.NewRegistry())
	if err != nil {
		f.t.Fatal(err)
	}
	defer db.Close()
	tables, err := db.Load(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	f.judge(func(k *chaos.Checker) { k.Finish(tables, []chaos.Final{final}) })
}

func TestSQLiteKeepsItsPromisesWhileKilled(t *testing.T) {
	t.Parallel()
	program := build(t)
	files := max(int(media), (*kills+killsPerFile-1)/killsPerFile)
	began := time.Now()
	for i := range files {
		share := (*kills + i) / files
		t.Run(fmt.Sprintf("file %d", i), func(t *testing.T) {
			t.Parallel()
			f := newFile(t, program, "", medium(i)%media)
			for n := range share {
				f.round(n)
				if found := f.checker.Findings(); len(found) > 0 {
					t.Fatalf("%d promises broken in round %d: %v", len(found), n, found[0])
				}
			}
			f.finish()
			for _, found := range f.checker.Findings() {
				t.Error(found)
			}
			k := f.checker.Tally
			t.Logf("%v: %+v, %d revisions, %+v", time.Since(began).Round(time.Second), f.tally, f.checker.Rev(), k)
			want := fileTally{Kills: share, Copies: share / 3, Cut: share / 4}
			if f.disk != "" {
				want.Full, want.ReadOnly = share/10, share/10
			}
			if f.power != nil {
				want.PowerCuts, want.Cut = share, 0
			}
			if got := f.tally; got.Kills < want.Kills || got.Copies < want.Copies || got.Cut < want.Cut || got.Full < want.Full || got.ReadOnly < want.ReadOnly || got.PowerCuts < want.PowerCuts ||
				got.Idle > share/4 || k.Answers[chaos.Done] < 10*share || k.Recovered == 0 {
				t.Errorf("too little happened: %+v, want at least %+v; %+v", got, want, k)
			}
		})
	}
}

func TestSeededFaultsOfSQLiteAreFound(t *testing.T) {
	t.Parallel()
	program := build(t)
	for name, s := range map[string]struct {
		fault string
		on    medium
		spoil func(*file) // after each kill
		want  []chaos.Sort
	}{
		// The process may notice it and begin a new epoch, which skips revisions.
		"acknowledged before the commit": {chaos.FaultEarlyAnswer, plain, nil, []chaos.Sort{chaos.Lost, chaos.Damaged}},
		"last commits were not written":  {"", plain, (*file).dropLastCommits, []chaos.Sort{chaos.Lost}},
		"nothing waits for the disk":     {chaos.FaultNoSync, powerCut, nil, []chaos.Sort{chaos.Lost, chaos.Damaged}},
		"page overwritten":               {"", plain, (*file).overwritePage, []chaos.Sort{chaos.Damaged, chaos.Digest, chaos.Error}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFile(t, program, s.fault, s.on)
			var found map[chaos.Sort]int
			for range 20 {
				f.start(0)
				<-time.After(4 * underWrites)
				for range 5 { // so that the commits that are dropped were acknowledged, even on a slow disk
					f.awaitWrites()
				}
				acked := f.crash()
				if s.spoil != nil {
					s.spoil(f)
				}
				f.inspect(f.copy(), acked)
				found = map[chaos.Sort]int{}
				for _, finding := range f.checker.Findings() {
					found[finding.Sort]++
				}
				for _, sort := range s.want {
					if found[sort] > 0 {
						t.Logf("found after %d kills: %v", f.tally.Kills, f.checker.Findings()[0])
						return
					}
				}
			}
			t.Errorf("found %v, want one of %v", found, s.want)
		})
	}
}

// dropLastCommits removes the newest commits from the write-ahead log, as if the disk had never written them. The last one
// alone is rarely acknowledged when the process is killed.
func (f *file) dropLastCommits() {
	f.t.Helper()
	log, err := readLog(f.path)
	if err != nil {
		f.t.Fatal(err)
	}
	if commits := log.commits(); len(commits) > 2 {
		log.write(f.t, f.path, log.offset(commits[len(commits)-3]+1))
	}
}

// overwritePage writes garbage to the first pages of the database after the header.
func (f *file) overwritePage() {
	f.t.Helper()
	if err := os.Remove(f.path + logSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.t.Fatal(err)
	}
	data, err := os.ReadFile(f.path)
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 4096; i < len(data); i += 4096 {
		copy(data[i:], strings.Repeat("garbage", 8))
	}
	if err := os.WriteFile(f.path, data, 0o600); err != nil {
		f.t.Fatal(err)
	}
}
