package clienttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/proxy"
	"tailscale.com/ipn/ipnstate"
)

const (
	startLimit = 30 * time.Second
	stopLimit  = 10 * time.Second
	pollEvery  = 50 * time.Millisecond
	shownLog   = 8 << 10 // bytes of the log that a failed test shows
)

var socksLine = regexp.MustCompile(`SOCKS5 listening on (\S+)`)

// Options configures a daemon. The default is the newest client on this host, with userspace networking.
type Options struct {
	Version   string     // defaults to Newest
	Namespace *Namespace // where it runs; defaults to this host
	Userspace bool       // use userspace networking; always the case on this host
	Dir       string     // for state, socket and log; defaults to a new directory
	Env       []string   // further environment of the daemon, as "NAME=value"
}

// Daemon is a client: its running tailscaled, and the command line for it.
type Daemon struct {
	Dir string

	opts  Options
	bin   string
	cred  *syscall.Credential // credentials of its processes; nil in a namespace
	cmd   *exec.Cmd
	end   context.CancelFunc // asks the running daemon to exit; nil if none runs
	since int64              // length of the log when the daemon started
}

// Start builds the client if necessary and starts its daemon, which is not logged in yet. The daemon is stopped
// at the end of the test. If the test fails, its log is shown.
//
// The client uses plain HTTP for the relay, because a server without TLS needs that. For one with TLS, set
// TS_DEBUG_USE_DERP_HTTP=0 and its certificate authority in SSL_CERT_FILE.
func Start(t testing.TB, opts Options) *Daemon {
	t.Helper()
	if opts.Version == "" {
		opts.Version = Newest
	}
	if opts.Dir == "" {
		// The test's own directory is not used, because the path of a socket has at most 107 bytes.
		dir, err := os.MkdirTemp("", "fl")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		opts.Dir = dir
	}
	d := &Daemon{Dir: opts.Dir, opts: opts, bin: Build(t, opts.Version)}
	if opts.Namespace == nil {
		d.cred = sealed(t)
	}
	t.Cleanup(func() {
		if err := d.Stop(); err != nil {
			t.Errorf("stopping the client in %s: %v", d.Dir, err)
		}
		if t.Failed() {
			log := d.Log()
			t.Logf("log of the client %s in %s:\n%s", d.opts.Version, d.Dir, log[max(0, len(log)-shownLog):])
		}
	})
	if err := d.Resume(); err != nil {
		t.Fatal(err)
	}
	return d
}

