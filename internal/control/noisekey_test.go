package control_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/secrets"
)

// rotating is a server with two replicas, each with its own directory.
type rotating struct {
	service
	a, b         startedAt
	keysA, keysB *secrets.Keys
	control      *control.NoiseKeys
}

func newRotating(t *testing.T, sealed string) rotating {
	t.Helper()
	s := open(t)
	r := rotating{service: s, a: startAt(t, s, sealed), b: startAt(t, s, sealed)}
	r.keysA = r.a.opens()
	if sealed == "" {
		r.copyFile()
	}
	r.keysB = r.b.opens()
	r.control = control.New(control.Config{Ledger: s.ledger, History: s.history, Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(), Keys: r.keysA}).NoiseKeys
	return r
}

// copyFile copies the key file of replica a to replica b.
func (r rotating) copyFile() {
	r.a.t.Helper()
	text, err := os.ReadFile(r.a.c.NoisePath)
	if err != nil {
		r.a.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(r.b.c.NoisePath), 0o700); err != nil {
		r.a.t.Fatal(err)
	}
	r.b.write(r.b.c.NoisePath, string(text))
}

func (r rotating) rotate() {
	r.a.t.Helper()
	if err := r.control.Rotate(r.a.t.Context(), admin); err != nil {
		r.a.t.Fatal(err)
	}
}

// privates returns the keys that a replica accepts.
func privates(k *secrets.Keys) (list []key.MachinePrivate) {
	for _, one := range k.Noise.All() {
		list = append(list, one.Private)
	}
	return list
}

func sameKeys(a, b []key.MachinePrivate) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Equal(b[i]) {
			return false
		}
	}
	return true
}

func TestRotatedNoiseKeyReachesAllReplicasAndSurvivesRestarts(t *testing.T) {
	for name, sealed := range map[string]string{"file": "", "secrets_key_file": sealKey} {
		t.Run(name, func(t *testing.T) {
			r := newRotating(t, sealed)
			old, hook := r.keysA.Noise.Current().Private, webhookSecret(r.keysA)
			before := startedAt{t, r.b.c} // a replica that is down during the rotation
			if sealed == "" {
				before.c.NoisePath = filepath.Join(t.TempDir(), "noise.key")
				text, _ := old.MarshalText()
				before.write(before.c.NoisePath, string(text))
			}
			r.rotate()
			r.keysB.Reload()
			both := privates(r.keysA)
			if len(both) != 2 || !both[1].Equal(old) || both[0].Equal(old) || !sameKeys(privates(r.keysB), both) {
				t.Fatalf("the replicas accept %d and %d keys", len(both), len(privates(r.keysB)))
			}
			if webhookSecret(r.keysA) != hook || webhookSecret(r.keysB) != hook {
				t.Error("the secret of an existing webhook changed")
			}
			for who, one := range map[string]startedAt{"a": r.a, "b": r.b, "a replica that was down": before} {
				if again := one.opens(); !sameKeys(privates(again), both) || webhookSecret(again) != hook || again.Stored() != 2 {
					t.Errorf("%s has other keys after a restart", who)
				}
			}
			if err := r.control.Rotate(t.Context(), admin); reason(err) != control.Conflict {
				t.Errorf("a second rotation: %v", err)
			}

			if err := r.control.Retire(t.Context(), admin, false); err != nil {
				t.Fatal(err)
			}
			r.keysB.Reload()
			for who, k := range map[string]*secrets.Keys{"a": r.keysA, "b": r.keysB, "a after a restart": r.a.opens(), "b after a restart": r.b.opens()} {
				if !sameKeys(privates(k), both[:1]) || webhookSecret(k) != hook {
					t.Errorf("%s accepts the retired key, or not the new one", who)
				}
			}
			if err := r.control.Retire(t.Context(), admin, true); reason(err) != control.Conflict {
				t.Errorf("a second retirement: %v", err)
			}
			v, _ := r.ledger.World().Settings.ByKey(mesh.SettingNoise)
			if sealed == "" && strings.Contains(v.Value, "eal") || strings.Contains(v.Value, "byPrevious") {
				t.Errorf("whoever has the old key and the database can decrypt the new one: %s", v.Value)
			}
		})
	}
}

