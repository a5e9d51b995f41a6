package charttest

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// documents returns the documents that tell people to use the chart.
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

// Every documented install command is rendered, with the examples as values.
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

// The pod that restores a backup is derived from the pod template of the others.
func TestDocumentedRestoreMakesAPod(t *testing.T) {
	program := regexp.MustCompile(`(?s) \| jq '([^']+)' \|`).FindStringSubmatch(documents(t))
	if program == nil {
		t.Fatal("found no program of jq")
	}
	for values, name := range map[string]string{"home": "StatefulSet mesh-fairlead", "company": "Deployment mesh-fairlead"} {
		in, err := json.Marshal(render(t, chart+"/examples/"+values+".yaml", "--set=stopped=true").objects[name])
		if err != nil {
			t.Fatal(err)
		}
		jq := exec.CommandContext(t.Context(), "jq", program[1])
		jq.Stdin = bytes.NewReader(in)
		out, err := jq.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var pod core.Pod
		if err := yaml.UnmarshalStrict(out, &pod); err != nil {
			t.Fatalf("%v in:\n%s", err, out)
		}
		c := pod.Spec.Containers[0]
		if pod.Kind != "Pod" || pod.Spec.RestartPolicy != core.RestartPolicyNever || c.Args[0] != "restore" || !c.StdinOnce || c.LivenessProbe != nil || len(c.VolumeMounts) == 0 || len(pod.Spec.Volumes) == 0 {
			t.Errorf("%s:\n%s", values, out)
		}
	}
}

func TestStoppedReleaseRunsNothing(t *testing.T) {
	for _, values := range []string{"home", "company"} {
		for name, n := range render(t, chart+"/examples/"+values+".yaml", "--set=stopped=true").replicas() {
			if n != 0 {
				t.Errorf("%s: %s has %d", values, name, n)
			}
		}
	}
}
