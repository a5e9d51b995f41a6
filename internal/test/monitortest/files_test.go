package monitortest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	monitoring = "../../../deploy/monitoring"
	runbook    = "../../../docs/runbook"
	runbookURL = "https://github.com/fairlead-mesh/fairlead/blob/main/docs/runbook/"
)

// rule is a recording rule or an alert.
type rule struct {
	Record, Alert, Expr string
	For                 string
	Labels, Annotations map[string]string
}

// rules returns all rules that Prometheus evaluates.
func rules(t *testing.T) (all []rule) {
	t.Helper()
	for _, name := range files(t, monitoring+"/rules/*.yml") {
		var file struct {
			Groups []struct{ Rules []rule }
		}
		readYAML(t, name, &file)
		for _, g := range file.Groups {
			all = append(all, g.Rules...)
		}
	}
	return all
}

func alerts(t *testing.T) (all []rule) {
	t.Helper()
	for _, r := range rules(t) {
		if r.Alert != "" {
			all = append(all, r)
		}
	}
	return all
}

// dashboard is the part of a dashboard that tests check.
type dashboard struct {
	UID, Title string
	Tags       []string
	Panels     []panel
}

type panel struct {
	ID          int
	Type, Title string
	Description string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct{ Expr string }
	FieldConfig struct{ Defaults struct{ Unit string } }
}

// dashboards returns all dashboards, by file name.
func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	all := map[string]dashboard{}
	for _, name := range files(t, monitoring+"/grafana/dashboards/*.json") {
		var d dashboard
		if err := json.Unmarshal([]byte(read(t, name)), &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[filepath.Base(name)] = d
	}
	return all
}

var variable = regexp.MustCompile(`\$__(rate_interval|interval|range)\b`)

// query returns an expression of a dashboard as Grafana would send it.
func query(expr string) string { return variable.ReplaceAllString(expr, "1m") }

func files(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: nothing found: %v", pattern, err)
	}
	return found
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, name)), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// tool runs a program of a Debian package, which must succeed.
func tool(t *testing.T, debianPackage, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), lookup(t, debianPackage, name), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func lookup(t *testing.T, debianPackage, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is not installed; install Debian's package %s: %v", name, debianPackage, err)
	}
	return path
}
