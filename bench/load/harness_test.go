//go:build !race

package load

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
	"github.com/fairlead-mesh/fairlead/internal/test/pgtest"
	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

var (
	nodes  = flag.Int("nodes", 200, "size of the mesh")
	idle   = flag.Duration("idle", 20*time.Second, "how long quiet nodes are measured")
	rounds = flag.Int("rounds", 3, "how often at most fairlead and the reference are measured in turn, until the medians are within the limits")
)

// binaries holds the paths of the programs that a test runs.
type binaries struct{ fairlead, meshbench string }

func build(t *testing.T) (b binaries) {
	t.Helper()
	dir := t.TempDir()
	var err error
	if b.fairlead, err = meshtest.Build(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	b.meshbench = filepath.Join(dir, "meshbench")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", b.meshbench, "github.com/fairlead-mesh/fairlead/bench/meshbench")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building meshbench: %v\n%s", err, out)
	}
	return b
}

// target is a running server and everything that the generator needs to load and measure it.
type target struct {
	meshbench    string
	url, authKey string
	apiKey       string // empty for the reference server
	pid, dbPID   int
	server       *meshtest.Server // nil for the reference server
	certificate  string           // a file; empty without TLS
	// yields is whether the generator gets only little CPU time while other programs want it, so that the server does not wait for
	// virtual nodes, which would run on other machines. With none at all, nodes would exceed the time limits for clients.
	yields bool
}

// startFairlead starts a server as operators run it, with a PostgreSQL that syncs to disk.
func (b binaries) startFairlead(t *testing.T) (target, *pgtest.Server) {
	t.Helper()
	return b.startConfigured(t, nil)
}

