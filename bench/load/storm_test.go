//go:build !race

package load

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

var (
	storm = flag.Int("storm", 0, "number of nodes, nine tenths of which reconnect at once; 0 skips the test")
	spin  = flag.Bool("spin", false, "keep a core busy with other work meanwhile")
	burst = flag.Bool("burst", false, "let all nodes connect in the same instant instead of 64 at a time")
	via   = flag.String("via", "", "how nodes reach fairlead in the storm: tls terminates TLS in the server, nginx in the proxy")
)

// stormRate is how often a node that stays changes its endpoint, per second. Everyone sees each change, so more of them would cost
// more than the reconnecting, above all for the reference, which does not merge changes.
const stormRate = 1

// TestStorm limits what it costs when nine tenths of all nodes reconnect at once, and how long the others wait for changes
// meanwhile. No node may have to connect twice.
func TestStorm(t *testing.T) {
	if *storm == 0 {
		t.Skip("see make storm")
	}
	b := build(t)
	var ours, reference stormOutcome
	t.Run("fairlead", func(t *testing.T) { ours = b.startBehind(t, *via).reconnectMost(t) })
	alone := *spin || *via != "" // the reference has no TLS, and is compared on a quiet machine
	none := math.Inf(1)
	cpuLimit := none
	if !alone {
		t.Run("reference", func(t *testing.T) { reference = b.startReference(t, *storm).reconnectMost(t) })
		cpuLimit = 1.1 * reference.CPU
	}
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-42s %10s %10s %7s\n", fmt.Sprintf("%d of %d nodes reconnect", *storm*9/10, *storm), "fairlead", "reference", "limit")
	for _, row := range []struct {
		name       string
		our, their float64
		limit      float64
	}{
		{"CPU s", ours.CPU, reference.CPU, cpuLimit},
		{"peak memory, MB", ours.PeakRSS, reference.PeakRSS, 1200},
		{"last map after s", ours.ConvergedAfter, reference.ConvergedAfter, none},
		{"change among the others, 99 % within ms", ours.lagP99, reference.lagP99, 500},
		{"change among the others, half within ms", ours.lagP50, reference.lagP50, none},
		{"other programs, % of a core", ours.OtherPercent, reference.OtherPercent, none},
	} {
		limit := ""
		if row.limit != none {
			limit = fmt.Sprintf("%7.0f", row.limit)
			if !(row.our > 0 && row.our <= row.limit) { // also fails if nothing was measured
				t.Errorf("%s: %.2f, more than %.2f", row.name, row.our, row.limit)
			}
		}
		fmt.Fprintf(&table, "%-42s %10.2f %10.2f %s\n", row.name, row.our, row.their, limit)
	}
	t.Log(table.String())
}

// startBehind starts a server to which nodes connect directly, with TLS, or through the nginx of a deployment.
func (b binaries) startBehind(t *testing.T, via string) target {
	t.Helper()
	set := map[string]string{}
	switch via {
	case "":
	case "nginx":
		set["trusted_proxies"] = "127.0.0.1/32"
	case "tls":
		set["tls_cert_path"], set["tls_key_path"] = meshtest.WriteCertificate(t, t.TempDir())
	default:
		t.Fatalf("-via=%s is neither tls nor nginx", via)
	}
	s, _ := b.startConfigured(t, set)
	if via == "nginx" {
		proxy := meshtest.StartNginx(t, meshtest.NginxConfig{Deploy: filepath.Join("..", "..", "deploy", "nginx"), Server: s.server.Addr, Console: s.server.Addr, TLS: true})
		s.url, s.certificate = "https://"+proxy.Service, proxy.Certificate
	}
	if via == "tls" {
		s.url, s.certificate = "https://"+s.server.Addr, set["tls_cert_path"]
	}
	return s
}

// stormOutcome is the outcome for the nodes that reconnect, and how long the others waited for changes, in the worst seconds.
type stormOutcome struct {
	outcome
	lagP50, lagP99 float64 // in milliseconds
}

// reconnectMost connects the nodes, and lets nine tenths of them reconnect. The others are in another process, and change their
// endpoints all the time.
func (s target) reconnectMost(t *testing.T) (o stormOutcome) {
	t.Helper()
	stay := *storm / 10
	cmd, out, problem := s.start(t, "register,churn", "--url="+s.url, "--auth-key="+s.authKey, "--n="+strconv.Itoa(stay),
		"--register-first", "--rate="+strconv.Itoa(stormRate), "--churn-for=5s", "--repeat=100000", "--joins=0")
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()
	windows := make(chan window, 10_000)
	go readWindows(json.NewDecoder(out), windows)
	if first, ok := <-windows; !ok || first.Converged == nil || !*first.Converged {
		t.Fatalf("the nodes that stay are not connected: %+v\n%s", first, problem.Bytes())
	}

	var begin time.Time
	crowd := s
	crowd.yields = true
	flags := append(largeCrowd(), "--n="+strconv.Itoa(*storm-stay), "--idle-for=5s", "--quiet=0s") // the changes never pause
	if *burst {
		flags = append(flags, "--dials="+strconv.Itoa(*storm))
	}
	o.outcome = crowd.load(t, "register,idle,reconnect", func(scenario string) {
		if scenario == "idle" {
			begin = time.Now()
		}
		if scenario == "register" && *spin {
			keepCoreBusy(t)
		}
	}, flags...)["reconnect"]
	end := begin.Add(time.Duration(o.ConvergedAfter * float64(time.Second))) // then the crowd disconnects
	for w := range windows {
		start := w.end.Add(-time.Duration(w.Wall * float64(time.Second)))
		if start.After(end) {
			return o
		}
		if w.end.Before(begin) {
			continue
		}
		o.lagP50, o.lagP99 = max(o.lagP50, w.LagP50), max(o.lagP99, w.LagP99)
		t.Logf("%3.0f s after the nodes were cut off: half within %.0f ms, 99 %% within %.0f ms", start.Sub(begin).Seconds(), w.LagP50, w.LagP99)
		if w.Failed+w.Errors+w.Undelivered > 0 {
			t.Errorf("changes of the nodes that stayed: %+v", w)
		}
	}
	t.Errorf("the nodes that stayed ended:\n%s", problem.Bytes())
	return o
}

// window is what the nodes that stay measured in a few seconds.
type window struct {
	outcome
	end time.Time
}

// readWindows reads what a generator prints until it ends.
func readWindows(lines *json.Decoder, windows chan<- window) {
	defer close(windows)
	for {
		var w window
		if lines.Decode(&w.outcome) != nil {
			return
		}
		w.end = time.Now()
		windows <- w
	}
}

// keepCoreBusy uses a core until the test ends.
func keepCoreBusy(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // killed with the test's context
}
