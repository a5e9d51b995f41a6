package main_test

import (
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite" // SQLite driver

	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata")

// session records what a person who types commands sees.
type session struct {
	settings settings
	global   []string // flags for every command
	text     strings.Builder
}

// types runs one command line, whose words are separated by single spaces.
func (s *session) types(t *testing.T, line string) result {
	t.Helper()
	r := command(t, s.settings, append(slices.Clone(s.global), strings.Split(line, " ")...)...)
	fmt.Fprintf(&s.text, "$ fairlead %s\n%s", line, r.stdout)
	for text := range strings.Lines(r.stderr) {
		s.text.WriteString("[stderr] " + text)
	}
	if r.status != 0 {
		fmt.Fprintf(&s.text, "[exit %d]\n", r.status)
	}
	s.text.WriteString("\n")
	return r
}

var (
	anyTime   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	anySecret = regexp.MustCompile(`\b(fl[kp])_[A-Za-z0-9]{12}_[A-Za-z0-9_-]{43}`)
	anyID     = regexp.MustCompile(`\b(fl[kp])_[A-Za-z0-9]{12}_\*\*\*`)
	anyKey    = regexp.MustCompile(`\b(mkey|nodekey|discokey):[0-9a-f]{64}`)
)

// masked replaces times and keys in the text. The masks are as wide as what they hide,
// so that tables stay aligned.
func masked(text string) string {
	text = anyTime.ReplaceAllStringFunc(text, func(at string) string {
		if strings.Contains(at, ".") {
			return "2026-01-02T03:04:05.678901Z"
		}
		return "2026-01-02T03:04:05Z"
	})
	text = anySecret.ReplaceAllString(text, "${1}_IDENTIFIER00_SECRET")
	text = anyID.ReplaceAllString(text, "${1}_IDENTIFIER00_***")
	return anyKey.ReplaceAllString(text, "$1:KEY")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), rewrite with -update:\n%s", path, diff)
	}
}

// TestCommandLine runs one long session twice: on SQLite over the local socket, and on
// PostgreSQL over the network with an API key. Both must look the same.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	t.Run("sqlite, local socket", func(t *testing.T) {
		t.Parallel()
		s := onSQLite(t)
		p := serve(t, s)
		p.client(newKey(t, s)).must(t, 200, "GET", "/api/v1/user", "") // creates and uses the first API key, as the other session does
		golden(t, "session.txt", typeAll(t, p, &session{settings: s}))
	})
	t.Run("postgres, from elsewhere with a key", func(t *testing.T) {
		t.Parallel()
		s := onPostgres(t, pg)
		p := serve(t, s)
		away := &session{settings: settings{"unix_socket": "/nowhere"}, global: []string{"--server", "http://" + p.api, "--api-key", newKey(t, s)}}
		golden(t, "session.txt", typeAll(t, p, away))
	})
}

func typeAll(t *testing.T, p *process, s *session) string {
	t.Helper()
	for _, line := range []string{
		"health", "health -o json", "health -o yaml", "users list", "nodes list", "preauthkeys list", "users list -o json",
		"users create alice", "users create Bob --display-name Bob --email bob@example.com -o json",
		"users create alice", "users create", "users create 1x", "users creat",
		"users list", "users list -o json", "users list -o yaml", "users rename Bob bob", "users rename 99 x",
	} {
		s.types(t, line)
	}
	single := strings.TrimSpace(s.types(t, "preauthkeys create --user alice --expiration 999d").stdout)
	for _, line := range []string{
		"preauthkeys create --user bob --reusable --ephemeral --expiration 24h -o json", "preauthkeys create --tags tag:web -o yaml",
		"preauthkeys create", "preauthkeys create --user nobody", "preauthkeys create --user alice --expiration 1x",
	} {
		s.types(t, line)
	}
	p.client("").must(t, 200, "POST", "/api/v1/machine", registration(single, "Laptop of Alice"))
	for _, line := range []string{
		"nodes list", "nodes list -o json", "nodes list -o yaml", "nodes list --user bob", "nodes list --user nobody",
		"nodes show laptop-of-alice", "nodes show 9", "nodes rename laptop-of-alice laptop", "nodes rename laptop 9", "nodes address laptop --ipv4 100.64.7.1",
		"nodes address laptop --ipv4 10.0.0.1", "nodes expire 100.64.7.1", "nodes expire --all", "nodes expire --all --force", "nodes expire --all --all-offline", "nodes list",
		"nodes expire laptop --never", "nodes tag laptop --tags tag:web", "nodes tag laptop --tags web", "nodes list", "nodes delete --identifier 1", "nodes delete --identifier 1 --force",
		"nodes delete laptop --force", "auth list", "auth approve ABCD-EFGH --user alice", "auth reject garbage", "ssh list", "ssh list -o json", "ssh approve ABCD-EFGH", "ssh reject garbage",
		"preauthkeys list", "preauthkeys list --user bob -o json", "preauthkeys list --user bob -o yaml",
		"preauthkeys expire --user bob --key 1", "preauthkeys expire --user bob --key 2", "preauthkeys expire", "preauthkeys expire --key 99",
		"apikeys create --expiration 999d", "apikeys create -o json", "apikeys list", "apikeys list -o json", "apikeys list -o yaml",
		"apikeys expire --key 3", "apikeys expire --prefix ab --force", "apikeys expire", "apikeys delete --key 3", "apikeys delete --key 3 --force", "apikeys delete --key 3 --force",
		"users delete bob", "users delete bob --force", "preauthkeys list", "users list", "users list extra", "users list -o xml", "frobnicate",
	} {
		s.types(t, line)
	}
	return masked(s.text.String())
}

