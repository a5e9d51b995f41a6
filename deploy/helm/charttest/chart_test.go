package charttest

import (
	"bytes"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	disruption "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

const (
	chart = "../fairlead"
	// oldest is the oldest supported Kubernetes version, as in the kubeVersion of
	// Chart.yaml.
	oldest = "1.30.0"
)

func helm(t *testing.T, args ...string) (stdout, stderr string, err error) {
	var out, problems bytes.Buffer
	c := exec.CommandContext(t.Context(), "../../../.bin/helm", args...)
	c.Stdout, c.Stderr = &out, &problems
	err = c.Run()
	return out.String(), problems.String(), err
}

// valuesFiles returns the examples and the edge cases.
func valuesFiles(t *testing.T) []string {
	t.Helper()
	examples, _ := filepath.Glob(chart + "/examples/*.yaml") // fails only for a malformed pattern
	corners, _ := filepath.Glob("testdata/*.yaml")
	if len(examples) < 3 || len(corners) < 3 {
		t.Fatalf("found only %v and %v", examples, corners)
	}
	return append(examples, corners...)
}

// release is what the chart renders, by kind and name.
type release struct {
	objects map[string]meta.Object
	pods    map[string]core.PodTemplateSpec // by the name of the workload that creates them
}

// object returns a new value of the type for apiVersion and kind, or nil.
func object(apiVersion, kind string) meta.Object {
	switch apiVersion + " " + kind {
	case "v1 Secret":
		return &core.Secret{}
	case "v1 Service":
		return &core.Service{}
	case "v1 PersistentVolumeClaim":
		return &core.PersistentVolumeClaim{}
	case "v1 Pod":
		return &core.Pod{}
	case "apps/v1 Deployment":
		return &apps.Deployment{}
	case "apps/v1 StatefulSet":
		return &apps.StatefulSet{}
	case "networking.k8s.io/v1 Ingress":
		return &networking.Ingress{}
	case "networking.k8s.io/v1 NetworkPolicy":
		return &networking.NetworkPolicy{}
	case "policy/v1 PodDisruptionBudget":
		return &disruption.PodDisruptionBudget{}
	case "monitoring.coreos.com/v1 PodMonitor":
		return &monitoring.PodMonitor{}
	case "monitoring.coreos.com/v1 PrometheusRule":
		return &monitoring.PrometheusRule{}
	}
	return nil
}

// render renders the chart with a values file. It decodes the objects strictly: unknown
// and duplicate fields fail the test.
func render(t *testing.T, values string, more ...string) release {
	t.Helper()
	out, problems, err := helm(t, append([]string{"template", "mesh", chart, "--namespace=net", "--kube-version=" + oldest, "--values=" + values}, more...)...)
	if err != nil {
		t.Fatalf("%v: %s", err, problems)
	}
	r := release{objects: map[string]meta.Object{}, pods: map[string]core.PodTemplateSpec{}}
	for _, text := range strings.Split(out, "\n---\n") {
		var kind meta.TypeMeta
		if err := yaml.Unmarshal([]byte(text), &kind); err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		if kind.Kind == "" {
			continue // only comments
		}
		o := object(kind.APIVersion, kind.Kind)
		if o == nil {
			t.Fatalf("this test does not know %s %s", kind.APIVersion, kind.Kind)
		}
		if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		name := kind.Kind + " " + o.GetName()
		if r.objects[name] != nil {
			t.Errorf("%s is there twice", name)
		}
		r.objects[name] = o
		switch o := o.(type) {
		case *apps.Deployment:
			r.addPods(t, name, o.Spec.Template, o.Spec.Selector)
		case *apps.StatefulSet:
			r.addPods(t, name, o.Spec.Template, o.Spec.Selector)
		case *core.Pod:
			r.pods[name] = core.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}
		}
	}
	return r
}

