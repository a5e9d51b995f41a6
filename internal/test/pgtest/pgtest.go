// Package pgtest starts real PostgreSQL servers for tests. It is not for production code. A server runs until
// Stop is called, or until the process that started it dies.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

// Options configures a server. By default its data is in memory, where even fsync is fast.
type Options struct {
	Durable bool     // data on disk
	Pass    string   // if set, a password is required
	Dir     string   // where the data is stored; defaults to a new directory
	Args    []string // further settings, as "-c", "name=value"
	Env     []string // further environment variables, as "NAME=value"
}

// Server is a running PostgreSQL.
type Server struct {
	Host string // a loopback address
	Port int
	User string
	Pass string
	Dir  string // the data directory is Dir/data, the socket is in Dir

	opts  Options
	bin   string
	owned bool // Dir must be removed at the end
	stdin io.Closer
	done  chan error
	next  atomic.Int64
	// release ends the reservation of the port.
	release func()

	primary *Server // of a standby
}

// Start creates a new cluster and starts a server on it.
func Start(opts Options) (*Server, error) {
	bin, err := newest()
	if err != nil {
		return nil, err
	}
	s := &Server{Host: "127.0.0.1", User: "fairlead", Pass: opts.Pass, Dir: opts.Dir, opts: opts, bin: bin}
	if s.Dir == "" {
		base := "/dev/shm"
		if opts.Durable {
			base = "/var/tmp"
		}
		if s.Dir, err = os.MkdirTemp(base, "fairlead-pg-"); err != nil {
			return nil, err
		}
		s.owned = true
	}
	if err := s.init(); err != nil {
		s.remove()
		return nil, err
	}
	if err := s.Resume(); err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

// newest returns the directory with the programs of the newest version installed,
// by Debian's packages or by install.sh.
func newest() (string, error) {
	if chosen := os.Getenv("PGTEST_BIN"); chosen != "" {
		return chosen, nil
	}
	bin, version := "", 0
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/local/lib/postgresql/*/bin"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		for _, dir := range found {
			if v, err := strconv.Atoi(filepath.Base(filepath.Dir(dir))); err == nil && v > version {
				bin, version = dir, v
			}
		}
	}
	if bin == "" {
		return "", errors.New("PostgreSQL is not installed; run internal/test/pgtest/install.sh, or install package postgresql")
	}
	return bin, nil
}

// as makes a command run as the server's user, because PostgreSQL refuses to run as root.
func (s *Server) as(cmd *exec.Cmd) error {
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return err
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return errors.Join(os.Chown(s.Dir, uid, gid), os.Chmod(s.Dir, 0o755))
}

func (s *Server) init() error {
	args := []string{"-D", s.Dir + "/data", "-U", s.User, "-E", "UTF8", "--locale=C.UTF-8", "-A", "trust"}
	if !s.opts.Durable {
		args = append(args, "--no-sync")
	}
	if s.Pass != "" {
		pw := filepath.Join(s.Dir, "pw")
		if err := os.WriteFile(pw, []byte(s.Pass+"\n"), 0o644); err != nil {
			return err
		}
		defer os.Remove(pw)
		args = append(args, "--auth-host=scram-sha-256", "--pwfile="+pw)
	}
	cmd := exec.CommandContext(context.Background(), s.bin+"/initdb", args...)
	if err := s.as(cmd); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

// Resume starts the server again on the same port.
func (s *Server) Resume() error {
	if s.Port == 0 {
		var err error
		if s.Port, s.release, err = porttest.Reserve(context.Background()); err != nil {
			return err
		}
	}
	args := append([]string{
		"-D", s.Dir + "/data", "-p", strconv.Itoa(s.Port), "-k", s.Dir, "-c", "listen_addresses=" + s.Host,
		"-c", "shared_buffers=64MB", "-c", "max_connections=100", "-c", "log_min_messages=fatal",
	}, s.opts.Args...)
	// The shell stops the server when it reads how to stop it, or when its standard input is closed because
	// this process has died; in that case it also removes the data.
	script := `dir=$1; shift; "$@" </dev/null & pid=$!; read -r how || how=gone
		case "$how" in fast) kill -INT $pid;; *) kill -QUIT $pid;; esac; wait $pid
		if [ "$how" = gone ]; then rm -rf "$dir"; fi`
	cmd := exec.CommandContext(context.Background(), "/bin/sh", append([]string{"-c", script, "sh", s.removable(), s.bin + "/postgres"}, args...)...)
	if err := s.as(cmd); err != nil {
		return err
	}
	if len(s.opts.Env) > 0 {
		cmd.Env = append(os.Environ(), s.opts.Env...)
	}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.stdin, s.done = stdin, make(chan error, 1)
	go func(done chan<- error) { done <- cmd.Wait() }(s.done)
	return s.await(&log)
}

func (s *Server) await(log *bytes.Buffer) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		conn, err := pgx.Connect(context.Background(), s.URL("postgres"))
		if err == nil {
			return conn.Close(context.Background())
		}
		select {
		case <-s.done:
			return fmt.Errorf("PostgreSQL ended: %s", log.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("PostgreSQL does not answer: %w", err), s.Pause("immediate"))
		}
	}
}

// Pause stops the server and keeps its data. how is "fast", or "immediate" for a simulated crash.
func (s *Server) Pause(how string) error {
	if s.stdin == nil {
		return nil
	}
	fmt.Fprintln(s.stdin.(io.Writer), how)
	s.stdin.Close()
	s.stdin = nil
	select {
	case <-s.done:
		return nil
	case <-time.After(30 * time.Second):
		return errors.New("PostgreSQL does not end")
	}
}

// Stop stops the server and removes its data.
func (s *Server) Stop() error {
	err := s.Pause("immediate")
	s.remove()
	return err
}

func (s *Server) remove() {
	os.RemoveAll(s.removable())
	if s.release != nil {
		s.release()
	}
}

// removable returns the path to remove at the end.
func (s *Server) removable() string {
	if s.owned {
		return s.Dir
	}
	return s.Dir + "/data"
}

// URL returns the URL of a database.
func (s *Server) URL(database string) string {
	return s.urlAt(net.JoinHostPort(s.Host, strconv.Itoa(s.Port)), database)
}

// urlAt returns the URL of a database for who reaches the server at another address.
func (s *Server) urlAt(host, database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(s.User, s.Pass), Host: host, Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Database creates an empty database for one test and returns its name.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("t%d", s.next.Add(1))
	s.Exec(t, "postgres", "CREATE DATABASE "+name)
	return name
}

// Exec runs one statement in a database.
func (s *Server) Exec(t testing.TB, database, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// Main runs a package's tests with one server, which is stopped after them.
func Main(m *testing.M, opts Options, use func(*Server)) int {
	s, err := Start(opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	defer func() {
		if err := s.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
		}
	}()
	use(s)
	return m.Run()
}
