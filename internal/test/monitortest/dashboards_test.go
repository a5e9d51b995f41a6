package monitortest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDashboardsAreReadable(t *testing.T) {
	all := dashboards(t)
	want := []string{"database.json", "http.json", "nodes.json", "overview.json", "relay.json"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(all))); diff != "" {
		t.Errorf("dashboards (-want +got):\n%s", diff)
	}
	for name, d := range all {
		if d.UID != "fairlead-"+strings.TrimSuffix(name, ".json") || d.Title == "" || !slices.Contains(d.Tags, "fairlead") {
			t.Errorf("%s: uid %q, title %q, tags %q", name, d.UID, d.Title, d.Tags)
		}
		for i, p := range d.Panels {
			if p.GridPos.W < 1 || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: %s does not fit", name, p.Title)
			}
			for _, other := range d.Panels[:i] {
				if p.ID == other.ID || overlap(p, other) {
					t.Errorf("%s: %s and %s are in the same place, or have the same id", name, p.Title, other.Title)
				}
			}
			if p.Type != "row" && (p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0) {
				t.Errorf("%s: %q needs a title, a description, a unit and a query", name, p.Title)
			}
		}
	}
}

func overlap(a, b panel) bool {
	p, q := a.GridPos, b.GridPos
	return p.X < q.X+q.W && q.X < p.X+p.W && p.Y < q.Y+q.H && q.Y < p.Y+p.H
}

// Gauges about nodes are the same on every replica: their sum would count each node once per replica.
func TestNodesAreCountedOnceHoweverManyReplicasTellOfThem(t *testing.T) {
	for name, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				for _, metric := range names(q.Expr) {
					if (strings.HasPrefix(metric, "mesh_nodes_") || metric == "mesh_policy_tests_failing") && !strings.Contains(q.Expr, "max("+metric) {
						t.Errorf("%s: %s: take the max of %s", name, p.Title, metric)
					}
				}
			}
		}
	}
}

func TestNamesOfMetricsAreFoundInQueries(t *testing.T) {
	const expr = `sum by (code, le) (rate(mesh_a_total{job="x",code=~"5.."}[5m])) / on (instance) group_left max(up{a="b c"} offset 2m) ` +
		`or vector(0) and fairlead:b:rate5m > bool 1.5e3 unless (mesh_c - 0x1F)`
	if diff := cmp.Diff([]string{"fairlead:b:rate5m", "mesh_a_total", "mesh_c", "up"}, names(expr)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