func (r release) addPods(t *testing.T, name string, pods core.PodTemplateSpec, s *meta.LabelSelector) {
	t.Helper()
	if !selects(s.MatchLabels, pods) {
		t.Errorf("%s does not select its own pods", name)
	}
	r.pods[name] = pods
}

// replicas returns the number of pods of each workload.
func (r release) replicas() map[string]int32 {
	n := map[string]int32{}
	for name, o := range r.objects {
		switch o := o.(type) {
		case *apps.Deployment:
			n[name] = *o.Spec.Replicas
		case *apps.StatefulSet:
			n[name] = *o.Spec.Replicas
		}
	}
	return n
}

func selects(labels map[string]string, pods core.PodTemplateSpec) bool {
	for k, v := range labels {
		if pods.Labels[k] != v {
			return false
		}
	}
	return len(labels) > 0
}

func TestChartPassesLint(t *testing.T) {
	for _, values := range valuesFiles(t) {
		if out, problems, err := helm(t, "lint", "--strict", "--kube-version="+oldest, "--values="+values, chart); err != nil {
			t.Errorf("%s: %v: %s%s", values, err, out, problems)
		}
	}
}

// everyRelease runs a check for each set of values.
func everyRelease(t *testing.T, check func(*testing.T, release)) {
	for _, values := range valuesFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(values), ".yaml"), func(t *testing.T) { check(t, render(t, values)) })
	}
}

// Replicas of the server are spread over nodes, whatever else runs there.
func TestReplicasSpreadAmongThemselves(t *testing.T) {
	seen := 0
	everyRelease(t, func(t *testing.T, r release) {
		for name, pods := range r.pods {
			for _, c := range pods.Spec.TopologySpreadConstraints {
				if c.LabelSelector == nil {
					continue // set by the operator
				}
				seen++
				for other, p := range r.pods {
					if selects(c.LabelSelector.MatchLabels, p) != (other == name) {
						t.Errorf("%s counts the pods of %s, or not its own: %v", name, other, c.LabelSelector.MatchLabels)
					}
				}
			}
		}
	})
	if seen == 0 {
		t.Error("nothing is spread")
	}
}

func TestPodsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	everyRelease(t, func(t *testing.T, r release) {
		for name, pods := range r.pods {
			level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
			if verdict := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &pods.ObjectMeta, &pods.Spec)); !verdict.Allowed {
				t.Errorf("%s: %s", name, verdict.ForbiddenDetail())
			}
			c := pods.Spec.Containers[0].SecurityContext
			if c.ReadOnlyRootFilesystem == nil || !*c.ReadOnlyRootFilesystem {
				t.Errorf("%s can write to its root file system", name)
			}
			if a := pods.Spec.AutomountServiceAccountToken; a == nil || *a {
				t.Errorf("%s has a token for Kubernetes", name)
			}
		}
	})
}

// The server refuses to start with unknown variables that start with FAIRLEAD_, and
// Kubernetes sets such variables for a Service named fairlead.
func TestPodsHaveNoVariablesOfServices(t *testing.T) {
	everyRelease(t, func(t *testing.T, r release) {
		for name, pods := range r.pods {
			if pods.Spec.EnableServiceLinks == nil || *pods.Spec.EnableServiceLinks {
				t.Errorf("%s: enableServiceLinks must be false", name)
			}
		}
	})
}

// services returns the pods of the release that run the server.
func (r release) services(t *testing.T) map[string]core.PodTemplateSpec {
	t.Helper()
	found := maps.Clone(r.pods)
	maps.DeleteFunc(found, func(_ string, p core.PodTemplateSpec) bool { return p.Spec.Containers[0].Name != "fairlead" })
	if len(found) == 0 {
		t.Fatal("no pod runs the service")
	}
	return found
}

