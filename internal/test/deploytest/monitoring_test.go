//go:build !race

package deploytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// series is one result of a Prometheus query.
type series struct {
	Metric map[string]string
	Value  [2]any
}

// number returns the value of the series.
func (s series) number() float64 {
	text, _ := s.Value[1].(string)
	n, _ := strconv.ParseFloat(text, 64)
	return n
}

// ask sends a query to the stack's Prometheus. An empty result is an error.
func (s *Stack) ask(expr string) ([]series, error) {
	var answer struct {
		Error string
		Data  struct{ Result []series }
	}
	err := s.fetch("http://"+s.Addr("PROMETHEUS_PUBLISH")+"/api/v1/query?query="+url.QueryEscape(expr), &answer)
	if err == nil && len(answer.Data.Result) == 0 {
		err = fmt.Errorf("%s has no answer: %s", expr, answer.Error)
	}
	return answer.Data.Result, err
}

func (s *Stack) fetch(address string, into any) error {
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: patience}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func TestMonitoringProfileWatchesTheStack(t *testing.T) {
	t.Parallel()
	if _, err := command(t.Context(), root, "internal/test/deploytest/images.sh", "monitoring"); err != nil {
		t.Fatal(err)
	}
	s := NewStack(t, map[string]string{
		"PROMETHEUS_IMAGE": "fairlead-test/prometheus", "ALERTMANAGER_IMAGE": "fairlead-test/alertmanager", "NODE_EXPORTER_IMAGE": "fairlead-test/node-exporter",
	})
	s.Setup("--dev", "--sqlite")
	if slices.Contains(s.Services(), "prometheus") {
		t.Error("Prometheus runs without its profile")
	}
	// These are the steps of docs/monitoring.md.
	s.run(s.Dir, "sed", "-i", "s/^COMPOSE_PROFILES=.*/&,monitoring/; s/=,/=/", ".env")
	s.Up()
	s.WaitHealthy()
	s.Setup("--check")

	for _, service := range []string{"prometheus", "alertmanager", "node-exporter"} {
		c := s.Inspect(service)
		for port, bindings := range c.HostConfig.PortBindings {
			if bindings[0].HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s on %q", service, port, bindings[0].HostIP)
			}
		}
		if !c.HostConfig.ReadonlyRootfs || c.HostConfig.Memory == 0 || c.Config.User != "65534:65534" || c.HostConfig.LogConfig.Config["max-size"] != "10m" {
			t.Errorf("%s is not confined: %+v", service, c)
		}
	}
	t.Run("every target answers", func(t *testing.T) {
		eventually(t, patience, func() error {
			up, err := s.ask("up")
			if err != nil {
				return err
			}
			got := map[string]float64{}
			for _, one := range up {
				got[one.Metric["job"]] = one.number()
			}
			if diff := cmp.Diff(map[string]float64{"fairlead": 1, "node": 1, "prometheus": 1, "alertmanager": 1}, got); diff != "" {
				return errors.New("up (-want +got):\n" + diff)
			}
			return nil
		})
	})
	t.Run("the disk is watched", func(t *testing.T) {
		used := s.mustAsk(t, diskAlert(t))
		if n := used[0].number(); n <= 0 || n > 1 {
			t.Errorf("the disk is full by %v", n)
		}
		if !slices.ContainsFunc(used, func(one series) bool { return one.Metric["mountpoint"] == "/" }) {
			t.Errorf("/ is not among %v", used)
		}
	})
	t.Run("dashboards about the machine have data", func(t *testing.T) {
		for _, metric := range []string{"node_disk_read_bytes_total", "node_disk_written_bytes_total", "node_filesystem_free_bytes", "node_filesystem_size_bytes"} {
			s.mustAsk(t, metric)
		}
	})
	t.Run("an outage reaches Alertmanager", func(t *testing.T) {
		s.Compose("stop", "fairlead")
		eventually(t, patience, func() error {
			var alerts []struct{ Labels map[string]string }
			if err := s.fetch("http://"+s.Addr("ALERTMANAGER_PUBLISH")+"/api/v2/alerts", &alerts); err != nil {
				return err
			}
			for _, a := range alerts {
				if a.Labels["alertname"] == "FairleadDown" && a.Labels["severity"] == "critical" {
					return nil
				}
			}
			return fmt.Errorf("Alertmanager has %v", alerts)
		})
	})
}

// mustAsk waits until a query has a result.
func (s *Stack) mustAsk(t *testing.T, expr string) (found []series) {
	t.Helper()
	eventually(t, patience, func() (err error) {
		found, err = s.ask(expr)
		return err
	})
	return found
}

// diskAlert returns the expression of the disk alert without its threshold.
func diskAlert(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy/monitoring/rules/host.alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	expr, ok := strings.CutSuffix(file.Groups[0].Rules[0].Expr, " > 0.9")
	if alert := file.Groups[0].Rules[0].Alert; alert != "FairleadDiskFull" || !ok {
		t.Fatalf("the first alert is %s, and not above 0.9: %s", alert, expr)
	}
	return expr
}
