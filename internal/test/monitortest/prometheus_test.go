package monitortest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/fairlead-mesh/fairlead/internal/app"
	"github.com/fairlead-mesh/fairlead/internal/config"
	"github.com/fairlead-mesh/fairlead/internal/test/porttest"
)

const (
	patience  = 30 * time.Second
	pollEvery = 100 * time.Millisecond
)

// watched is a server and a Prometheus that scrapes it every second with the rules of the deployment.
type watched struct {
	t       *testing.T
	metrics string // address of the server's metrics
	query   string // URL of Prometheus
}

func watch(t *testing.T) *watched {
	t.Helper()
	w := &watched{t: t, metrics: serve(t)}
	dir := t.TempDir()
	w.configure(dir)
	address := porttest.Addr(t)
	w.query = "http://" + address
	cmd := exec.CommandContext(t.Context(), lookup(t, "prometheus", "prometheus"),
		"--config.file="+dir+"/prometheus.yml", "--storage.tsdb.path="+dir+"/data", "--web.listen-address="+address, "--log.level=warn")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // it was interrupted at the end of the test
		if t.Failed() {
			t.Logf("Prometheus says:\n%s", log.String())
		}
	})
	if err := w.await(`up{job="fairlead"} == 1`); err != nil {
		t.Fatal(err)
	}
	return w
}

// configure writes the configuration and the rules of the deployment, with the server's address instead of
// its name, and seconds instead of minutes.
func (w *watched) configure(dir string) {
	w.t.Helper()
	var config map[string]any
	readYAML(w.t, monitoring+"/prometheus.yml", &config)
	config["global"] = map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"}
	delete(config, "alerting")
	job := config["scrape_configs"].([]any)[0].(map[string]any)
	if job["job_name"] != "fairlead" {
		w.t.Fatalf("the first job is %v", job["job_name"])
	}
	delete(job, "dns_sd_configs")
	job["static_configs"] = []any{map[string]any{"targets": []string{w.metrics}}}
	config["scrape_configs"] = []any{job}
	text, err := yaml.Marshal(config)
	if err != nil {
		w.t.Fatal(err)
	}
	write(w.t, filepath.Join(dir, "prometheus.yml"), string(text))
	for _, name := range files(w.t, monitoring+"/rules/*.yml") {
		write(w.t, filepath.Join(dir, "rules", filepath.Base(name)), strings.ReplaceAll(read(w.t, name), "interval: 1m", "interval: 1s"))
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// serve runs a server that has handled a request, and returns the address of its metrics.
func serve(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fl") // short enough for a socket path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c, err := config.Load("/dev/null", []string{
		"FAIRLEAD_SERVER_URL=http://127.0.0.1", "FAIRLEAD_LISTEN_ADDR=127.0.0.1:0", "FAIRLEAD_METRICS_LISTEN_ADDR=127.0.0.1:0",
		"FAIRLEAD_UNIX_SOCKET=" + dir + "/sock", "FAIRLEAD_DATABASE_SQLITE_PATH=" + dir + "/db.sqlite", "FAIRLEAD_NOISE_PRIVATE_KEY_PATH=" + dir + "/key",
		"FAIRLEAD_DERP_SERVER_ENABLED=false",
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan app.Addrs, 1), make(chan error, 1)
	go func() {
		ended <- app.Run(ctx, app.Options{Config: c, DrainDelay: time.Millisecond, Ready: func(a app.Addrs) { ready <- a }})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case a := <-ready:
		get(t, "http://"+a.API+"/health") // a label exists only after something was counted for it
		return a.Metrics
	case err := <-ended:
		t.Fatal(err)
		return ""
	}
}

// ask returns the number of series in the result of a query.
func (w *watched) ask(expr string) (int, error) {
	var answer struct {
		Error string
		Data  struct{ Result []any }
	}
	text, err := fetch(w.t.Context(), w.query+"/api/v1/query?query="+url.QueryEscape(expr))
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err == nil && answer.Error != "" {
		err = errors.New(answer.Error)
	}
	return len(answer.Data.Result), err
}

// await polls until a query has a result.
func (w *watched) await(expr string) error {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for {
		n, err := w.ask(expr)
		if n > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s has no answer: %w", expr, cmp.Or(err, ctx.Err()))
		case <-time.After(pollEvery):
		}
	}
}