// While the database is down, /health fails on all replicas and /ready on none. If /ready
// fails, devices should be sent to another replica soon.
func TestPodsOutliveTheirDatabase(t *testing.T) {
	everyRelease(t, func(t *testing.T, r release) {
		for name, pods := range r.services(t) {
			c := pods.Spec.Containers[0]
			if got := c.LivenessProbe.HTTPGet.Path; got != "/version" {
				t.Errorf("%s is killed by %s", name, got)
			}
			if got := c.ReadinessProbe.HTTPGet.Path; got != "/ready" {
				t.Errorf("%s is ready by %s", name, got)
			}
			if seconds := c.ReadinessProbe.PeriodSeconds * c.ReadinessProbe.FailureThreshold; seconds > 10 {
				t.Errorf("%s gets devices for %d seconds after it asked for none", name, seconds)
			}
		}
	})
}

func TestPartsFindEachOther(t *testing.T) {
	everyRelease(t, func(t *testing.T, r release) {
		for name, o := range r.objects {
			switch o := o.(type) {
			case *core.Service:
				for _, p := range o.Spec.Ports {
					r.leads(t, name, o.Spec.Selector, p)
				}
			case *networking.Ingress:
				for _, rule := range o.Spec.Rules {
					for _, p := range rule.HTTP.Paths {
						if r.objects["Service "+p.Backend.Service.Name] == nil || p.Backend.Service.Port.Name != "http" {
							t.Errorf("%s sends %s%s nowhere", name, rule.Host, p.Path)
						}
					}
				}
			case *apps.StatefulSet:
				if r.objects["Service "+o.Spec.ServiceName] == nil {
					t.Errorf("%s belongs to no Service", name)
				}
			}
		}
		for name, pods := range r.pods {
			r.hasVolumes(t, name, pods.Spec)
		}
	})
}

// leads checks that a Service port leads to exactly one workload.
func (r release) leads(t *testing.T, name string, selector map[string]string, port core.ServicePort) {
	t.Helper()
	found := 0
	for _, pods := range r.pods {
		if selects(selector, pods) && slices.ContainsFunc(pods.Spec.Containers[0].Ports, func(p core.ContainerPort) bool {
			return intstr.FromString(p.Name) == port.TargetPort && (p.Protocol == port.Protocol || p.Protocol == "" && port.Protocol == "")
		}) {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%s: port %s leads to %d kinds of pods", name, port.Name, found)
	}
}

// hasVolumes checks that everything mounted exists: the volume, and for Secrets and claims
// of the release also the object.
func (r release) hasVolumes(t *testing.T, name string, spec core.PodSpec) {
	t.Helper()
	for _, m := range spec.Containers[0].VolumeMounts {
		i := slices.IndexFunc(spec.Volumes, func(v core.Volume) bool { return v.Name == m.Name })
		if i < 0 {
			t.Errorf("%s mounts %s, which is no volume", name, m.Name)
			continue
		}
		v := spec.Volumes[i]
		if v.PersistentVolumeClaim != nil && strings.HasPrefix(v.PersistentVolumeClaim.ClaimName, "mesh-") && r.objects["PersistentVolumeClaim "+v.PersistentVolumeClaim.ClaimName] == nil {
			t.Errorf("%s: there is no claim %s", name, v.PersistentVolumeClaim.ClaimName)
		}
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			o := r.objects["Secret "+s.Secret.Name]
			if o == nil && strings.HasPrefix(s.Secret.Name, "mesh-fairlead") {
				t.Errorf("%s: there is no Secret %s", name, s.Secret.Name)
			}
		}
	}
}

// The files and environment of each pod are recreated, and the server itself checks
// whether it would start with them.
func TestServiceAcceptsItsConfiguration(t *testing.T) {
	cert, key := certificate(t)
	everyRelease(t, func(t *testing.T, r release) {
		for name, pods := range r.services(t) {
			c := pods.Spec.Containers[0]
			dir := t.TempDir()
			var config *core.Secret
			for _, o := range r.objects {
				if s, ok := o.(*core.Secret); ok && s.StringData["config.yaml"] != "" {
					config = s
				}
			}
			files := map[string]string{
				"config.yaml": strings.ReplaceAll(config.StringData["config.yaml"], "/etc/fairlead", dir), "database-password": "secret",
				"tls.crt": cert, "tls.key": key,
			}
			for file, text := range files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			check := exec.CommandContext(t.Context(), "../../../dist/fairlead", "config", "check", "--config", filepath.Join(dir, "config.yaml"))
			check.Env = []string{}
			for _, e := range c.Env {
				check.Env = append(check.Env, e.Name+"="+strings.Replace(e.Value, "/etc/fairlead", dir, 1))
			}
			out, err := check.CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v: %s", name, err, out)
			}
		}
	})
}

