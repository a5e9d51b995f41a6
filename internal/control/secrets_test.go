package control_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/secrets"
)

// startedAt is a replica with its own directory. Several replicas share a database.
type startedAt struct {
	t *testing.T
	c secrets.Config
}

func startAt(t *testing.T, s service, sealed string) startedAt {
	t.Helper()
	dir := t.TempDir()
	r := startedAt{t, secrets.Config{Ledger: s.ledger, Log: slog.New(slog.DiscardHandler), NoisePath: filepath.Join(dir, "state", "noise.key")}}
	if sealed != "" {
		r.c.KeyFile = filepath.Join(dir, "secrets.key")
		r.write(r.c.KeyFile, sealed)
	}
	return r
}

func (r startedAt) write(path, text string) {
	r.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r startedAt) starts() key.MachinePrivate {
	r.t.Helper()
	return r.opens().Noise.Current().Private
}

func (r startedAt) opens() *secrets.Keys {
	r.t.Helper()
	k, err := secrets.Open(r.t.Context(), r.c)
	if err != nil {
		r.t.Fatal(err)
	}
	return k
}

func (r startedAt) refuses(want string) {
	r.t.Helper()
	_, err := secrets.Open(r.t.Context(), r.c)
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		r.t.Errorf("got %v, want %q", err, want)
	}
}

const (
	sealKey      = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
	otherSealKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
)

func TestNoiseKeyIsMadeOnceAndKeptInItsFile(t *testing.T) {
	s := open(t)
	r := startAt(t, s, "")
	first := r.starts()
	if info, err := os.Stat(r.c.NoisePath); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if files, err := os.ReadDir(filepath.Dir(r.c.NoisePath)); err != nil || len(files) != 1 {
		t.Errorf("%v %v", files, err)
	}
	rev := s.ledger.World().Rev
	if again := r.starts(); !again.Equal(first) || s.ledger.World().Rev != rev {
		t.Error("the second start has another key, or wrote something")
	}
	v, _ := s.ledger.World().Settings.ByKey(mesh.SettingNoise)
	if text, _ := first.MarshalText(); strings.Contains(v.Value, strings.TrimPrefix(string(text), "privkey:")) || !strings.Contains(v.Value, first.Public().String()) {
		t.Errorf("recorded %s", v.Value)
	}

	second := startAt(t, s, "")
	second.refuses("does not exist, but clients already use the server's key " + first.Public().String())
	if _, err := os.Stat(second.c.NoisePath); err == nil {
		t.Error("a file was left behind")
	}
	startAt(t, s, sealKey).refuses("does not exist, but clients already use the server's key")
	if err := os.Remove(r.c.NoisePath); err != nil {
		t.Fatal(err)
	}
	r.refuses("does not exist, but clients already use the server's key")
	other, _ := key.NewMachine().MarshalText()
	r.write(r.c.NoisePath, string(other))
	r.refuses("does not contain the server's key " + first.Public().String())
	for _, text := range []string{"", "privkey:", "privkey:" + strings.Repeat("0", 64), "hello"} {
		r.write(r.c.NoisePath, text)
		r.refuses("does not contain a key")
	}
}

func TestNoiseKeyThatWasCutShortIsMadeAgainWhileNobodyKnowsIt(t *testing.T) {
	whole, _ := key.NewMachine().MarshalText()
	for _, sealed := range []string{"", sealKey} {
		for _, length := range []int{0, 4, len("privkey:"), len("privkey:") + 63} {
			r := startAt(t, open(t), sealed)
			if err := os.Mkdir(filepath.Dir(r.c.NoisePath), 0o700); err != nil {
				t.Fatal(err)
			}
			r.write(r.c.NoisePath, string(whole[:length]))
			if k := r.starts(); !r.starts().Equal(k) {
				t.Errorf("%d bytes: the second start has another key", length)
			}
		}
	}
	for _, text := range []string{"hello", "privkey:hello", string(whole) + "0", "privkey:" + strings.Repeat("0", 64)} {
		r := startAt(t, open(t), "")
		if err := os.Mkdir(filepath.Dir(r.c.NoisePath), 0o700); err != nil {
			t.Fatal(err)
		}
		r.write(r.c.NoisePath, text)
		r.refuses("does not contain a key")
	}
}

