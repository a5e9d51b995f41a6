package app_test

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// metricsOf lists the server's own metrics by name and type.
func metricsOf(text string) []string {
	var found []string
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[1], "go_") && !strings.HasPrefix(m[1], "process_") {
			found = append(found, m[1]+" "+m[2])
		}
	}
	slices.Sort(found)
	return found
}

func TestEveryMetricIsDescribed(t *testing.T) {
	document, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var described []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)`(?:, label `[a-z]+`)? \\| (\\w+) \\| \\S").FindAllStringSubmatch(string(document), -1) {
		described = append(described, m[1]+" "+m[2])
	}
	slices.Sort(described)
	for _, env := range [][]string{settings(t), settings(t, postgres(pg.Database(t))...)} {
		s := run(t, env)
		fetch(t, "tcp", s.API, "/health") // a label exists only once something was counted
		_, text := fetch(t, "tcp", s.Metrics, "/metrics")
		if diff := cmp.Diff(described, metricsOf(text)); diff != "" {
			t.Errorf("docs/metrics.md and the service differ (-described +served):\n%s", diff)
		}
		for _, prefix := range []string{"go_", "process_"} {
			if !strings.Contains(text, "\n"+prefix) {
				t.Errorf("no metric begins with %s", prefix)
			}
		}
		if status, _ := fetch(t, "tcp", s.Metrics, "/health"); status != 404 {
			t.Errorf("the metrics listener answers more than /metrics: %d", status)
		}
		s.stop(t)
	}
}

func TestMetricsSayWhatHealthSays(t *testing.T) {
	s := run(t, settings(t, postgres(pg.Database(t))...))
	shows := func(lines ...string) {
		t.Helper()
		eventually(t, func() error {
			_, text := fetch(t, "tcp", s.Metrics, "/metrics")
			for _, line := range lines {
				if !strings.Contains(text, "\n"+line+"\n") {
					return errors.New("there is no " + line)
				}
			}
			return nil
		})
	}
	shows(`mesh_healthy 1`, `mesh_health_warnings{check="relay"} 1`, `mesh_health_warnings{check="policy"} 0`, `mesh_build_info{version="1.2.3"} 1`)
	if err := pg.Pause("fast"); err != nil {
		t.Fatal(err)
	}
	shows(`mesh_healthy 0`)
	if err := pg.Resume(); err != nil {
		t.Fatal(err)
	}
	shows(`mesh_healthy 1`)
	s.stop(t)
}