// certificate returns a certificate and its key, in PEM.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	pair := s.TLS.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func TestSecretsKeyIsMadeOnceAndForEver(t *testing.T) {
	r := render(t, chart+"/examples/loadbalancer.yaml")
	s, ok := r.objects["Secret mesh-fairlead-secrets-key"].(*core.Secret)
	if !ok {
		t.Fatal("no key was made")
	}
	if k, err := hex.DecodeString(string(s.Data["secrets.key"])); err != nil || len(k) != 32 {
		t.Errorf("the key %q is not 32 bytes: %v", s.Data["secrets.key"], err)
	}
	if s.Immutable == nil || !*s.Immutable || s.Annotations["helm.sh/resource-policy"] != "keep" {
		t.Error("the key can be changed or removed")
	}
	if r := render(t, chart+"/examples/company.yaml"); r.objects["Secret mesh-fairlead-secrets-key"] != nil {
		t.Error("a key is made beside the one that was given")
	}
}

// The built-in relay knows only the devices that are connected to it, so there must be at most one.
func TestThereIsOneRelay(t *testing.T) {
	everyRelease(t, func(t *testing.T, r release) {
		var relays []string
		for name, replicas := range r.replicas() {
			if r.relays()[name].Spec.Containers == nil && slices.ContainsFunc(r.pods[name].Spec.Containers[0].Ports, func(p core.ContainerPort) bool { return p.Name == "stun" }) {
				relays = append(relays, fmt.Sprintf("%s %d", name, replicas))
			}
		}
		if len(relays) > 1 || len(relays) == 1 && !strings.HasSuffix(relays[0], " 1") {
			t.Errorf("relays: %v", relays)
		}
	})
}

// STUN tells a device its public address, so the Service must preserve the source address.
func TestSTUNSeesTheAddressOfTheDevice(t *testing.T) {
	everyRelease(t, func(t *testing.T, r release) {
		for name, o := range r.objects {
			s, ok := o.(*core.Service)
			if ok && slices.ContainsFunc(s.Spec.Ports, func(p core.ServicePort) bool { return p.Name == "stun" }) && s.Spec.Type != core.ServiceTypeClusterIP && s.Spec.ExternalTrafficPolicy != core.ServiceExternalTrafficPolicyLocal {
				t.Errorf("%s: externalTrafficPolicy %q", name, s.Spec.ExternalTrafficPolicy)
			}
		}
	})
}

func TestReplicasMayBeInterruptedOneAtATime(t *testing.T) {
	for values, want := range map[string]bool{"company": true, "home": false} {
		_, got := render(t, chart+"/examples/"+values+".yaml").objects["PodDisruptionBudget mesh-fairlead"]
		if got != want {
			t.Errorf("%s has a budget: %v", values, got)
		}
	}
	d, ok := render(t, chart+"/examples/company.yaml").objects["Deployment mesh-fairlead"].(*apps.Deployment)
	if !ok {
		t.Fatal("no Deployment")
	}
	got := d.Spec.Strategy.RollingUpdate
	if diff := cmp.Diff("0 1", got.MaxUnavailable.String()+" "+got.MaxSurge.String()); diff != "" {
		t.Errorf("unavailable and more than wanted (-want +got):\n%s", diff)
	}
}

