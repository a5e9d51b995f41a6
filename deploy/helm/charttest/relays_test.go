package charttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	disruption "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// relays returns the pods of the release that run only a relay.
func (r release) relays() map[string]core.PodTemplateSpec {
	found := map[string]core.PodTemplateSpec{}
	for name, pods := range r.pods {
		if pods.Spec.Containers[0].Name == "relay" {
			found[name] = pods
		}
	}
	return found
}

// The relay itself checks its arguments, its key and its certificate: it gets as far as a listener that cannot be opened.
func TestRelaysAcceptTheirArguments(t *testing.T) {
	cert, key := certificate(t)
	seen := 0
	everyRelease(t, func(t *testing.T, r release) {
		for name, pods := range r.relays() {
			seen++
			c := pods.Spec.Containers[0]
			dir := t.TempDir()
			for file, text := range map[string]string{"tls.crt": cert, "tls.key": key} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var args []string
			for _, a := range c.Args {
				args = append(args, strings.Replace(a, "/etc/fairlead-relay", dir, 1))
			}
			args = append(args, "--state-dir="+dir, "--listen=127.0.0.1:none")
			check := exec.CommandContext(t.Context(), "../../../dist/fairlead", args...)
			check.Env = []string{c.Env[0].Name + "=flr_a_b"}
			if out, err := check.CombinedOutput(); err == nil || !strings.Contains(string(out), "--listen") {
				t.Errorf("%s: %q: %v: %s", name, args, err, out)
			}
		}
	})
	if seen < 4 {
		t.Errorf("only %d relays were checked", seen)
	}
}

// A relay that is stopped because the server is away would interrupt the devices that need it most.
func TestRelaysOutliveTheServer(t *testing.T) {
	r := render(t, chart+"/examples/ha.yaml", "--set=stopped=true")
	for name, replicas := range r.replicas() {
		if _, relay := r.relays()[name]; (replicas == 1) != relay || replicas > 1 {
			t.Errorf("%s has %d pods", name, replicas)
		}
	}
	for name, pods := range r.relays() {
		c := pods.Spec.Containers[0]
		if c.LivenessProbe.HTTPGet.Path != "/health" || c.ReadinessProbe.HTTPGet.Path != "/health" || c.StartupProbe == nil {
			t.Errorf("%s: probes %+v %+v", name, c.LivenessProbe, c.ReadinessProbe)
		}
	}
}

// Devices reach a relay at the ports it announces, also if only some may call the server.
func TestDevicesReachRelays(t *testing.T) {
	for values, want := range map[string]struct {
		kind      core.ServiceType
		stun      int32 // the port that the Service has outside the cluster
		announced string
	}{
		chart + "/examples/ha.yaml mesh-fairlead-relay-ams-1": {core.ServiceTypeLoadBalancer, 0, "3478"},
		"testdata/relays.yaml mesh-fairlead-relay-node":       {core.ServiceTypeNodePort, 30478, "30478"},
		"testdata/relays.yaml mesh-fairlead-relay-ingress":    {core.ServiceTypeClusterIP, 0, "3478"},
		"testdata/relays.yaml mesh-fairlead-relay-quiet":      {core.ServiceTypeLoadBalancer, -1, ""},
	} {
		file, name, _ := strings.Cut(values, " ")
		r := render(t, file)
		s, ok := r.objects["Service "+name].(*core.Service)
		if !ok || s.Spec.Type != want.kind {
			t.Errorf("%s: %+v", name, s)
			continue
		}
		pods := r.relays()["Deployment "+name]
		args := strings.Join(pods.Spec.Containers[0].Args, " ") + " "
		i := slices.IndexFunc(s.Spec.Ports, func(p core.ServicePort) bool { return p.Name == "stun" })
		switch {
		case want.stun < 0:
			if i >= 0 || !strings.Contains(args, "--stun-listen= ") {
				t.Errorf("%s has STUN: %s", name, args)
			}
		case i < 0 || s.Spec.Ports[i].NodePort != want.stun || !strings.Contains(args, "--stun-port="+want.announced+" "):
			t.Errorf("%s: STUN at %+v, announced by %s", name, s.Spec.Ports, args)
		}
		_, ingress := r.objects["Ingress "+name].(*networking.Ingress)
		if behind := want.kind == core.ServiceTypeClusterIP; ingress != behind || strings.Contains(args, "--tls-cert") == behind || strings.Contains(args, "--trusted-proxies=10.244.0.0/16,10.0.0.1/32 ") != behind {
			t.Errorf("%s: has an Ingress: %v; %s", name, ingress, args)
		}
		p, ok := r.objects["NetworkPolicy mesh-fairlead-relays"].(*networking.NetworkPolicy)
		if !ok || !matches(t, &p.Spec.PodSelector, pods) || len(p.Spec.Ingress[0].From) != 0 {
			t.Errorf("%s: not everyone may connect: %+v", name, p)
		}
	}
}

func matches(t *testing.T, s *meta.LabelSelector, pods core.PodTemplateSpec) bool {
	t.Helper()
	selector, err := meta.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(labels.Set(pods.Labels))
}

// When nodes are drained, one relay after the other is moved; replicas have a budget of their own.
func TestRelaysAreInterruptedOneAtATime(t *testing.T) {
	r := render(t, chart+"/examples/ha.yaml")
	b, ok := r.objects["PodDisruptionBudget mesh-fairlead-relays"].(*disruption.PodDisruptionBudget)
	if !ok || b.Spec.MaxUnavailable.IntValue() != 1 {
		t.Fatalf("the budget is %+v", b)
	}
	for name, pods := range r.pods {
		if _, relay := r.relays()[name]; matches(t, b.Spec.Selector, pods) != relay {
			t.Errorf("the budget counts %s wrongly", name)
		}
	}
}

// Alerts count the targets of the job fairlead as servers.
func TestRelaysAreAnotherJob(t *testing.T) {
	r := render(t, chart+"/examples/ha.yaml", "--set=monitoring.podMonitor.enabled=true")
	for monitor, wantRelays := range map[string]bool{"mesh-fairlead": false, "mesh-fairlead-relays": true} {
		m, ok := r.objects["PodMonitor "+monitor].(*monitoring.PodMonitor)
		if !ok {
			t.Fatalf("no PodMonitor %s", monitor)
		}
		if job := *m.Spec.PodMetricsEndpoints[0].RelabelConfigs[0].Replacement; (job == "fairlead-relay") != wantRelays {
			t.Errorf("%s: job %s", monitor, job)
		}
		for name, pods := range r.pods {
			_, relay := r.relays()[name]
			hasMetrics := slices.ContainsFunc(pods.Spec.Containers[0].Ports, func(p core.ContainerPort) bool { return p.Name == "metrics" })
			if hasMetrics && matches(t, &m.Spec.Selector, pods) != (relay == wantRelays) {
				t.Errorf("%s: %s is counted wrongly", monitor, name)
			}
		}
	}
}