func fetch(ctx context.Context, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{Timeout: patience}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

func get(t *testing.T, address string) string {
	t.Helper()
	text, err := fetch(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestPrometheusFindsWhatIsSpecifiedAndWhatDashboardsAskFor(t *testing.T) {
	w := watch(t)
	t.Run("every metric of the specification", func(t *testing.T) {
		for _, name := range strings.Fields(`
			mesh_nodes_total mesh_nodes_registered mesh_nodes_online mesh_nodes_offline mesh_node_registrations_total
			mesh_derp_connections_active mesh_network_bytes_sent_total mesh_network_bytes_received_total mesh_connection_latency_seconds_count
			mesh_http_requests_total{code="200"} mesh_http_request_duration_seconds_count
			mesh_db_connections_open mesh_db_connections_idle mesh_db_query_duration_seconds_count mesh_db_max_open_connections`) {
			if err := w.await(name); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("every rule is evaluated", func(t *testing.T) {
		for _, r := range rules(t) {
			if r.Record == "" {
				continue
			}
			if err := w.await(r.Record); err != nil {
				t.Error(err)
			}
		}
		if answer := get(t, w.query+"/api/v1/rules"); strings.Contains(answer, `"health":"err"`) {
			t.Errorf("a rule fails: %s", answer)
		}
	})
	t.Run("every query of the dashboards has an answer", func(t *testing.T) {
		for name, d := range dashboards(t) {
			for _, p := range d.Panels {
				for _, q := range p.Targets {
					if slices.ContainsFunc(names(q.Expr), aboutTheMachine) {
						continue // tested in deploytest
					}
					if err := w.await(query(q.Expr)); err != nil {
						t.Errorf("%s: %s: %v", name, p.Title, err)
					}
				}
			}
		}
	})
	t.Run("every metric that is asked for exists", func(t *testing.T) { w.knows(t) })
	t.Run("the service describes its metrics as promtool likes it", func(t *testing.T) {
		cmd := exec.CommandContext(t.Context(), lookup(t, "prometheus", "promtool"), "check", "metrics")
		cmd.Stdin = strings.NewReader(get(t, "http://"+w.metrics+"/metrics"))
		out, _ := cmd.CombinedOutput() // promtool fails if it lists anything
		for line := range strings.Lines(string(out)) {
			if !allowed(line) {
				t.Error(line)
			}
		}
	})
}

// allowed reports whether a complaint of promtool is about mesh_nodes_total, a name that the specification
// fixes.
func allowed(line string) bool {
	return strings.HasPrefix(line, `mesh_nodes_total non-counter metrics should not have "_total" suffix`)
}

func aboutTheMachine(metric string) bool { return strings.HasPrefix(metric, "node_") }

// knows checks that rules and dashboards use only metrics that Prometheus has, metrics that a rule records,
// and the few metrics of node_exporter that the deployment's own test checks.
func (w *watched) knows(t *testing.T) {
	t.Helper()
	var stored struct{ Data []string }
	if err := json.Unmarshal([]byte(get(t, w.query+"/api/v1/label/__name__/values")), &stored); err != nil {
		t.Fatal(err)
	}
	asked := map[string]string{}
	for _, r := range rules(t) {
		for _, name := range names(r.Expr) {
			asked[name] = r.Alert + r.Record
		}
	}
	for file, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				for _, name := range names(q.Expr) {
					asked[name] = fmt.Sprintf("%s: %s", file, p.Title)
				}
			}
		}
	}
	if len(asked) < 40 {
		t.Errorf("only %d metrics were found", len(asked))
	}
	for name, where := range asked {
		if !aboutTheMachine(name) && name != "ALERTS" && !slices.Contains(stored.Data, name) {
			t.Errorf("%s asks for %s, which nobody has", where, name)
		}
	}
}