// A StatefulSet that starts pods in order waits forever for one that does not become
// ready, even after a rollback.
func TestPodThatNeverBecomesReadyIsReplaced(t *testing.T) {
	s, ok := render(t, chart+"/examples/home.yaml").objects["StatefulSet mesh-fairlead"].(*apps.StatefulSet)
	if !ok {
		t.Fatal("no StatefulSet")
	}
	if got := s.Spec.PodManagementPolicy; got != apps.ParallelPodManagement {
		t.Errorf("pods are managed %q", got)
	}
}

// The files are symbolic links to those in deploy/monitoring, which a clone without
// symlink support would contain as text.
func TestChartBringsTheAlerts(t *testing.T) {
	r, ok := render(t, chart+"/examples/company.yaml").objects["PrometheusRule mesh-fairlead"].(*monitoring.PrometheusRule)
	if !ok {
		t.Fatal("no rules")
	}
	alerts, records := 0, 0
	names := map[string]bool{}
	for _, g := range r.Spec.Groups {
		if names[g.Name] {
			t.Errorf("two groups are called %s, which Kubernetes refuses", g.Name)
		}
		names[g.Name] = true
		for _, rule := range g.Rules {
			if rule.Alert != "" {
				alerts++
			} else {
				records++
			}
		}
	}
	if alerts < 10 || records < 3 {
		t.Errorf("%d alerts and %d records", alerts, records)
	}
}

func TestWrongValuesAreRefusedInWords(t *testing.T) {
	const url, db = "serverUrl=https://mesh.example.com", "database.type=postgres,database.postgres.host=db"
	const relay = "relays[0].name=a,relays[0].url=https://a.example.com,relays[0].existingSecret=a,relays[0].tlsSecret=a"
	for set, want := range map[string]string{
		"replicas=1":                                               "serverUrl",
		"serverUrl=mesh.example.com":                               "serverUrl",
		url + ",replica=1":                                         "replica",
		url + ",replicas=0":                                        "replicas",
		url + ",database.type=mysql":                               "database",
		url + ",config.listen_addr=x":                              "config.listen_addr: the chart sets this key",
		url + ",config.derp.server.enabled=true":                   "use relay.enabled",
		url + ",database.type=postgres":                            "set the name of the PostgreSQL server",
		url + "," + db:                                             "set existingSecret or password",
		url + "," + db + ",database.postgres.password=x":           "the relay needs its own name",
		url + ",relay.serverUrl=https://relay.example.com":         "with SQLite, the relay is part of the server",
		url + ",relay.stun.type=NodePort":                          "relay.stun.nodePort",
		url + ",console.enabled=true,console.ingress.enabled=true": "set the host name of the console",
		url + ",relays[0].name=a":                                  "url",
		url + "," + relay + ",relays[0].service.type=ClusterIP":    "set ingress.enabled",
		url + "," + relay + ",relays[0].service.type=NodePort":     "set service.nodePort",
		url + "," + relay + ",relays[0].service.type=NodePort,relays[0].service.nodePort=30443":                                        "set service.stunNodePort",
		url + "," + relay + "," + strings.ReplaceAll(relay, "[0]", "[1]"):                                                              "two of them have the name a",
		url + ",fullnameOverride=" + strings.Repeat("f", 50) + "," + strings.Replace(relay, "=a,", "="+strings.Repeat("a", 32)+",", 1): "too long",
		url + ",ingress.enabled=true,tls.existingSecret=certificate":                                                                   "either the Ingress or the pods terminate TLS",
	} {
		if _, problems, err := helm(t, "template", "mesh", chart, "--kube-version="+oldest, "--set="+set); err == nil || !strings.Contains(problems, want) {
			t.Errorf("%s: %v %s", set, err, problems)
		}
	}
	if _, problems, err := helm(t, "template", "mesh", chart, "--kube-version=1.29.0", "--set="+url); err == nil || !strings.Contains(problems, "kubeVersion") {
		t.Errorf("an old Kubernetes: %v %s", err, problems)
	}
}
