package secrets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// maxRetired is how many retired keys the record lists.
const maxRetired = 8

// previousSuffix is added to the path of the Noise key for the file with the key before. The server can need it after the
// database was restored to a time before the rotation.
const previousSuffix = ".previous"

// Keys are the keys that all replicas share. Run applies rotations.
type Keys struct {
	Noise   *identity.NoiseKeys
	Secrets *identity.ServerSecrets

	config Config
	seal   []byte // the key in secrets_key_file, or nil

	mu             sync.Mutex
	noise, ring    string // guarded by mu; the settings that were applied
	stored         int    // guarded by mu; the number of the newest key that a restarted replica would have
	noiseProblem   string // guarded by mu
	secretsProblem string // guarded by mu
}

// Rotation creates a Noise key and returns the decision to use it. The decision also adds a secret from which other keys are
// derived, because the earlier ones may follow from the old key. It fails while two keys are accepted.
func (k *Keys) Rotation() func(*policy.World, mesh.Time) ([]mesh.Event, error) {
	next := key.NewMachine()
	secret := identity.NewServerSecret(0)
	return func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
		record, recorded, err := noiseRecordIn(w)
		current := k.Noise.Current().Private
		switch {
		case err != nil:
			return nil, err
		case record.Previous != nil:
			return nil, errors.New("the previous Noise key is still accepted; retire it first")
		case !recorded || record.Public != current.Public():
			return nil, errors.New("this replica does not have the server's current key; restart it")
		case k.seal == nil && len(record.Sealed) > 0:
			return nil, errors.New("the Noise key is encrypted with secrets_key_file, which this replica does not have; set it and restart")
		}
		made := sealedRecord(next, k.seal)
		made.Number, made.RotatedAt, made.Retired = record.Generation()+1, now, record.Retired
		made.Previous = &mesh.PreviousNoiseKey{Public: current.Public()}
		if k.seal != nil {
			made.Previous.Sealed = sealed(current, k.seal)
		} else {
			made.ByPrevious, made.Previous.ByNext = sealed(next, keyText(current)), sealed(current, keyText(next))
		}
		v, _ := w.Settings.ByKey(mesh.SettingSecrets)
		if v == nil {
			return nil, errors.New("the server's secrets are not stored yet; restart this replica")
		}
		r, _, err := openRing(v.Value, wrappings(current, k.seal))
		if err != nil {
			return nil, err
		}
		added := secret
		added.Number = r.Secrets[len(r.Secrets)-1].Number + 1
		ringValue, err := ring{append(r.Secrets[:len(r.Secrets):len(r.Secrets)], added)}.sealed(wrappings(next, k.seal)[0])
		if err != nil {
			return nil, err
		}
		noiseValue, err := encoded(made)
		if err != nil {
			return nil, err
		}
		return append(w.SettingPutFor(mesh.SettingNoise, noiseValue, "api", false, now), w.SettingPutFor(mesh.SettingSecrets, ringValue, "api", false, now)...), nil
	}
}

// Retire decides to accept only the current key.
func (k *Keys) Retire(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
	record, _, err := noiseRecordIn(w)
	if err != nil {
		return nil, err
	}
	if record.Previous == nil {
		return nil, errors.New("there is no previous Noise key to retire")
	}
	record.Retired = retired(record, record.Previous.Public)
	record.Previous, record.ByPrevious, record.RotatedAt = nil, nil, 0
	value, err := encoded(record)
	if err != nil {
		return nil, err
	}
	return w.SettingPutFor(mesh.SettingNoise, value, "api", false, now), nil
}

// retired adds a key to the retired ones of a record.
func retired(r mesh.NoiseKey, public key.MachinePublic) []key.MachinePublic {
	all := append([]key.MachinePublic{public}, r.Retired...)
	return all[:min(len(all), maxRetired)]
}

// Run applies rotations until ctx ends.
func (k *Keys) Run(ctx context.Context) error {
	for {
		at := k.config.Ledger.Cursor()
		k.follow(at.World())
		select {
		case <-at.More():
		case <-ctx.Done():
			return nil
		}
	}
}

// Reload applies the last commit now.
func (k *Keys) Reload() { k.follow(k.config.Ledger.World()) }

// Stored returns the number of the newest Noise key that this replica would have after a restart.
func (k *Keys) Stored() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stored
}

// Problems returns why this replica does not have the current keys, or would not after a restart.
func (k *Keys) Problems() (list []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, text := range []string{k.noiseProblem, k.secretsProblem} {
		if text != "" {
			list = append(list, text)
		}
	}
	return list
}

