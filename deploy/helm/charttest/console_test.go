package charttest

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
)

// The console itself checks whether it would start with the environment of its pod: it gets
// as far as requesting the health of a console that is not running.
func TestConsoleAcceptsItsEnvironment(t *testing.T) {
	seen := 0
	everyRelease(t, func(t *testing.T, r release) {
		for name, pods := range r.pods {
			c := pods.Spec.Containers[0]
			if c.Name != "console" {
				continue
			}
			seen++
			check := exec.CommandContext(t.Context(), "../../../dist/fairlead-console", "--config", os.DevNull, "health")
			check.Env = []string{"FAIRLEAD_CONSOLE_LISTEN_ADDR=127.0.0.1:1"}
			for _, e := range c.Env {
				if e.Name == "FAIRLEAD_CONSOLE_COOKIE_SECRET" {
					e.Value = "k3J9x0QmZt7Lw2Rv8NcYb5Ha1Ds6Fg4e"
					r.hasSecret(t, name, e)
				}
				check.Env = append(check.Env, e.Name+"="+e.Value)
			}
			out, err := check.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "connection refused") {
				t.Errorf("%s: %v: %s", name, err, out)
			}
		}
	})
	if seen == 0 {
		t.Error("no release has a console")
	}
}

// hasSecret checks that the Secret created by the chart contains what a variable refers to.
func (r release) hasSecret(t *testing.T, deployment string, e core.EnvVar) {
	t.Helper()
	want := e.ValueFrom.SecretKeyRef
	if "Deployment "+want.Name != deployment {
		return // one of the operator's Secrets
	}
	if s, ok := r.objects["Secret "+want.Name].(*core.Secret); !ok || len(s.Data[want.Key]) != 32 {
		t.Errorf("%s: there is no %s of 32 characters in the Secret %s", deployment, want.Key, want.Name)
	}
}

// Where callers are restricted, the console is one of those allowed.
func TestConsoleMayCallTheService(t *testing.T) {
	r := render(t, "testdata/everything.yaml")
	p, ok := r.objects["NetworkPolicy fairlead"].(*networking.NetworkPolicy)
	if !ok {
		t.Fatal("no policy")
	}
	console := r.pods["Deployment fairlead-console"]
	found := false
	for _, peer := range p.Spec.Ingress[0].From {
		found = found || peer.PodSelector != nil && selects(peer.PodSelector.MatchLabels, console)
	}
	if !found {
		t.Errorf("the service answers only %+v", p.Spec.Ingress[0].From)
	}
	out := p.Spec.Egress[len(p.Spec.Egress)-1].To[0].PodSelector.MatchLabels
	if !selects(out, r.pods["Deployment fairlead"]) {
		t.Errorf("the console may not call the service: %+v", p.Spec.Egress)
	}
}

// The console trusts the proxies in its own value, or else those of the server, or else
// private networks, so that an Ingress works without either setting.
func TestConsoleTrustsTheIngressController(t *testing.T) {
	for file, want := range map[string]string{
		"testdata/everything.yaml":          "10.244.0.0/16,fd00::/8",
		chart + "/examples/company.yaml":    "10.244.0.0/16",
		"testdata/console-and-nothing.yaml": "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,fc00::/7",
	} {
		r, got := render(t, file), ""
		for _, pods := range r.pods {
			for _, e := range pods.Spec.Containers[0].Env {
				if e.Name == "FAIRLEAD_CONSOLE_TRUSTED_PROXIES" {
					got = e.Value
				}
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
}