// startConfigured is startFairlead with further configuration.
func (b binaries) startConfigured(t *testing.T, set map[string]string) (target, *pgtest.Server) {
	t.Helper()
	pg, err := pgtest.Start(pgtest.Options{Durable: true, Args: []string{"-c", "shared_preload_libraries=pg_stat_statements"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Stop(); err != nil {
			t.Error(err)
		}
	})
	config := meshtest.Config{Binary: b.fairlead, Postgres: pg, Database: pg.Database(t), Set: map[string]string{"log.level": "info"}}
	maps.Copy(config.Set, set)
	s := meshtest.Start(t, config)
	s.CLI("users", "create", "load")
	text, err := os.ReadFile(filepath.Join(pg.Dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	dbPID, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	return target{meshbench: b.meshbench, url: s.URL, authKey: s.PreAuthKey("load", "--reusable"), apiKey: s.APIKey(), pid: s.PID(), dbPID: dbPID, server: s}, pg
}

// startReference starts the reference server for a comparison with n nodes.
func (b binaries) startReference(t *testing.T, n int) target {
	t.Helper()
	addr := porttest.Addr(t)
	cmd := exec.CommandContext(t.Context(), b.meshbench, "refserver", "--listen="+addr)
	if n > 2000 { // as rarely as fairlead, or nodes fall so far behind that messages are dropped, and never know all others
		cmd.Args = append(cmd.Args, "--batch=250ms")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // killed with the test's context
	for deadline := time.Now().Add(10 * time.Second); ; {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err == nil {
			conn.Close()
			return target{meshbench: b.meshbench, url: "http://" + addr, authKey: "any", pid: cmd.Process.Pid}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the reference does not answer: %v", err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// outcome is the generator's report of one scenario. Figures that a scenario does not have are zero.
type outcome struct {
	Scenario                   string
	Errors, Failed, Incomplete int
	Converged, Settled         *bool
	StreamRetries              int `json:"stream_retries"`
	Undelivered                int `json:"undelivered_changes"`

	ConvergedAfter float64 `json:"converged_s"`
	SettledAfter   float64 `json:"settled_s"`

	Wall         float64 `json:"wall_s"`
	CPU          float64 `json:"server_cpu_s"`
	CPUPercent   float64 `json:"server_cpu_pct"`
	OtherPercent float64 `json:"other_cpu_pct"` // CPU use of everything else on the machine
	CPUPerChange float64 `json:"server_cpu_ms_per_change"`
	LastNode     float64 `json:"last_node_p50_ms"`
	PeakRSS      float64 `json:"server_peak_rss_mb"`
	RSSPerNode   float64 `json:"rss_per_node_kb"`
	Written      float64 `json:"server_written_mb"`
	DBWritten    float64 `json:"db_written_mb"`
	MapMessages  int     `json:"map_messages"`
	KeepAlives   int     `json:"keep_alives"`

	PagedP99   float64 `json:"paged_p99_ms"`
	WholeP99   float64 `json:"whole_p99_ms"`
	BesideP50  float64 `json:"paged_beside_changes_p50_ms"`
	BesideP99  float64 `json:"paged_beside_changes_p99_ms"`
	WholeBytes float64 `json:"whole_bytes"`
	Requests   int
	ListsCPU   float64 `json:"lists_cpu_pct"`
	ToldAlone  float64 `json:"server_cpu_us_per_told_alone"`
	ToldBeside float64 `json:"server_cpu_us_per_told_beside_lists"`
	CPURise    float64 `json:"server_cpu_rise_pct"`

	Push          float64 `json:"push_s"`
	Watched       int     `json:"memberships_watched"`
	MembershipP50 float64 `json:"membership_lag_p50_ms"`
	MembershipP99 float64 `json:"membership_lag_p99_ms"`
	LagP50        float64 `json:"lag_p50_ms"`
	LagP99        float64 `json:"lag_p99_ms"`
	RequestP99    float64 `json:"request_p99_ms"`
	RegisterP99   float64 `json:"register_p99_ms"`
	CPUPerRequest float64 `json:"server_cpu_ms_per_request"`
}

// clean reports whether no node, message or connection was lost.
func (o outcome) clean() bool {
	return o.Errors+o.Failed+o.Incomplete+o.StreamRetries == 0 && (o.Converged == nil || *o.Converged) && (o.Settled == nil || *o.Settled)
}

// load runs scenarios against a server and returns their outcomes by name. It calls after, if given, at the
// end of each scenario. A scenario that loses a node, a message or a connection fails the test, whatever
// its figures are.
func (s target) load(t *testing.T, scenarios string, after func(scenario string), flags ...string) map[string]outcome {
	t.Helper()
	args := append([]string{
		scenarios, "--url=" + s.url, "--auth-key=" + s.authKey, "--n=" + strconv.Itoa(*nodes),
		"--server-pid=" + strconv.Itoa(s.pid), "--db-pid=" + strconv.Itoa(s.dbPID), "--joins=0",
	}, flags...)
	cmd, out, problem := s.start(t, args...)
	found := map[string]outcome{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var o outcome
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			t.Errorf("%v: %s", err, lines.Bytes())
			continue
		}
		found[o.Scenario] = o
		if !o.clean() {
			t.Errorf("%s did not run clean: %s", o.Scenario, lines.Bytes())
		}
		if after != nil {
			after(o.Scenario)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("meshbench %s: %v\n%s", strings.Join(args, " "), err, problem.Bytes())
	}
	return found
}

// start starts the generator. Its outcomes are lines of out, and what goes wrong is in problem once it has ended.
func (s target) start(t *testing.T, args ...string) (cmd *exec.Cmd, out io.Reader, problem *bytes.Buffer) {
	t.Helper()
	cmd, problem = exec.CommandContext(t.Context(), s.meshbench, args...), &bytes.Buffer{}
	if s.yields {
		cmd = exec.CommandContext(t.Context(), "nice", append([]string{"-n", "19", s.meshbench}, args...)...)
	}
	if s.certificate != "" {
		cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+s.certificate)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = problem
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out, problem
}

// busiest returns the most CPU that other programs used during a scenario, in percent of a core.
func busiest(outcomes map[string]outcome) (percent float64) {
	for _, o := range outcomes {
		percent = max(percent, o.OtherPercent)
	}
	return percent
}
