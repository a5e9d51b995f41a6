package monitortest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConfigurationIsValid(t *testing.T) {
	tool(t, "prometheus", "promtool", append([]string{"check", "rules", "--lint-fatal"}, files(t, monitoring+"/rules/*.yml")...)...)
	tool(t, "prometheus", "promtool", "check", "config", "--lint-fatal", monitoring+"/prometheus.yml")
	tool(t, "prometheus-alertmanager", "amtool", "check-config", monitoring+"/alertmanager.yml")
}

// The rule tests for promtool must pass, and must contain each alert twice: firing and silent.
func TestEachAlertFiresAndStaysSilent(t *testing.T) {
	names := files(t, monitoring+"/tests/*.yml")
	tool(t, "prometheus", "promtool", append([]string{"test", "rules"}, names...)...)
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, name := range names {
		var file struct {
			Tests []struct {
				Checks []struct {
					Alertname string
					Alerts    []any `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
		readYAML(t, name, &file)
		for _, test := range file.Tests {
			for _, c := range test.Checks {
				fires[c.Alertname] = fires[c.Alertname] || len(c.Alerts) > 0
				silent[c.Alertname] = silent[c.Alertname] || len(c.Alerts) == 0
			}
		}
	}
	for _, a := range alerts(t) {
		if !fires[a.Alert] || !silent[a.Alert] {
			t.Errorf("%s: no test in which it fires, or none in which it stays silent", a.Alert)
		}
	}
}

// Alerts that inhibit others or are inhibited must exist.
func TestAlertmanagerNamesOnlyAlertsThatExist(t *testing.T) {
	var config struct {
		Inhibit []struct {
			Source []string `yaml:"source_matchers"`
			Target []string `yaml:"target_matchers"`
			Equal  []string
		} `yaml:"inhibit_rules"`
	}
	readYAML(t, monitoring+"/alertmanager.yml", &config)
	var named []string
	ofOneReplica := map[string]bool{}
	for _, a := range alerts(t) {
		named = append(named, a.Alert)
		ofOneReplica[a.Alert] = strings.Contains(a.Annotations["summary"], "$labels.instance")
	}
	names := func(matchers []string) (all []string) {
		for _, matcher := range matchers {
			_, value, _ := strings.Cut(matcher, `"`)
			value = strings.TrimSuffix(value, `"`)
			prefix, list, _ := strings.Cut(value, "(")
			for _, ending := range strings.Split(strings.TrimSuffix(list, ")"), "|") {
				if name := prefix + ending; slices.Contains(named, name) {
					all = append(all, name)
				} else {
					t.Errorf("%s: there is no alert %s", matcher, name)
				}
			}
		}
		return all
	}
	for _, rule := range config.Inhibit {
		sources := names(rule.Source)
		for _, target := range names(rule.Target) {
			// An alert of one replica must not hide that of another.
			want := ofOneReplica[target] && slices.ContainsFunc(sources, func(s string) bool { return ofOneReplica[s] })
			if slices.Contains(rule.Equal, "instance") != want {
				t.Errorf("%s hides %s: equal is %q", sources, target, rule.Equal)
			}
		}
	}
}

// Prometheus keeps samples for 15 days by default.
func TestSamplesAreKeptAsLongAsAvailabilityLooksBack(t *testing.T) {
	var compose struct {
		Services map[string]struct{ Command, Ports []string }
	}
	readYAML(t, "../../../deploy/compose/monitoring.yaml", &compose)
	prometheus := compose.Services["prometheus"]
	if !slices.Contains(prometheus.Command, "--storage.tsdb.retention.time=40d") {
		t.Errorf("prometheus is started with %q", prometheus.Command)
	}
	if diff := cmp.Diff([]string{"${PROMETHEUS_PUBLISH:-127.0.0.1:9091}:9090"}, prometheus.Ports); diff != "" {
		t.Errorf("ports of prometheus (-want +got):\n%s", diff)
	}
}