func TestKeyIsAloneOnStandardOutput(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	serve(t, s)
	script := exec.CommandContext(t.Context(), "/bin/sh", "-c",
		`"$0" users create alice >/dev/null && key=$("$0" preauthkeys create --user alice) && token=$("$0" apikeys create --expiration 999d) && echo "$key $token"`, binary)
	script.Env = s.environ()
	out, err := script.Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := "flp_IDENTIFIER00_SECRET flk_IDENTIFIER00_SECRET\n"; masked(string(out)) != want {
		t.Errorf("got %q, want %q", masked(string(out)), want)
	}
	var keys []struct{ CreatedAt, Expiration time.Time }
	if err := json.Unmarshal([]byte(mustCommand(t, s, "apikeys", "list", "--output", "json")), &keys); err != nil || len(keys) != 1 {
		t.Fatalf("%d keys (%v)", len(keys), err)
	}
	if life := keys[0].Expiration.Sub(keys[0].CreatedAt); life.Round(time.Hour) != 999*24*time.Hour {
		t.Errorf("a key for 999d lasts %v", life)
	}
}

func TestExpiredKeyIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	p := serve(t, s)
	for _, by := range []struct {
		flag string
		name func(key string) string
	}{
		{"--key", func(key string) string { return key }},
		{"--key", func(key string) string { return key[:len("flk_aaaaaaaaaaaa_")] + "***" }},
		{"--prefix", func(key string) string { return key[len("flk_"):][:12] }},
		{"--prefix", func(key string) string { return key[len("flk_"):][:4] }},
	} {
		key := newKey(t, s)
		client := p.client(key)
		client.must(t, 200, "GET", "/api/v1/user", "")
		says(t, mustCommand(t, s, "apikeys", "expire", by.flag, by.name(key), "--force"), "Expired API key flk_"+key[len("flk_"):][:12]+"_***\n")
		client.must(t, 401, "GET", "/api/v1/user", "")
	}
}

func TestHealthCommandFailsWithoutServer(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	want := result{status: 1, stderr: "Error: no server is listening on the socket " + s["unix_socket"] +
		" (connect: no such file or directory); start one with fairlead serve, or use --server\n"}
	if diff := cmp.Diff(want, command(t, s, "health"), cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("over the socket (-want +got):\n%s", diff)
	}
	r := command(t, s, "health", "--server", "http://"+porttest.Addr(t))
	if r.status != 1 || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("over TCP: %+v", r)
	}
	says(t, r.stderr, "cannot reach the server", "connection refused")
}

func TestConfigurationComesFromFileAndEnvironment(t *testing.T) {
	t.Parallel()
	s := onPostgres(t, pg)
	dir := filepath.Dir(s["unix_socket"])
	file, pass := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "pass")
	text := fmt.Sprintf("server_url: http://127.0.0.1\nlisten_addr: 127.0.0.1:0\nmetrics_listen_addr: 127.0.0.1:0\nunix_socket: %s\nlog: {format: text}\nderp: {server: {enabled: false}}\n"+
		"database:\n  type: postgres\n  postgres: {host: %s, port: %s, name: %s, user: elsewhere}\n",
		s["unix_socket"], s["database.postgres.host"], s["database.postgres.port"], s["database.postgres.name"])
	for path, text := range map[string]string{file: text, pass: "not asked for\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	byFile := func(cmd *exec.Cmd) {
		cmd.Env = []string{
			"FAIRLEAD_CONFIG=" + file, "FAIRLEAD_DATABASE_POSTGRES_USER=" + pg.User,
			"FAIRLEAD_DATABASE_POSTGRES_PASS_FILE=" + pass, "FAIRLEAD_LOG_FORMAT=json",
		}
	}
	start(t, nil, byFile, "serve").awaitReady(t)
	for _, args := range [][]string{{"config", "check"}, {"users", "create", "alice"}, {"health"}} {
		if p := start(t, nil, byFile, args...); p.status(t, patience) != 0 {
			t.Errorf("fairlead %v: %s", args, p.log)
		}
	}
	unread := command(t, settings{"unix_socket": s["unix_socket"]}, "users", "list", "--config", filepath.Join(dir, "missing.yaml"))
	if unread.status != 0 || !strings.Contains(unread.stdout, "alice") {
		t.Errorf("without the configuration: %+v", unread)
	}
}

func TestAuditNamesThePeer(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root: it becomes another user")
	}
	s := onSQLite(t)
	p := serve(t, s)
	mustCommand(t, s, "users", "create", "byroot")
	other := start(t, s, func(cmd *exec.Cmd) { cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: 0} }, "users", "create", "bynobody")
	if status := other.status(t, patience); status != 0 {
		t.Fatalf("exit status %d: %s", status, other.log)
	}
	key := newKey(t, s)
	p.client(key).must(t, 200, "POST", "/api/v1/user", `{"name": "bykey"}`)

	db, err := sql.Open("sqlite", "file:"+s["database.sqlite.path"]+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), "SELECT json_extract(after, '$.name'), actor FROM audit WHERE object_kind = 'user' AND verb = 'created' ORDER BY rev")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	type actor struct{ Kind, ID, Name, Addr string }
	got := map[string]actor{}
	for rows.Next() {
		var name, text string
		var a actor
		if err := rows.Scan(&name, &text); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatal(err)
		}
		got[name] = a
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	want := map[string]actor{
		"byroot":   {Kind: "local", ID: "0", Name: "root"},
		"bynobody": {Kind: "local", ID: "65534", Name: "nobody"},
		"bykey":    {Kind: "key", ID: "1", Name: key[len("flk_"):][:12], Addr: "127.0.0.1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("actors (-want +got):\n%s", diff)
	}
}