func TestSealedNoiseKeyIsSharedByAllReplicas(t *testing.T) {
	s := open(t)
	first, second := startAt(t, s, sealKey), startAt(t, s, otherSealKey) // two encodings of the same key
	k := first.starts()
	if !second.starts().Equal(k) || !first.starts().Equal(k) {
		t.Error("the replicas have different keys")
	}
	if _, err := os.Stat(first.c.NoisePath); err == nil {
		t.Error("the key is in a file too")
	}
	startAt(t, s, "").refuses("is encrypted in the database: set secrets_key_file")
	startAt(t, s, strings.Repeat("00", 32)).refuses("cannot decrypt the server's key " + k.Public().String())
	startAt(t, s, "short").refuses("does not contain 32 bytes")
	gone := startAt(t, s, sealKey)
	if err := os.Remove(gone.c.KeyFile); err != nil {
		t.Fatal(err)
	}
	gone.refuses("openssl rand -hex 32")
}

func TestLostNoiseKeyIsGivenUpWhenAsked(t *testing.T) {
	for name, lose := range map[string]func(r *startedAt){
		"no file":       func(r *startedAt) { _ = os.Remove(r.c.NoisePath) },
		"another key":   func(r *startedAt) { r.write(r.c.NoisePath, "privkey:"+strings.Repeat("ab", 32)) },
		"no key":        func(r *startedAt) { r.write(r.c.NoisePath, "hello") },
		"half a key":    func(r *startedAt) { r.write(r.c.NoisePath, "privkey:00") },
		"another seal":  func(r *startedAt) { r.write(r.c.KeyFile, strings.Repeat("00", 32)) },
		"no seal known": func(r *startedAt) { r.c.KeyFile = "" },
	} {
		t.Run(name, func(t *testing.T) {
			sealed := ""
			if strings.Contains(name, "seal") {
				sealed = sealKey
			}
			r := startAt(t, open(t), sealed)
			lost := r.starts()
			lose(&r)
			r.refuses("start once with --new-key")
			r.c.GiveUpLost = true
			k := r.starts()
			if k.Equal(lost) || !r.starts().Equal(k) {
				t.Error("the second start with the flag has another key")
			}
			r.c.GiveUpLost = false
			if !r.starts().Equal(k) {
				t.Error("the start after it has another key")
			}
		})
	}
}

func TestNoiseKeyThatCannotBeReadIsNotLost(t *testing.T) {
	r := startAt(t, open(t), "")
	r.starts()
	if err := os.Remove(r.c.NoisePath); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(r.c.NoisePath, 0o700); err != nil { // reading it fails even as root
		t.Fatal(err)
	}
	r.c.GiveUpLost = true
	r.refuses("is a directory")
}

func TestNoiseKeyMovesFromItsFileIntoTheDatabase(t *testing.T) {
	s := open(t)
	r := startAt(t, s, "")
	k := r.starts()
	sealed := startAt(t, s, sealKey)
	sealed.c.NoisePath = r.c.NoisePath
	if !sealed.starts().Equal(k) || !startAt(t, s, sealKey).starts().Equal(k) {
		t.Error("another key")
	}
	text, _ := key.NewMachine().MarshalText()
	r.write(r.c.NoisePath, string(text))
	sealed.refuses("does not contain the server's key")
}

// derivedFrom returns the webhook secret for a salt that earlier versions derived from the Noise key.
func derivedFrom(k key.MachinePrivate, salt string) string {
	text, err := k.MarshalText()
	if err != nil {
		panic(err)
	}
	return identity.NewWebhookSecrets(identity.NewServerSecrets(identity.ServerSecret{Number: 1, Value: text})).Secret(salt)
}

