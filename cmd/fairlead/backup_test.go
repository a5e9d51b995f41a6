package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/fairlead-mesh/fairlead/internal/test/disktest"
)

// other returns a configuration with an empty database of the other engine and the key
// files of s.
func other(t *testing.T, s settings) settings {
	t.Helper()
	o := onSQLite(t)
	if s["database.type"] == "sqlite" {
		o = onPostgres(t, pg)
	}
	return o.with("noise.private_key_path", s["noise.private_key_path"])
}

// configFile writes s to a file for --to and returns its path.
func (s settings) configFile(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	tree := map[string]any{}
	for key, value := range s {
		if value == "" {
			continue
		}
		at, path := tree, strings.Split(key, ".")
		for _, part := range path[:len(path)-1] {
			if at[part] == nil {
				at[part] = map[string]any{}
			}
			at = at[part].(map[string]any)
		}
		at[path[len(path)-1]] = value
	}
	if port, ok := s["database.postgres.port"]; ok {
		tree["database"].(map[string]any)["postgres"].(map[string]any)["port"] = json.Number(port)
	}
	if err := json.NewEncoder(&b).Encode(tree); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// populate creates users, a pre-auth key, an API key and a DNS record.
func populate(t *testing.T, s settings, users int) {
	t.Helper()
	for i := range users {
		mustCommand(t, s, "users", "create", fmt.Sprintf("user%d", i))
	}
	mustCommand(t, s, "preauthkeys", "create", "--user", "user0")
	mustCommand(t, s, "apikeys", "create")
	mustCommand(t, s, "dns", "record", "add", "printer.example.com", "10.0.0.7")
}

// served returns a server's objects, as its own commands list them.
func served(t *testing.T, s settings) string {
	t.Helper()
	var all []string
	for _, command := range []string{"users list", "nodes list", "preauthkeys list", "apikeys list", "dns show", "audit list --kind user"} {
		all = append(all, mustCommand(t, s, append(strings.Fields(command), "--output", "json")...))
	}
	return strings.Join(all, "\n")
}

// noiseKey returns the public key by which clients recognise the server.
func noiseKey(t *testing.T, p *process) string {
	t.Helper()
	return p.fastClient("none").must(t, 200, "GET", "/key?v=109", "")
}

func TestBackupBesideTheServerIsRestoredIntoTheOtherEngine(t *testing.T) {
	onBoth(t, func(t *testing.T, s settings) {
		p := serve(t, s)
		populate(t, s, 5)
		want, key := served(t, s), noiseKey(t, p)
		file := filepath.Join(t.TempDir(), "a.backup")
		says(t, mustCommand(t, s, "backup", "--file", file), "Wrote "+file, "Not included, so back them up separately: "+s["noise.private_key_path"])
		says(t, mustCommand(t, s, "backup", "verify", file), "is intact", s["database.type"])
		if r := command(t, s, "backup", "--file", file); r.status != 1 || !strings.Contains(r.stderr, "exists") {
			t.Errorf("a backup was replaced: %+v", r)
		}
		r := command(t, s, "restore", file, "--replace", "--force")
		if r.status != 1 || !strings.Contains(r.stderr, "in use by") {
			t.Errorf("restored under a server: %+v", r)
		}
		p.stop(t)

		o := other(t, s)
		says(t, mustCommand(t, o, "restore", file), "Restored into")
		p = serve(t, o)
		if diff := cmp.Diff(want, served(t, o)); diff != "" {
			t.Errorf("backed up (-) and restored (+):\n%s", diff)
		}
		if got := noiseKey(t, p); got != key {
			t.Errorf("the key became %s, was %s", got, key)
		}
		p.stop(t)
		if r := command(t, o, "restore", file); r.status != 1 || !strings.Contains(r.stderr, "--replace") {
			t.Errorf("restored over another: %+v", r)
		}
		says(t, mustCommand(t, o, "restore", file, "--replace", "--force", "--output", "json"), `"revision"`)
	})
}

// An encrypted backup includes the key files, so that a new machine needs only the backup
// and the configuration.
func TestEncryptedBackupBringsTheKeysAlong(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	keyFile, wrong := filepath.Join(dir, "key.txt"), filepath.Join(dir, "wrong.txt")
	another, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.WriteFile(keyFile, []byte(identity.String()+"\n"), 0o600), os.WriteFile(wrong, []byte(another.String()+"\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	s := onSQLite(t)
	p := serve(t, s)
	populate(t, s, 2)
	want, key := served(t, s), noiseKey(t, p)
	file := filepath.Join(dir, "a.backup")
	mustCommand(t, s, "backup", "--encrypt-to", identity.Recipient().String(), "--file", file)
	p.stop(t)

	fresh := onSQLite(t)
	for _, args := range [][]string{{"restore", file}, {"restore", file, "--identity", wrong}, {"backup", "verify", file, "--identity", wrong}} {
		if r := command(t, fresh, args...); r.status != 1 || !strings.Contains(r.stderr, "--identity") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	says(t, mustCommand(t, fresh, "backup", "verify", file, "--identity", keyFile), "noise.private_key_path")
	mustCommand(t, fresh, "restore", file, "--identity", keyFile)
	p = serve(t, fresh)
	if got := noiseKey(t, p); got != key {
		t.Errorf("the key became %s, was %s", got, key)
	}
	if diff := cmp.Diff(want, served(t, fresh)); diff != "" {
		t.Errorf("backed up (-) and restored (+):\n%s", diff)
	}
}

func TestMovedDatabaseServesTheSame(t *testing.T) {
	onBoth(t, func(t *testing.T, s settings) {
		p := serve(t, s)
		populate(t, s, 3)
		want, key := served(t, s), noiseKey(t, p)
		o := other(t, s)
		if r := command(t, s, "db", "move", "--to", o.configFile(t)); r.status != 1 || !strings.Contains(r.stderr, "in use by") {
			t.Errorf("moved under a server: %+v", r)
		}
		p.stop(t)
		says(t, mustCommand(t, s, "db", "move", "--to", o.configFile(t)), "Both databases are identical")
		for _, here := range []settings{o, s} { // the source still works, in case the move is undone
			p = serve(t, here)
			if diff := cmp.Diff(want, served(t, here)); diff != "" {
				t.Errorf("before (-) and after (+):\n%s", diff)
			}
			if got := noiseKey(t, p); got != key {
				t.Errorf("the key became %s, was %s", got, key)
			}
			p.stop(t)
		}
	})
}

// As in a container with a read-only root, whose user owns nothing but the database: the
// backup goes to standard output, and the working directory is not writable.
func TestBackupToStandardOutputWritesNothingElse(t *testing.T) {
	s := onSQLite(t)
	serve(t, s)
	populate(t, s, 2)
	p := start(t, s, func(cmd *exec.Cmd) { cmd.Dir = "/proc" }, "backup")
	if status := p.status(t, patience); status != 0 || p.log.String() != "Not included, so back them up separately: "+s["noise.private_key_path"]+"\n" {
		t.Fatalf("exit status %d: %s", status, p.log)
	}
	verify := start(t, s, func(cmd *exec.Cmd) { cmd.Stdin = strings.NewReader(p.out.String()) }, "backup", "verify", "-")
	if status := verify.status(t, patience); status != 0 {
		t.Fatalf("exit status %d: %s", status, verify.log)
	}
}

// Whenever a backup or a restore is killed, a file with the name of a backup is complete,
// and the target database is either unchanged or complete.
func TestKilledAnywhereLeavesNothingHalf(t *testing.T) {
	onBoth(t, func(t *testing.T, s settings) {
		p := serve(t, s)
		populate(t, s, 30)
		p.stop(t)
		dir := t.TempDir()
		whole := filepath.Join(dir, "whole.backup")
		began := time.Now()
		mustCommand(t, s, "backup", "--file", whole)
		took := time.Since(began)
		o := other(t, s)
		const kills = 20
		for i := range kills {
			wait := took * time.Duration(i+1) / kills
			name := filepath.Join(dir, "a.backup")
			killedAfter(t, s, wait, "backup", "--file", name)
			if _, err := os.Stat(name); err == nil {
				mustCommand(t, s, "backup", "verify", name)
				if err := os.Remove(name); err != nil {
					t.Fatal(err)
				}
			}
			killedAfter(t, o, 2*wait, "restore", whole)
			check := filepath.Join(dir, fmt.Sprintf("%d.backup", i))
			if r := command(t, o, "backup", "--file", check, "--output", "json"); r.status == 0 {
				says(t, r.stdout, `"users": {
      "rows": 30,`)
				o = other(t, s)
			} else if !strings.Contains(r.stderr, "no Fairlead tables") && !strings.Contains(r.stderr, "no such file") && !strings.Contains(r.stderr, "the file is empty") {
				t.Errorf("after %v: %s", wait, r.stderr)
			}
		}
		mustCommand(t, s, "backup", "--file", filepath.Join(dir, "a.backup"))
		if left, err := filepath.Glob(filepath.Join(dir, "*.partial")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v (%v)", left, err)
		}
	})
}

// A backup blocked halfway by a lock on a table can be interrupted and killed. It leaves
// no file with the final name, and the next backup succeeds.
func TestBackupEndedInTheMiddleHasNoName(t *testing.T) {
	t.Parallel()
	s := onPostgres(t, pg)
	serve(t, s)
	populate(t, s, 2)
	conn, err := pgx.Connect(t.Context(), pg.URL(s["database.postgres.name"]))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	hold, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hold.Exec(t.Context(), "LOCK TABLE users IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "a.backup")
	for _, how := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		p := start(t, s, nil, "backup", "--file", name)
		eventually(t, func() error {
			var waiting int
			err := pgQuery(t, s, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'SELECT % FROM users ORDER%'", &waiting)
			if err == nil && waiting == 0 {
				err = errors.New("it does not wait yet")
			}
			if err == nil { // the blocked query may still be that of the previous backup
				_, err = os.Stat(name + ".partial")
			}
			return err
		})
		p.signal(t, how)
		if status := p.status(t, patience); status == 0 {
			t.Errorf("%v: exit status 0", how)
		}
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%v: half a backup has the name of one", how)
		}
		if _, err := os.Stat(name + ".partial"); (err == nil) != (how == syscall.SIGKILL) {
			t.Errorf("%v: what is left of it: %v", how, err)
		}
	}
	if err := hold.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustCommand(t, s, "backup", "--file", name)
	if _, err := os.Stat(name + ".partial"); err == nil {
		t.Error("what a killed one has left is still there")
	}
}

func pgQuery(t *testing.T, s settings, query string, into ...any) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pg.URL(s["database.postgres.name"]))
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	return conn.QueryRow(t.Context(), query).Scan(into...)
}

// Files that root creates in the server's directory would be unreadable for the server.
func TestRootRestoresNothingForOthers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it runs as another user")
	}
	s := onSQLite(t)
	p := serve(t, s)
	populate(t, s, 2)
	file := filepath.Join(disktest.Open(t), "a.backup")
	mustCommand(t, s, "backup", "--file", file)
	p.stop(t)
	theirs := onSQLite(t).with("noise.private_key_path", s["noise.private_key_path"])
	dir := filepath.Dir(theirs["database.sqlite.path"])
	if err := errors.Join(os.Chown(dir, nobody, nobody), os.Chmod(file, 0o644)); err != nil {
		t.Fatal(err)
	}
	r := command(t, theirs, "restore", file)
	says(t, r.stderr, "run this command as that user", "--reuid=65534")
	if left, err := os.ReadDir(dir); err != nil || r.status != 1 || len(left) > 0 {
		t.Fatalf("%d files, exit status %d (%v)", len(left), r.status, err)
	}
	as := start(t, theirs, func(cmd *exec.Cmd) { cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody} }, "restore", file)
	if status := as.status(t, patience); status != 0 {
		t.Fatalf("exit status %d: %s", status, as.log)
	}
}

func killedAfter(t *testing.T, s settings, wait time.Duration, args ...string) {
	t.Helper()
	p := start(t, s, nil, args...)
	select {
	case <-p.ended:
	case <-time.After(wait):
		_ = p.Process.Signal(syscall.SIGKILL)
		<-p.ended
	}
}
