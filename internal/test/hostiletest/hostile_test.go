//go:build !race

package hostiletest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// TestStrangersDoNotDisturbTheMesh runs every attack of the table while the mesh works. During each
// attack, well-behaved nodes see changes about as soon as before, reconnect and join; none of their
// streams ends; and /health responds. At the end, memory, goroutines and open files are back to
// their earlier levels.
func TestStrangersDoNotDisturbTheMesh(t *testing.T) {
	if *duration == 0 {
		t.Skip("run make hostile")
	}
	m := start(t)
	m.baseline() // warm-up
	m.rest = m.baseline()
	shares := 0
	for _, a := range attacks() {
		shares += max(1, a.weight) * len(a.ways)
	}
	for _, a := range attacks() {
		for _, w := range a.ways {
			lasts := time.Duration(max(1, a.weight)) * max(short, *duration/time.Duration(shares))
			t.Run(fmt.Sprintf("%s/%d/%s", w, a.conns, a.unit), func(t *testing.T) { m.endure(t, a, w, lasts) })
		}
	}
	m.mustRecover()
}

// start starts a server, a console, nginx in front of both, and the nodes.
func start(t *testing.T) *mesh {
	t.Helper()
	bin := t.TempDir()
	fairlead, err := meshtest.Build(t.Context(), bin)
	if err != nil {
		t.Fatal(err)
	}
	m := &mesh{t: t, console: porttest.Addr(t)}
	m.Server = meshtest.Start(t, meshtest.Config{Binary: fairlead, Relay: true, Set: map[string]string{
		"log.level": "info", "trusted_proxies": "127.0.0.1/32",
		"oidc.issuer": "http://127.0.0.1:1", "oidc.client_id": "mesh", // nobody is there, but the routes are
	}})
	m.CLI("users", "create", "alice")
	m.key, m.apiKey = m.PreAuthKey("alice", "--reusable"), m.APIKey()
	m.startConsole(bin)
	m.nginx = meshtest.StartNginx(t, meshtest.NginxConfig{Deploy: filepath.Join("..", "..", "..", "deploy", "nginx"), Server: m.Addr, Console: m.console})
	m.gather()
	return m
}

func (m *mesh) startConsole(dir string) {
	m.t.Helper()
	binary := filepath.Join(dir, "fairlead-console")
	build := exec.CommandContext(m.t.Context(), "go", "build", "-ldflags=-s -w", "-o", binary, "github.com/fairlead-mesh/fairlead/cmd/fairlead-console")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		m.t.Fatalf("building the console: %v\n%s", err, out)
	}
	var log waittest.Transcript
	cmd := exec.CommandContext(context.Background(), binary, "--config", "/dev/null")
	cmd.Env = []string{
		"FAIRLEAD_CONSOLE_COORDINATOR_URL=" + m.URL, "FAIRLEAD_CONSOLE_LISTEN_ADDR=" + m.console,
		"FAIRLEAD_CONSOLE_COOKIE_SECRET=k3J9x0QmZt7Lw2Rv8NcYb5Ha1Ds6Fg4e",
	}
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have exited on its own
		if err := cmd.Wait(); err != nil {
			m.t.Errorf("the console ended with %v:\n%s", err, log.String())
		}
	})
	waittest.Eventually(m.t, patience, 20*time.Millisecond, func() error {
		if m.signIn() != http.StatusSeeOther {
			return fmt.Errorf("nobody can sign in: %s", log.String())
		}
		return nil
	})
}

// signIn signs in to the console with a valid key, from a network that no attack uses.
func (m *mesh) signIn() int {
	ctx, cancel := context.WithTimeout(m.t.Context(), slowest)
	defer cancel()
	return signIn(ctx, m.console, net.IPv4(127, 0, 0, 1), m.apiKey)
}

// baseline measures the mesh without an attack and returns the server's resource usage.
func (m *mesh) baseline() state {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), max(2*time.Second, *duration/20))
	defer cancel()
	f := m.measure(ctx)
	if len(f.faults) > 0 {
		m.t.Fatalf("without an attack: %s", strings.Join(f.faults, "\n"))
	}
	m.before = f
	m.t.Logf("baseline: %v", f)
	return f.most()
}

