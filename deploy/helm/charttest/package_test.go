package charttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// random matches the lines that differ each time the chart is rendered.
var random = regexp.MustCompile(`(?m)^ *(checksum/[a-z]+|cookie_secret|secrets\.key): .*$`)

// TestPackageRendersWhatTheChartDoes packs the chart as a release does, twice, and renders it: the package may
// differ from the directory only by its version and the names of the images.
func TestPackageRendersWhatTheChartDoes(t *testing.T) {
	pack := func() (file string, content []byte) {
		dir := t.TempDir()
		c := exec.CommandContext(t.Context(), "../../package/build.sh", "chart", dir)
		c.Env = append(os.Environ(), "VERSION=v1.2.3-rc.1", "BUILD_TIME=2026-01-02T03:04:05Z")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		file = filepath.Join(dir, "fairlead-chart-1.2.3-rc.1.tgz")
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return file, content
	}
	file, content := pack()
	if _, again := pack(); string(content) != string(again) {
		t.Error("packed twice, the chart differs")
	}
	for _, values := range []string{"home", "company"} {
		render := func(from string) string {
			out, problems, err := helm(t, "template", "mesh", from, "--kube-version="+oldest, "--values="+chart+"/examples/"+values+".yaml")
			if err != nil {
				t.Fatalf("%s: %v\n%s", from, err, problems)
			}
			return random.ReplaceAllString(out, "random")
		}
		want := strings.NewReplacer(
			"fairlead/server:dev", "ghcr.io/fairlead-mesh/server:1.2.3-rc.1",
			"fairlead/console:dev", "ghcr.io/fairlead-mesh/console:1.2.3-rc.1",
			`app.kubernetes.io/version: "dev"`, `app.kubernetes.io/version: "1.2.3-rc.1"`,
			"fairlead-0.1.0", "fairlead-1.2.3-rc.1",
		).Replace(render(chart))
		if !strings.Contains(want, "ghcr.io/fairlead-mesh/server:1.2.3-rc.1") {
			t.Errorf("%s.yaml has no image of the server", values)
		}
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(render(file), "\n")); diff != "" {
			t.Errorf("%s.yaml (-directory +package):\n%s", values, diff)
		}
	}
}