// Resume starts the daemon again with its previous state.
func (d *Daemon) Resume() error {
	log, err := os.OpenFile(d.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	if d.since, err = log.Seek(0, 2); err != nil {
		return err
	}
	ctx, end := context.WithCancel(context.Background())
	cmd := d.command(ctx, "tailscaled", d.flags()...)
	cmd.Env = append(d.quietEnv(), d.opts.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopLimit
	if err := cmd.Start(); err != nil {
		end()
		return err
	}
	d.cmd, d.end = cmd, end
	return d.awaitSocket()
}

func (d *Daemon) flags() []string {
	flags := []string{"--statedir=" + d.Dir, "--socket=" + d.socket(), "--port=0", "--no-logs-no-support"}
	if d.opts.Namespace != nil && !d.opts.Userspace {
		return append(flags, "--tun=tailscale0")
	}
	return append(flags, "--tun=userspace-networking", "--socks5-server=127.0.0.1:0")
}

// quietEnv returns the environment that keeps a client from contacting any server other than the given one. A
// client that would still contact the vendor's server panics instead.
func (d *Daemon) quietEnv() []string {
	return append(os.Environ(), "TS_NO_LOGS_NO_SUPPORT=true", "TS_LOGS_DIR="+d.Dir, "TS_DISABLE_PORTMAPPER=1", "TS_DISABLE_UPNP=1",
		"TS_PANIC_IF_HIT_MAIN_CONTROL=1", "TS_DEBUG_DISABLE_PORTLIST=1", "TS_DEBUG_USE_DERP_HTTP=1")
}

func (d *Daemon) awaitSocket() error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	err := poll(ctx, func() error {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", d.socket())
		if err == nil {
			conn.Close()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("the client %s does not start: %w\n%s", d.opts.Version, errors.Join(err, d.Stop()), d.Log())
	}
	return nil
}

// Stop stops the daemon and keeps its state.
func (d *Daemon) Stop() error {
	if d.end == nil {
		return nil
	}
	d.end()
	d.end = nil
	if err := d.cmd.Wait(); !errors.Is(err, context.Canceled) {
		return err // it did not exit when asked, or had exited before
	}
	return nil
}

// Kill kills the daemon, as in a crash, and keeps its state.
func (d *Daemon) Kill() error {
	err := d.cmd.Process.Kill()
	_ = d.cmd.Wait() // reports that it was killed
	d.end()
	d.end = nil
	return err
}

// Restart stops the daemon and starts it again with its previous state.
func (d *Daemon) Restart() error { return errors.Join(d.Stop(), d.Resume()) }

// Process returns the process of the running daemon.
func (d *Daemon) Process() *os.Process { return d.cmd.Process }

// Log returns everything the daemon wrote, across restarts.
func (d *Daemon) Log() string {
	text, err := os.ReadFile(d.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (d *Daemon) logFile() string { return filepath.Join(d.Dir, "log") }
func (d *Daemon) socket() string  { return filepath.Join(d.Dir, "socket") }

// command returns a command for one of the client's programs, in the daemon's namespace.
func (d *Daemon) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	name := filepath.Join(d.bin, program)
	cmd := exec.CommandContext(ctx, name, args...)
	if d.opts.Namespace != nil {
		cmd = d.opts.Namespace.Command(ctx, name, args...)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.cred}
	return cmd
}

// CLI runs the client's command line. If a command could not be run, or ctx ended first, the code is -1 and
// stderr says why.
func (d *Daemon) CLI(ctx context.Context, args ...string) (stdout, stderr string, code int) {
	cmd := d.command(ctx, "tailscale", append([]string{"--socket=" + d.socket()}, args...)...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+d.Dir) // where "tailscale ssh" keeps host keys
	cmd.WaitDelay = time.Second
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && ctx.Err() == nil:
		code = exit.ExitCode()
	default:
		code = -1
		fmt.Fprintf(&problem, "tailscale %s: %v\n", strings.Join(args, " "), errors.Join(err, ctx.Err()))
	}
	return out.String(), problem.String(), code
}

// run is CLI for a command that must succeed.
func (d *Daemon) run(ctx context.Context, args ...string) (stdout string, err error) {
	stdout, stderr, code := d.CLI(ctx, args...)
	if code != 0 {
		return stdout, fmt.Errorf("tailscale %s: exit code %d\n%s%s", args[0], code, stdout, stderr)
	}
	return stdout, nil
}

// Up joins a server with an auth key and returns when the client is up. args are further arguments of
// "tailscale up".
func (d *Daemon) Up(ctx context.Context, serverURL, authKey string, args ...string) error {
	_, err := d.run(ctx, append([]string{"up", "--login-server=" + serverURL, "--auth-key=" + authKey, "--timeout=60s"}, args...)...)
	return err
}

// Status returns what the client knows about itself and its peers.
func (d *Daemon) Status(ctx context.Context) (*ipnstate.Status, error) {
	// A client that is logged out also prints its status, but exits with code 1.
	stdout, stderr, _ := d.CLI(ctx, "status", "--json")
	status := new(ipnstate.Status)
	if err := json.Unmarshal([]byte(stdout), status); err != nil {
		return nil, fmt.Errorf("tailscale status: %w\n%s%s", err, stdout, stderr)
	}
	return status, nil
}

// Wait polls the status until it meets the condition. The error contains the last status.
func (d *Daemon) Wait(ctx context.Context, wanted func(*ipnstate.Status) bool) error {
	return poll(ctx, func() error {
		status, err := d.Status(ctx)
		if err != nil || wanted(status) {
			return err
		}
		text, err := json.MarshalIndent(status, "", "  ")
		return errors.Join(fmt.Errorf("the client is not as wanted: %s", text), err)
	})
}

// WaitState waits for a state of the client, such as "Running" or "NeedsLogin".
func (d *Daemon) WaitState(ctx context.Context, state string) error {
	if err := d.Wait(ctx, func(s *ipnstate.Status) bool { return s.BackendState == state }); err != nil {
		return fmt.Errorf("waiting for %s: %w", state, err)
	}
	return nil
}

// IPs returns the client's addresses in the mesh.
func (d *Daemon) IPs(ctx context.Context) ([]netip.Addr, error) {
	status, err := d.Status(ctx)
	if err != nil {
		return nil, err
	}
	if len(status.TailscaleIPs) == 0 {
		return nil, fmt.Errorf("the client has no address, its state is %s", status.BackendState)
	}
	return status.TailscaleIPs, nil
}

// Dial connects to an address of the mesh over TCP, through the client. For a client with a network device,
// dial from its namespace instead.
func (d *Daemon) Dial(ctx context.Context, address string) (net.Conn, error) {
	listening := socksLine.FindStringSubmatch(d.Log()[d.since:])
	if listening == nil {
		return nil, errors.New("the client has no SOCKS5 server: only one without a network device does")
	}
	var direct proxy.Dialer = new(net.Dialer)
	if d.opts.Namespace != nil {
		direct = d.opts.Namespace
	}
	socks, err := proxy.SOCKS5("tcp", listening[1], nil, direct)
	if err != nil {
		return nil, err
	}
	return socks.(proxy.ContextDialer).DialContext(ctx, "tcp", address)
}

// poll retries until try succeeds. If ctx ends first, it returns the last error.
func poll(ctx context.Context, try func() error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var last error
	for {
		err := try()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), last)
		case <-tick.C:
		}
	}
}
