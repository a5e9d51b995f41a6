package charttest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// cluster simulates the part of the Kubernetes API that Helm queries before it renders:
// the available kinds, and the Secrets of one namespace.
func cluster(t *testing.T, secrets ...core.Secret) (address string) {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(pattern string, value any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(value); err != nil {
				t.Error(err)
			}
		})
	}
	answer("GET /version", version.Info{Major: "1", Minor: "30", GitVersion: "v" + oldest})
	answer("GET /api", meta.APIVersions{TypeMeta: meta.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	answer("GET /apis", meta.APIGroupList{TypeMeta: meta.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}})
	answer("GET /api/v1", meta.APIResourceList{
		TypeMeta: meta.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1",
		APIResources: []meta.APIResource{{Name: "secrets", SingularName: "secret", Namespaced: true, Kind: "Secret", Verbs: meta.Verbs{"get"}}},
	})
	for _, s := range secrets {
		s.TypeMeta = meta.TypeMeta{Kind: "Secret", APIVersion: "v1"}
		answer("GET /api/v1/namespaces/net/secrets/"+s.Name, s)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(meta.Status{
			TypeMeta: meta.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: meta.StatusReasonNotFound, Code: http.StatusNotFound,
		})
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// A new secret would sign everyone out.
func TestUpgradeKeepsTheSecretOfTheConsole(t *testing.T) {
	secretIn := func(address string) string {
		r := render(t, chart+"/examples/home.yaml", "--set=console.enabled=true", "--dry-run=server", "--kube-apiserver="+address)
		s, ok := r.objects["Secret mesh-fairlead-console"].(*core.Secret)
		if !ok {
			t.Fatal("no secret")
		}
		return string(s.Data["cookie_secret"])
	}
	made := secretIn(cluster(t))
	if again := secretIn(cluster(t)); len(made) != 32 || made == again {
		t.Errorf("two installations have the secrets %q and %q", made, again)
	}
	there := core.Secret{ObjectMeta: meta.ObjectMeta{Name: "mesh-fairlead-console", Namespace: "net"}, Data: map[string][]byte{"cookie_secret": []byte(made)}}
	if kept := secretIn(cluster(t, there)); kept != made {
		t.Errorf("the secret was %s and becomes %s", made, kept)
	}
}

// A changed Secret starts new console pods; an unchanged one does not.
func TestConsoleStartsAgainWithAnotherSecret(t *testing.T) {
	checksum := func(name string, secrets ...core.Secret) (string, map[string][]byte) {
		r := render(t, chart+"/examples/home.yaml", "--set=console.enabled=true", "--set=console.existingSecret="+name, "--dry-run=server", "--kube-apiserver="+cluster(t, secrets...))
		var made map[string][]byte
		if s, ok := r.objects["Secret mesh-fairlead-console"].(*core.Secret); ok {
			made = s.Data
		}
		return r.pods["Deployment mesh-fairlead-console"].Annotations["checksum/secret"], made
	}
	secret := func(name string, data map[string][]byte) core.Secret {
		return core.Secret{ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "net"}, Data: data}
	}
	installed, made := checksum("")
	upgraded, _ := checksum("", secret("mesh-fairlead-console", made))
	if installed == "" || upgraded != installed {
		t.Errorf("the chart's own Secret has the checksums %q and %q", installed, upgraded)
	}
	first, _ := checksum("own", secret("own", map[string][]byte{"cookie_secret": []byte("a"), "api_key": []byte("first")}))
	second, _ := checksum("own", secret("own", map[string][]byte{"cookie_secret": []byte("a"), "api_key": []byte("second")}))
	if first == "" || first == second {
		t.Errorf("with another API key the checksum is %q, and was %q", second, first)
	}
}

// An upgrade that generated a new key would cut all replicas off from the key that
// devices know.
func TestUpgradeKeepsTheSecretsKey(t *testing.T) {
	keyIn := func(r release) string {
		s, ok := r.objects["Secret mesh-fairlead-secrets-key"].(*core.Secret)
		if !ok {
			t.Fatal("no key")
		}
		return string(s.Data["secrets.key"])
	}
	inCluster := func(address string) release {
		return render(t, chart+"/examples/loadbalancer.yaml", "--dry-run=server", "--kube-apiserver="+address)
	}
	made := keyIn(inCluster(cluster(t)))
	if again := keyIn(inCluster(cluster(t))); made == again {
		t.Errorf("two installations have the same key %s", made)
	}
	there := core.Secret{ObjectMeta: meta.ObjectMeta{Name: "mesh-fairlead-secrets-key", Namespace: "net"}, Data: map[string][]byte{"secrets.key": []byte(made)}}
	if kept := keyIn(inCluster(cluster(t, there))); kept != made {
		t.Errorf("the key was %s and becomes %s", made, kept)
	}
}