// endure runs an attack. Other work on the machine can only make the result look worse, so the best
// of five attempts counts, each with a new baseline.
func (m *mesh) endure(t *testing.T, a attack, w way, lasts time.Duration) {
	var problems []string
	for try := range 5 {
		if try > 0 {
			m.baseline()
		}
		ended := m.ended()
		f, result := m.underAttack(t, a, w, lasts)
		t.Logf("%v; %v; %v", f, result, f.cpu())
		problems = m.judge(f, result, a)
		if n := m.ended() - ended; n > 0 {
			problems = append(problems, fmt.Sprintf("%d streams of good nodes ended", n))
		}
		if len(problems) == 0 {
			return
		}
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// judge returns what is wrong with the measurements of the well-behaved nodes.
func (m *mesh) judge(f *figures, result tally, a attack) (problems []string) {
	const unnoticed = 100 * time.Millisecond
	limit := max(2*percentile(m.before.lag, 99), unnoticed)
	if p99 := percentile(f.lag, 99); p99 > limit {
		problems = append(problems, fmt.Sprintf("changes reach good nodes after %v at the 99th percentile; at most %v is allowed", p99, limit))
	}
	if len(f.faults) > 0 {
		problems = append(problems, fmt.Sprintf("%d faults, the first: %s", len(f.faults), f.faults[0]))
	}
	if a.kept > 0 && result.Longest > a.kept {
		problems = append(problems, fmt.Sprintf("the server kept a silent connection for %v; at most %v is allowed", result.Longest, a.kept))
	}
	if a.unit == "console login" {
		if status := m.signIn(); status != http.StatusSeeOther {
			problems = append(problems, fmt.Sprintf("an administrator cannot sign in: %d", status))
		}
	}
	return problems
}

// underAttack measures the mesh while another process attacks it.
func (m *mesh) underAttack(t *testing.T, a attack, w way, lasts time.Duration) (*figures, tally) {
	t.Helper()
	o := orders{Attack: a.unit, Rate: a.rate, Conns: a.conns, Networks: a.networks, For: lasts, Noise: m.noise, Target: m.Addr}
	switch w {
	case proxied:
		o.Target = m.nginx.Service
	case console:
		o.Target, o.Console = m.console, true
	case direct:
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), lasts+patience)
	defer cancel()
	var out, problem bytes.Buffer
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), ordersVariable+"="+string(text))
	cmd.Stdout, cmd.Stderr = &out, &problem
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	measuring, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { // stop measuring when the attack ends
		ended <- cmd.Wait()
		stop()
	}()
	f := m.measure(measuring)
	if err := <-ended; err != nil {
		t.Fatalf("the attacker failed: %v: %s", err, problem.String())
	}
	var result tally
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return f, result
}

// mustRecover waits until the server's resource usage is back to what it was before.
func (m *mesh) mustRecover() {
	m.t.Helper()
	const slack = 20         // goroutines and files that come and go
	heap := float64(8 << 20) // bytes, for nodes that joined in the meantime and for the change history
	// The last 10 MB stay in use for another two and a half minutes, and the runtime returns memory
	// to the system over minutes. A short run does not wait for that.
	rss := m.rest.rss + 150<<20
	if *duration >= long {
		rss = m.rest.rss * 1.5
	} else {
		heap *= 3
	}
	begin, large := time.Now(), `{"policy": "`+strings.Repeat(" ", 1<<19)+`{}"}`
	waittest.Eventually(m.t, recovery, time.Millisecond, func() error {
		// An idle server runs a garbage collection only every two minutes. Checking large policies
		// creates enough garbage for several collections now.
		for range 50 {
			if _, err := m.API(m.t.Context(), http.MethodPost, "/api/v1/policy/check", large); err != nil {
				return err
			}
		}
		now, err := m.state()
		if err != nil {
			return err
		}
		if now.goroutines > m.rest.goroutines+slack || now.files > m.rest.files+slack || now.heap > m.rest.heap+heap || now.rss > rss {
			return fmt.Errorf("the server takes %v, before the attacks it took %v", now, m.rest)
		}
		m.t.Logf("%v after the attacks: %v; before: %v", time.Since(begin).Round(100*time.Millisecond), now, m.rest)
		return nil
	})
}

const (
	recovery = 5 * time.Minute // the longest wait until the memory is back
	long     = 5 * time.Minute // total duration of a long run
)

// cpu returns the CPU time that the server used during an attack.
func (f *figures) cpu() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.state) == 0 {
		return "the server's CPU is unknown"
	}
	first, last := f.state[0], f.state[len(f.state)-1]
	spent := last.cpu - first.cpu
	return fmt.Sprintf("the server's CPU %.1f s in %.1f s", spent, last.at.Sub(first.at).Seconds())
}

func (s state) String() string {
	const mega = 1 << 20
	return fmt.Sprintf("RSS %.0f MB, heap %.0f MB, %.0f goroutines, %.0f files", s.rss/mega, s.heap/mega, s.goroutines, s.files)
}

func (f *figures) String() string {
	spread := func(of []time.Duration) string {
		ms := func(percent int) int64 { return percentile(of, percent).Milliseconds() }
		return fmt.Sprintf("%d/%d/%d ms", ms(50), ms(99), ms(100))
	}
	return fmt.Sprintf("lag %s, back %s, join %s, health %s (p50/p99/max), at most %v, %d faults",
		spread(f.lag), spread(f.back), spread(f.join), spread(f.health), f.most(), len(f.faults))
}

func (t tally) String() string {
	return fmt.Sprintf("%d units, %d at once, kept up to %v: %v", t.Units, t.Held, t.Longest.Round(time.Millisecond), t.Outcomes)
}
