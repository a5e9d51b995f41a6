package main_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/fairlead-mesh/fairlead/internal/test/disktest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

// Every test here makes startup fail for real.

// startLimit is how long a server that cannot start may take to say so.
const startLimit = time.Minute

// refuses starts the server, expects that to fail, and checks the only line it logs.
func refuses(t *testing.T, s settings, change func(*exec.Cmd), phrases ...string) {
	t.Helper()
	p := start(t, s, change, "serve")
	if status := p.status(t, startLimit); status != 1 {
		t.Errorf("exit status %d, want 1", status)
	}
	text := p.log.String()
	if strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "Error: ") || p.out.String() != "" {
		t.Errorf("got %q, want one line that begins with Error", text+p.out.String())
	}
	says(t, text, phrases...)
}

func TestStartNamesRefusedDatabase(t *testing.T) {
	t.Parallel()
	s := onPostgres(t, pg).with("database.postgres.port", porttest.Port(t))
	refuses(t, s, nil, "failed to connect to database", "connection refused", "database.postgres.host")
}

// listen listens on an address until the test ends.
func listen(t *testing.T, network, address string) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestStartNamesSilentDatabase(t *testing.T) {
	t.Parallel()
	silent := listen(t, "tcp", "127.0.0.1:0")
	s := onPostgres(t, pg).with("database.postgres.port", fmt.Sprint(silent.Addr().(*net.TCPAddr).Port))
	refuses(t, s, nil, "failed to connect to database")
}

func TestStartNamesWrongPasswordAndTooManyClients(t *testing.T) {
	t.Parallel()
	server := startPostgres(t, pgtest.Options{Pass: "correct", Args: []string{"-c", "max_connections=8", "-c", "superuser_reserved_connections=0"}})
	s := onPostgres(t, server)
	refuses(t, s.with("database.postgres.pass", "incorrect"), nil,
		"failed to connect to database", "check database.postgres.user and pass", "password authentication failed")
	refuses(t, s.with("database.postgres.name", "missing"), nil, "failed to connect to database", `database "missing" does not exist`)
	for {
		conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
		if err != nil {
			break
		}
		t.Cleanup(func() { conn.Close(t.Context()) })
	}
	refuses(t, s, nil, "failed to connect to database", "too many clients already", "raise max_connections")
}

func TestStartNamesDamagedPageOfPostgres(t *testing.T) {
	t.Parallel()
	server := startPostgres(t, pgtest.Options{})
	s := onPostgres(t, server)
	p := serve(t, s)
	mustCommand(t, s, "users", "create", "alice")
	p.stop(t)
	var file string
	conn, err := pgx.Connect(t.Context(), server.URL(s["database.postgres.name"]))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(t.Context(), "SELECT pg_relation_filepath('users')").Scan(&file); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(conn.Close(t.Context()), server.Pause("fast")); err != nil {
		t.Fatal(err)
	}
	overwrite(t, filepath.Join(server.Dir, "data", file), 24)
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	refuses(t, s, nil, "invalid page header", "restore a backup")
}

// overwrite overwrites the first n bytes of a file with garbage.
func overwrite(t *testing.T, path string, n int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(strings.Repeat("\xa5", n)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestStartNamesMalformedFileOfSQLite(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	if err := os.WriteFile(s["database.sqlite.path"], []byte(strings.Repeat(rand.Text(), 400)), 0o600); err != nil {
		t.Fatal(err)
	}
	refuses(t, s, nil, "database disk image is malformed", "restore a backup")
}

func TestStartNamesDamagedFileOfSQLite(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	p := serve(t, s)
	mustCommand(t, s, "users", "create", "alice")
	p.stop(t)
	path := s["database.sqlite.path"]
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()/2); err != nil {
		t.Fatal(err)
	}
	refuses(t, s, nil, "database disk image is malformed", "restore a backup")
}

func TestStartNamesDirectoryThatIsNotWritable(t *testing.T) {
	t.Parallel()
	asNobody := func(cmd *exec.Cmd) {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	if os.Getuid() != 0 {
		asNobody = nil // only root can write everywhere
	}
	s := onSQLite(t)
	dir := filepath.Dir(s["database.sqlite.path"])
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	refuses(t, s, asNobody, "failed to open database file: permission denied", "must own the file and its directory")
	below := filepath.Join(dir, "below", "db.sqlite")
	refuses(t, s.with("database.sqlite.path", below), asNobody, "failed to open database file: permission denied", below)
	writable := filepath.Join(disktest.Open(t), "db.sqlite")
	if err := os.Chmod(filepath.Dir(writable), 0o777); err != nil {
		t.Fatal(err)
	}
	s = s.with("database.sqlite.path", writable)
	refuses(t, s, asNobody, "noise.private_key_path", "permission denied")
	refuses(t, s.with("noise.private_key_path", filepath.Join(filepath.Dir(writable), "noise.key")), asNobody, "unix_socket "+s["unix_socket"], "permission denied")
}

func TestSecondProcessOnOneFileIsRefused(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	first := serve(t, s)
	refuses(t, sqliteIn(disktest.Open(t)).with("database.sqlite.path", s["database.sqlite.path"]), nil,
		"failed to open database file", s["database.sqlite.path"], "in use by another fairlead process", "use PostgreSQL to run several")
	first.client("").must(t, 200, "GET", "/api/v1/user", "")
}

func TestStartNamesAddressInUse(t *testing.T) {
	t.Parallel()
	taken := listen(t, "tcp", "127.0.0.1:0").Addr().String()
	for _, key := range []string{"listen_addr", "metrics_listen_addr"} {
		refuses(t, onSQLite(t).with(key, taken), nil, "address already in use: "+key+" "+taken, "choose another port")
	}
	running := serve(t, onSQLite(t))
	socket := running.settings["unix_socket"]
	refuses(t, onSQLite(t).with("unix_socket", socket), nil, "address already in use: unix_socket "+socket, "another fairlead is running")
	running.client("").must(t, 200, "GET", "/health", "")
}

func TestStartNamesCertificateThatCannotBeLoaded(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	dir := filepath.Dir(s["unix_socket"])
	file := filepath.Join(dir, "not.pem")
	if err := os.WriteFile(file, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "missing.pem"), file, dir} {
		refuses(t, s.with("tls_cert_path", path, "tls_key_path", path), nil, "cannot load certificate", "check tls_cert_path and tls_key_path")
	}
}

func TestStartReportsEveryProblemOfTheConfiguration(t *testing.T) {
	t.Parallel()
	file := filepath.Join(disktest.Open(t), "config.yaml")
	for _, c := range []struct{ text, want string }{
		{"listen_addr: nowhere\nlog:\n  lvl: info\n", "failed to parse configuration\n" +
			"  FILE:1: listen_addr: must be host:port, such as 0.0.0.0:8080 or [::]:8080, got \"nowhere\"\n" +
			"  FILE:3: log.lvl: unknown key; did you mean log.level?\n"},
		{"listen_addr: [1]\ndatabase: {type: mysql}\n", "failed to parse configuration: yaml: unmarshal errors\n" +
			"  FILE:1: listen_addr: must be host:port, got a list\n" +
			"  FILE:2: database.type: must be sqlite or postgres, got \"mysql\"\n"},
		{"log: {level: info\n", "failed to parse configuration\n  FILE:1: did not find expected ',' or '}'\n"},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"serve"}, {"config", "check"}} {
			p := start(t, nil, nil, append(args, "--config", file)...)
			if status := p.status(t, startLimit); status != 1 {
				t.Errorf("exit status %d, want 1", status)
			}
			if diff := cmp.Diff(strings.ReplaceAll(c.want, "FILE", file), p.log.String()); diff != "" {
				t.Errorf("%v (-want +got):\n%s", args, diff)
			}
		}
	}
}