// forgetSecrets removes what an earlier version did not store.
func forgetSecrets(t *testing.T, s service) {
	t.Helper()
	_, err := s.ledger.Commit(t.Context(), mesh.Actor{Kind: mesh.ActorServer}, func(w *policy.World, _ mesh.Time) ([]mesh.Event, error) {
		v, _ := w.Settings.ByKey(mesh.SettingSecrets)
		return []mesh.Event{mesh.SettingGone{ID: v.ID}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func sameNoise(a, b *secrets.Keys) bool {
	return a.Noise.Current().Private.Equal(b.Noise.Current().Private)
}

func webhookSecret(k *secrets.Keys) string {
	return identity.NewWebhookSecrets(k.Secrets).Secret("salt")
}

func TestSecretsDoNotFollowFromTheNoiseKey(t *testing.T) {
	for _, sealed := range []string{"", sealKey} {
		s := open(t)
		r := startAt(t, s, sealed)
		k := r.opens()
		if webhookSecret(k) == derivedFrom(k.Noise.Current().Private, "salt") {
			t.Error("the webhook secret can be computed from the Noise key alone")
		}
		rev := s.ledger.World().Rev
		if again := webhookSecret(r.opens()); again != webhookSecret(k) || s.ledger.World().Rev != rev {
			t.Error("the second start has other secrets, or wrote something")
		}
		second := startAt(t, s, sealed)
		second.c.NoisePath = r.c.NoisePath
		if webhookSecret(second.opens()) != webhookSecret(k) {
			t.Error("another replica has other secrets")
		}
	}
}

func TestServerOfAnEarlierVersionKeepsItsSecrets(t *testing.T) {
	for _, sealed := range []string{"", sealKey} {
		s := open(t)
		r := startAt(t, s, sealed)
		k := r.opens()
		forgetSecrets(t, s)
		upgraded := r.opens()
		if !sameNoise(upgraded, k) || webhookSecret(upgraded) != derivedFrom(k.Noise.Current().Private, "salt") {
			t.Error("the upgrade changed the webhook secret")
		}
		rev := s.ledger.World().Rev
		if webhookSecret(r.opens()) != webhookSecret(upgraded) || s.ledger.World().Rev != rev {
			t.Error("the second start has other secrets, or wrote something")
		}
		if v, _ := s.ledger.World().Settings.ByKey(mesh.SettingSecrets); strings.Contains(v.Value, "privkey") {
			t.Errorf("stored %s", v.Value)
		}
	}
}

func TestSecretsMoveUnderTheSecretsKey(t *testing.T) {
	s := open(t)
	r := startAt(t, s, "")
	want := webhookSecret(r.opens())
	sealed := startAt(t, s, sealKey)
	sealed.c.NoisePath = r.c.NoisePath
	if webhookSecret(sealed.opens()) != want || webhookSecret(r.opens()) != want || webhookSecret(startAt(t, s, sealKey).opens()) != want {
		t.Error("other secrets")
	}
}

func TestSecretsThatCannotBeDecryptedAreReplacedWhenAsked(t *testing.T) {
	s := open(t)
	r := startAt(t, s, "")
	k := r.opens()
	_, err := s.ledger.Commit(t.Context(), mesh.Actor{Kind: mesh.ActorServer}, func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
		return w.SettingPutFor(mesh.SettingSecrets, `{"seals":[{"by":"secrets_key_file","sealed":"AAAA"}]}`, "replica", false, now), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.refuses("cannot be decrypted with the keys of this replica")
	r.c.GiveUpLost = true
	replaced := r.opens()
	if !sameNoise(replaced, k) || webhookSecret(replaced) == webhookSecret(k) {
		t.Error("the Noise key was replaced, or the secrets were not")
	}
	r.c.GiveUpLost = false
	if webhookSecret(r.opens()) != webhookSecret(replaced) {
		t.Error("the next start has other secrets")
	}
}