func TestReplicaWithARetiredKeySaysSo(t *testing.T) {
	r := newRotating(t, "")
	old, _ := r.keysA.Noise.Current().Private.MarshalText()
	r.rotate()
	r.keysB.Reload()
	if err := r.control.Retire(t.Context(), admin, false); err != nil {
		t.Fatal(err)
	}
	late := startAt(t, r.service, "")
	if err := os.MkdirAll(filepath.Dir(late.c.NoisePath), 0o700); err != nil {
		t.Fatal(err)
	}
	late.write(late.c.NoisePath, string(old))
	late.refuses("contains a key that was retired")
}

// After a restore of the database to a time before the rotation, the server needs the old key again.
func TestReplicaFindsTheKeyBeforeALostRotation(t *testing.T) {
	r := newRotating(t, "")
	old := r.keysA.Noise.Current().Private
	noise, _ := r.ledger.World().Settings.ByKey(mesh.SettingNoise)
	ring, _ := r.ledger.World().Settings.ByKey(mesh.SettingSecrets)
	r.rotate()
	commit(t, r.service, mesh.SettingPut{Setting: noise}, mesh.SettingPut{Setting: ring})
	r.keysA.Reload()
	if !sameKeys(privates(r.keysA), []key.MachinePrivate{old}) || !sameKeys(privates(r.a.opens()), []key.MachinePrivate{old}) {
		t.Error("another key")
	}
}

func TestReplicaThatCannotStoreTheNewKeyPreventsRetirement(t *testing.T) {
	r := newRotating(t, "")
	if err := os.Remove(r.a.c.NoisePath); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(r.a.c.NoisePath, 0o700); err != nil { // fails even as root
		t.Fatal(err)
	}
	r.rotate()
	if len(privates(r.keysA)) != 2 || len(r.keysA.Problems()) != 1 || !strings.Contains(r.keysA.Problems()[0], "noise.private_key_path") {
		t.Errorf("%d keys, problems %q", len(privates(r.keysA)), r.keysA.Problems())
	}
	if err := r.control.Retire(t.Context(), admin, false); reason(err) != control.Conflict || !strings.Contains(err.Error(), "would not start again") {
		t.Errorf("%v", err)
	}
}

func TestNodesWaitUntilTheyUseTheNewKey(t *testing.T) {
	r := newRotating(t, "")
	put(t, r.service, mesh.Node{Name: "laptop"}, mesh.Node{Name: "phone"}, mesh.Node{Name: "never-connected"})
	commit(t, r.service, mesh.Offline{ID: 1, At: 5}, mesh.Online{ID: 2, Replica: "r", Conn: 1, At: 5})
	names := func() (list []string) {
		for _, n := range r.control.Status().Waiting {
			list = append(list, n.Name)
		}
		return list
	}
	if got := names(); len(got) != 0 || r.control.Warning() != "" {
		t.Errorf("before the rotation: %v", got)
	}
	r.rotate()
	if got := strings.Join(names(), " "); got != "laptop phone" || !strings.Contains(r.control.Warning(), "fairlead noise-key status") {
		t.Errorf("after the rotation: %v %q", got, r.control.Warning())
	}
	commit(t, r.service, mesh.NodeFacts{Facts: &mesh.Facts{Node: 1, At: 9, NoiseKey: 2}}, mesh.NodeFacts{Facts: &mesh.Facts{Node: 2, At: 9, NoiseKey: 1}})
	if got := strings.Join(names(), " "); got != "phone" {
		t.Errorf("after one restarted: %v", got)
	}
	err := r.control.Retire(t.Context(), admin, false)
	if reason(err) != control.Conflict || !strings.Contains(err.Error(), "1 node") || len(privates(r.keysA)) != 2 {
		t.Errorf("%v", err)
	}
	if err := r.control.Retire(t.Context(), admin, true); err != nil || len(privates(r.keysA)) != 1 {
		t.Errorf("%v", err)
	}
}