// follow applies the keys in a world.
func (k *Keys) follow(w *policy.World) {
	value := func(key string) string {
		v, ok := w.Settings.ByKey(key)
		if !ok {
			return ""
		}
		return v.Value
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if v := value(mesh.SettingNoise); v != k.noise {
		k.noise, k.noiseProblem = v, ""
		if err := k.followNoise(w); err != nil {
			k.noiseProblem = err.Error()
			k.config.Log.Error("cannot apply the rotation of the Noise key", "error", err)
		}
	}
	if v := value(mesh.SettingSecrets); v != k.ring && v != "" {
		k.ring, k.secretsProblem = v, ""
		r, _, err := openRing(v, wrappings(k.Noise.Current().Private, k.seal))
		if err != nil {
			k.secretsProblem = err.Error()
			k.config.Log.Error("cannot read the server's secrets", "error", err)
			return
		}
		k.Secrets.Replace(r.Secrets...)
	}
}

// followNoise finds the keys of the record, uses them and stores them in the key file.
func (k *Keys) followNoise(w *policy.World) error {
	record, ok, err := noiseRecordIn(w)
	if err != nil || !ok {
		return err
	}
	current, ok := k.find(record)
	if !ok {
		return fmt.Errorf("this replica cannot decrypt the server's new key %s: use the same noise.private_key_path or secrets_key_file as the other replicas, and restart it", record.Public)
	}
	keys := []identity.NoiseKey{{Number: record.Generation(), Private: current}}
	if p := record.Previous; p != nil {
		private, ok := k.findPrevious(*p, current)
		if !ok {
			return fmt.Errorf("this replica cannot decrypt the server's previous key %s: use the same secrets_key_file as the other replicas, and restart it", p.Public)
		}
		keys = append(keys, identity.NoiseKey{Number: record.Generation() - 1, Private: private})
	}
	if now := k.Noise.Current(); now.Number != keys[0].Number {
		k.config.Log.Info("Noise key rotated", "key", record.Public, "number", record.Generation())
	}
	k.Noise.Replace(keys...)
	if err := k.config.keep(current, k.seal); err != nil {
		return err
	}
	k.stored = record.Generation()
	return nil
}

// find returns the private key of a record.
func (k *Keys) find(record mesh.NoiseKey) (private key.MachinePrivate, ok bool) {
	for _, known := range k.Noise.All() {
		if known.Private.Public() == record.Public {
			return known.Private, true
		}
	}
	return k.config.afterRotation(record, k.Noise.Current().Private, k.seal)
}

func (k *Keys) findPrevious(p mesh.PreviousNoiseKey, current key.MachinePrivate) (private key.MachinePrivate, ok bool) {
	for _, known := range k.Noise.All() {
		if known.Private.Public() == p.Public {
			return known.Private, true
		}
	}
	if private, ok = unsealed(p.Public, k.seal, p.Sealed); ok {
		return private, true
	}
	return unsealed(p.Public, keyText(current), p.ByNext)
}

// afterRotation returns the key of a record for a replica that has another one, or none: from the database, or from the file
// with the key before a rotation that the database has lost.
func (c Config) afterRotation(record mesh.NoiseKey, own key.MachinePrivate, seal []byte) (private key.MachinePrivate, ok bool) {
	rotated := record.Previous != nil && record.Previous.Public == own.Public()
	for _, one := range record.Retired {
		rotated = rotated || one == own.Public()
	}
	if rotated {
		if private, ok = unsealed(record.Public, seal, record.Sealed); ok {
			return private, true
		}
		if private, ok = unsealed(record.Public, keyText(own), record.ByPrevious); ok {
			return private, true
		}
	}
	private, err := c.readNoise(c.NoisePath + previousSuffix)
	return private, err == nil && !private.IsZero() && private.Public() == record.Public
}

// keep stores the current key in the key file, unless it is only in the database.
func (c Config) keep(current key.MachinePrivate, seal []byte) error {
	if _, err := os.Lstat(c.NoisePath); errors.Is(err, fs.ErrNotExist) && seal != nil {
		return nil
	}
	return c.storeNoise(current)
}

// storeNoise replaces the key in the key file, and keeps the one before in another file.
func (c Config) storeNoise(private key.MachinePrivate) error {
	old, err := c.readNoise(c.NoisePath)
	if err != nil || old.Equal(private) {
		return err
	}
	if !old.IsZero() {
		err = writeFile(c.NoisePath+previousSuffix, keyText(old), os.Rename)
	}
	if err == nil {
		err = writeFile(c.NoisePath, keyText(private), os.Rename)
	}
	if err != nil {
		return fmt.Errorf("noise.private_key_path: %w: make the file and its directory writable for the user that runs the server, and restart it before you retire the previous key", err)
	}
	return nil
}
