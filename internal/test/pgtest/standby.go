package pgtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// StandbyName is the name of standbys in synchronous_standby_names.
const StandbyName = "standby"

// standbyHost is another loopback address, so that a standby can have the port of its
// primary, as servers on different machines do.
const standbyHost = "127.0.0.2"

// settleLimit is the timeout for steps that take only a moment unless the machine is
// busy.
const settleLimit = 30 * time.Second

// cloneLimit is the timeout for a checkpoint and a copy of the whole data directory.
const cloneLimit = 2 * time.Minute

// StandbyOptions configures a standby. The default is another loopback address and the
// port of the primary, with the data in memory.
type StandbyOptions struct {
	Host string
	Port int
	Dir  string   // where the data is stored; defaults to a new directory
	Args []string // further settings, as "-c", "name=value"
	Env  []string // further environment variables, as "NAME=value"
	// From is the address at which the standby reaches the primary; it defaults to the
	// primary's own address.
	From string
}

// Standby is StandbyWith for a standby with this port, or with the primary's if port is 0.
func (s *Server) Standby(port int) (*Server, error) {
	return s.StandbyWith(StandbyOptions{Port: port})
}

// StandbyWith copies a running server and starts the copy as its streaming standby. It
// is asynchronous, unless synchronous_standby_names of the primary contains StandbyName.
func (s *Server) StandbyWith(o StandbyOptions) (*Server, error) {
	standby := &Server{
		Host: cmp.Or(o.Host, standbyHost), Port: cmp.Or(o.Port, s.Port), User: s.User, Pass: s.Pass, Dir: o.Dir, bin: s.bin, primary: s,
		opts: Options{Args: append([]string{"-c", "cluster_name=" + StandbyName}, o.Args...), Env: o.Env},
	}
	if o.Dir == "" {
		dir, err := os.MkdirTemp("/dev/shm", "fairlead-pg-")
		if err != nil {
			return nil, err
		}
		standby.Dir, standby.owned = dir, true
	}
	from := cmp.Or(o.From, net.JoinHostPort(s.Host, strconv.Itoa(s.Port)))
	err := standby.clone()
	if err == nil {
		err = standby.write("postgresql.auto.conf", fmt.Sprintf("primary_conninfo = '%s'\n", s.urlAt(from, "postgres")))
	}
	if err == nil {
		err = standby.write("standby.signal", "")
	}
	if err == nil {
		err = standby.Resume()
	}
	if err != nil {
		standby.remove()
		return nil, err
	}
	if err := standby.receives(true); err != nil {
		return nil, errors.Join(err, standby.Stop())
	}
	return standby, nil
}

// clone creates the data directory from a base backup of the primary. It does what
// pg_basebackup does, which install.sh does not install.
func (s *Server) clone() error {
	return s.primary.connectedFor(cloneLimit, func(ctx context.Context, conn *pgx.Conn) error {
		start, stop := "SELECT pg_backup_start('standby', true)", "SELECT labelfile FROM pg_backup_stop(false)"
		if major, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), "."); major == "13" || major == "14" {
			start, stop = "SELECT pg_start_backup('standby', true, false)", "SELECT labelfile FROM pg_stop_backup(false, false)"
		}
		if _, err := conn.Exec(ctx, start); err != nil {
			return err
		}
		// Exit code 1 of tar means that a file changed while it was read, which the
		// write-ahead log corrects.
		const script = `set -o pipefail; umask 077; mkdir "$2" && { tar -C "$1" --exclude='./pg_wal/?*' --exclude='./pg_replslot/?*' --exclude='./postmaster.*' -cf - . || [ $? = 1 ]; } | tar -C "$2" -xf -`
		cmd := exec.CommandContext(ctx, "bash", "-c", script, "bash", s.primary.Dir+"/data", s.Dir+"/data")
		if err := s.as(cmd); err != nil {
			return err
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("copying the data directory: %w: %s", err, out)
		}
		var label string
		if err := conn.QueryRow(ctx, stop).Scan(&label); err != nil {
			return err
		}
		return s.write("backup_label", label)
	})
}

// write appends text to a file in the data directory, as the server's user.
func (s *Server) write(name, text string) error {
	cmd := exec.CommandContext(context.Background(), "bash", "-c", `umask 077; cat >>"$1"`, "bash", filepath.Join(s.Dir, "data", name))
	cmd.Stdin = strings.NewReader(text)
	if err := s.as(cmd); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// Detach makes a standby lag behind: it has everything up to now, and receives nothing
// from now on.
func (s *Server) Detach() error {
	var end string
	if err := s.primary.ask(&end, "SELECT pg_current_wal_insert_lsn()::text"); err != nil {
		return err
	}
	if err := s.until("SELECT pg_last_wal_replay_lsn() >= '"+end+"'", true); err != nil {
		return err
	}
	err := s.do("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
	return errors.Join(err, s.receives(false))
}

// receives waits until a standby is connected to its primary, or is not.
func (s *Server) receives(want bool) error {
	return s.until("SELECT count(*) > 0 FROM pg_stat_wal_receiver WHERE status = 'streaming'", want)
}

// Freeze suspends the process of a standby that receives the write-ahead log, so that the
// standby stays connected but does not respond. The returned function resumes it.
func (s *Server) Freeze() (thaw func() error, err error) {
	var pid int
	if err := s.ask(&pid, "SELECT pid FROM pg_stat_wal_receiver"); err != nil {
		return nil, err
	}
	return func() error { return syscall.Kill(pid, syscall.SIGCONT) }, syscall.Kill(pid, syscall.SIGSTOP)
}

// Synchronous makes a server wait for its standby before it acknowledges a commit, or no
// longer wait. If it is to wait, Synchronous returns when the standby has caught up.
func (s *Server) Synchronous(wait bool) error {
	name := ""
	if wait {
		name = StandbyName
	}
	if err := s.do("ALTER SYSTEM SET synchronous_standby_names = '"+name+"'", "SELECT pg_reload_conf()"); err != nil || !wait {
		return err
	}
	return s.until("SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state = 'sync'", true)
}

// Promote makes a standby a primary and returns when it accepts writes.
func (s *Server) Promote() error {
	if err := s.do("SELECT pg_promote(false)"); err != nil {
		return err
	}
	return s.until("SELECT pg_is_in_recovery()", false)
}

// until polls until a query returns the expected result.
func (s *Server) until(query string, want bool) error {
	for deadline := time.Now().Add(settleLimit); ; time.Sleep(5 * time.Millisecond) {
		var got bool
		err := s.ask(&got, query)
		if err == nil && got == want {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("%s: still %v after %v", query, got, settleLimit), err)
		}
	}
}

func (s *Server) ask(answer any, query string) error {
	return s.connected(func(ctx context.Context, conn *pgx.Conn) error { return conn.QueryRow(ctx, query).Scan(answer) })
}

func (s *Server) do(statements ...string) error {
	return s.connected(func(ctx context.Context, conn *pgx.Conn) error {
		for _, statement := range statements {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
}

func (s *Server) connected(f func(context.Context, *pgx.Conn) error) error {
	return s.connectedFor(settleLimit, f)
}

func (s *Server) connectedFor(limit time.Duration, f func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return f(ctx, conn)
}
