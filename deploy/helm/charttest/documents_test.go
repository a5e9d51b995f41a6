package charttest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents that tell people to use the chart.
func documents(t *testing.T) (all string) {
	t.Helper()
	for _, name := range []string{"install", "kubernetes", "operating", "upgrade"} {
		text, err := os.ReadFile("../../../docs/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
	}
	return strings.ReplaceAll(all, "\\\n", " ")
}

// What documents install is rendered, with the examples as the values.
func TestDocumentedCommandsOfHelmWork(t *testing.T) {
	found := regexp.MustCompile(`(?m)^helm (?:install|upgrade) fairlead deploy/helm/fairlead (.*)$`).FindAllStringSubmatch(documents(t), -1)
	if len(found) < 2 {
		t.Fatalf("found only %q", found)
	}
	for _, m := range found {
		args := []string{"template", "fairlead", chart, "--kube-version=" + oldest}
		for _, a := range strings.Fields(m[1]) {
			switch a {
			case "home.yaml":
				a = chart + "/examples/home.yaml"
			case "values.yaml":
				a = chart + "/examples/company.yaml"
			}
			args = append(args, a)
		}
		if _, problems, err := helm(t, args...); err != nil {
			t.Errorf("%q: %v: %s", args, err, problems)
		}
	}
}

func TestDocumentedObjectsExist(t *testing.T) {
	kinds := map[string]string{"statefulset": "StatefulSet", "deployment": "Deployment", "pvc": "PersistentVolumeClaim", "secret": "Secret"}
	var there []string
	for _, values := range []string{"home", "company", "loadbalancer"} {
		for name := range render(t, chart+"/examples/"+values+".yaml", "--set=fullnameOverride=fairlead").objects {
			there = append(there, name)
		}
	}
	found := regexp.MustCompile(`\b(?:(statefulset|deployment)/|kubectl delete (pvc|secret) )([a-z-]+)`).FindAllStringSubmatch(documents(t), -1)
	if len(found) < 5 {
		t.Fatalf("found only %q", found)
	}
	for _, m := range found {
		if name := kinds[m[1]+m[2]] + " " + m[3]; !slices.Contains(there, name) {
			t.Errorf("documents speak of %s, which the chart does not make", name)
		}
	}
}