// The file contains exactly the keys in the specification's table. The environment
// overrides what depends on the test: ports, paths and the throwaway database.
func TestStartWithAFileOfTheSpecificationsKeys(t *testing.T) {
	t.Parallel()
	dir := disktest.Open(t)
	file := filepath.Join(dir, "config.yaml")
	const text = `
server_url: https://mesh.example.org:443
listen_addr: 127.0.0.1:0
metrics_listen_addr: 127.0.0.1:0
database:
  postgres: {pass: hunter2, max_open_conns: 5, max_idle_conns: 10, conn_max_idle_time_secs: 3600}
log: {format: json, level: info}
node_update_check_interval: 30s
dns: {magic_dns: true, base_domain: mesh.internal}
derp:
  urls: ["http://127.0.0.1:9/map.json"]
  auto_update_enabled: true
  update_frequency: 24h
  server: {enabled: true, region_id: 999, region_code: home, stun_listen_addr: "127.0.0.1:0"}
policy: {mode: database, path: /etc/fairlead/policy.json}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o644); err != nil { // too permissive
		t.Fatal(err)
	}
	r := command(t, settings{}, "config", "check", "--config", file)
	if r.status != 0 {
		t.Fatalf("exit status %d: %s", r.status, r.stderr)
	}
	const readable = "this is a secret, but all users can read the file (mode 0644); run: chmod o= "
	says(t, r.stdout, "configuration ok: "+file, readable+file)

	own := settings{}
	for key, value := range onPostgres(t, pg) {
		switch key {
		case "unix_socket", "noise.private_key_path", "derp.server.private_key_path",
			"database.postgres.port", "database.postgres.name", "database.postgres.user", "database.postgres.pass":
			own[key] = value
		}
	}
	p := start(t, own, nil, "serve", "--config", file)
	p.awaitReady(t)
	says(t, p.client("").must(t, 200, "GET", "/api/v1/server", ""), `"database":"postgres"`)
	says(t, p.log.String(), readable+file)
	p.stop(t)
}

func TestFileInPlaceOfTheSocketIsKept(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	if err := os.WriteFile(s["unix_socket"], []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	refuses(t, s, nil, "unix_socket "+s["unix_socket"], "not a socket", "remove the file")
	if text, err := os.ReadFile(s["unix_socket"]); err != nil || string(text) != "precious" {
		t.Errorf("the file is now %q (%v)", text, err)
	}
}

func TestStopDuringTheStartIsNoFailure(t *testing.T) {
	t.Parallel()
	silent := listen(t, "tcp", "127.0.0.1:0")
	p := start(t, onPostgres(t, pg).with("database.postgres.port", fmt.Sprint(silent.Addr().(*net.TCPAddr).Port)), nil, "serve")
	if _, err := silent.Accept(); err != nil { // the server is now waiting for a response
		t.Fatal(err)
	}
	p.signal(t, syscall.SIGTERM)
	if status := p.status(t, 2*time.Second); status != 0 || p.log.String() != "" {
		t.Errorf("exit status %d: %s", status, p.log)
	}
}
