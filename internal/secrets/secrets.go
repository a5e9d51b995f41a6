// Package secrets finds or creates the server's Noise key, by which clients recognize it, and the secrets from which other
// keys are derived. They are the same on every replica. The Noise key is in a file or encrypted in the database. The
// secrets are always encrypted in the database.
package secrets

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Config configures where the Noise key is stored.
type Config struct {
	Ledger *ledger.Ledger // must be running
	Log    *slog.Logger
	// KeyFile contains the key that encrypts secrets in the database. Without it the file
	// at NoisePath contains the Noise key itself, and the database only its public part.
	KeyFile   string
	NoisePath string
	// GiveUpLost creates a new key if the one that clients know is lost, instead of
	// failing. Every client must then be restarted.
	GiveUpLost bool
}

// lostKey means that the server would start without the key that clients know.
type lostKey struct{ error }

const (
	noisePurpose = "noise key"
	secretBytes  = 32
)

// Open returns the keys of the server. The first replica creates them. Unless GiveUpLost is set, an existing Noise key is
// never replaced: running clients would not reach the server again until they are restarted.
func Open(ctx context.Context, c Config) (*Keys, error) {
	seal, err := sealingKey(c.KeyFile)
	if err != nil {
		return nil, err
	}
	if err := c.Ledger.Sync(ctx); err != nil {
		return nil, err
	}
	private, err := c.noiseKey(ctx, seal)
	if err != nil {
		return nil, err
	}
	k := &Keys{Noise: identity.NewNoiseKeys(identity.NoiseKey{Number: mesh.NoiseKeyOf(c.Ledger.World().Snapshot).Generation(), Private: private}), config: c, seal: seal}
	if k.Secrets, err = c.secrets(ctx, private, seal); err != nil {
		return nil, err
	}
	k.follow(c.Ledger.World())
	return k, nil
}

func (c Config) noiseKey(ctx context.Context, seal []byte) (key.MachinePrivate, error) {
	private, err := c.knownKey(ctx, seal)
	var lost lostKey
	switch {
	case errors.As(err, &lost) && c.GiveUpLost:
		return c.newKey(ctx, seal)
	case errors.As(err, &lost):
		return private, fmt.Errorf("%w; if it is lost for good, start once with --new-key", err)
	case err == nil && c.GiveUpLost:
		c.Log.Warn("--new-key ignored: the server still has its key")
	}
	return private, err
}

func (c Config) knownKey(ctx context.Context, seal []byte) (key.MachinePrivate, error) {
	var none key.MachinePrivate
	record, recorded, err := noiseRecordIn(c.Ledger.World())
	if err != nil {
		return none, err
	}
	private, err := c.readNoise(c.NoisePath)
	var unreadable *fs.PathError
	made := false
	if recorded && err == nil && !private.IsZero() && private.Public() != record.Public {
		if found, ok := c.afterRotation(record, private, seal); ok {
			if err := c.storeNoise(found); err != nil {
				c.Log.Warn("cannot update the Noise key", "error", err)
			}
			private = found
		}
	}
	switch {
	case errors.Is(err, errCutShort) && !recorded: // no client has seen the key that the file should have contained
		c.Log.Warn("the file at noise.private_key_path is truncated; creating a new key, because no client has used one yet", "path", c.NoisePath)
		if err := os.Remove(c.NoisePath); err != nil {
			return none, fmt.Errorf("noise.private_key_path: %w", err)
		}
		private, made = key.NewMachine(), true
	case errors.As(err, &unreadable), err != nil && !recorded:
		return none, err
	case err != nil:
		return none, lostKey{err}
	case !private.IsZero(): // compared with the recorded key below
	case recorded && (len(record.Sealed) == 0 || seal == nil):
		return none, c.errMissing(record)
	case recorded:
		return c.open(record, seal)
	default:
		private, made = key.NewMachine(), true
	}
	if made && seal == nil {
		if err := os.MkdirAll(filepath.Dir(c.NoisePath), 0o750); err != nil {
			return none, fmt.Errorf("noise.private_key_path: %w", err)
		}
		if err := writeNoise(c.NoisePath, private); err != nil {
			return none, err
		}
	}
	return c.record(ctx, private, seal, made)
}

// record commits the key: encrypted, or only its public part. The first secrets are created
// in the same commit. If another replica was faster, its key is used.
func (c Config) record(ctx context.Context, private key.MachinePrivate, seal []byte, made bool) (key.MachinePrivate, error) {
	value, err := encoded(sealedRecord(private, seal))
	if err != nil {
		return private, err
	}
	fresh, err := newRing(private, seal)
	if err != nil {
		return private, err
	}
	_, err = c.Ledger.Commit(ctx, mesh.Actor{Kind: mesh.ActorServer}, func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
		kept, recorded, err := noiseRecordIn(w)
		switch {
		case err != nil:
			return nil, err
		case !recorded:
			return firstSettings(w, now, value, fresh), nil
		case kept.Public != private.Public() || seal == nil || len(kept.Sealed) > 0:
			return nil, nil
		}
		return w.SettingPutFor(mesh.SettingNoise, value, "replica", false, now), nil
	})
	if err != nil {
		return private, err
	}
	kept, _, err := noiseRecordIn(c.Ledger.World())
	switch {
	case err != nil:
		return private, err
	case kept.Public == private.Public() && seal != nil:
		return c.open(kept, seal) // fails now, rather than when this replica runs alone, if the key files of the replicas differ
	case kept.Public == private.Public():
		return private, nil
	case made && seal != nil:
		return c.open(kept, seal)
	case made:
		_ = os.Remove(c.NoisePath) // no client has seen it
		return private, c.errMissing(kept)
	}
	if slices.Contains(kept.Retired, private.Public()) {
		return private, lostKey{fmt.Errorf("noise.private_key_path %s contains a key that was retired: copy the file with the server's key %s from another replica", c.NoisePath, kept.Public)}
	}
	return private, lostKey{fmt.Errorf("noise.private_key_path %s does not contain the server's key %s: "+
		"restore the right file from a backup or another replica; running clients do not accept another key", c.NoisePath, kept.Public)}
}

// newKey replaces the key that clients know. An existing file is renamed, not deleted: it
// may be the right one for another database.
func (c Config) newKey(ctx context.Context, seal []byte) (key.MachinePrivate, error) {
	private := key.NewMachine()
	record := sealedRecord(private, seal)
	if old := mesh.NoiseKeyOf(c.Ledger.World().Snapshot); !old.Public.IsZero() {
		record.Number, record.Retired = old.Generation()+1, retired(old, old.Public)
	}
	value, err := encoded(record)
	if err != nil {
		return private, err
	}
	fresh, err := newRing(private, seal) // the old secrets were encrypted with the key that is lost
	if err != nil {
		return private, err
	}
	if err = os.Link(c.NoisePath, c.NoisePath+".given-up"); err == nil {
		err = os.Remove(c.NoisePath)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return private, fmt.Errorf("noise.private_key_path: %w", err)
	}
	if seal == nil {
		if err := os.MkdirAll(filepath.Dir(c.NoisePath), 0o750); err != nil {
			return private, fmt.Errorf("noise.private_key_path: %w", err)
		}
		if err := writeNoise(c.NoisePath, private); err != nil {
			return private, err
		}
	}
	_, err = c.Ledger.Commit(ctx, mesh.Actor{Kind: mesh.ActorServer}, func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
		return firstSettings(w, now, value, fresh), nil
	})
	if err != nil {
		return private, err
	}
	c.Log.Warn("server key replaced: restart every client, and give every webhook receiver its new secret", "key", private.Public())
	return private, nil
}

// firstSettings returns the events that store a Noise key and secrets.
func firstSettings(w *policy.World, now mesh.Time, noise, secrets string) (evs []mesh.Event) {
	next := w.Counters.Setting
	for _, s := range []struct{ key, value string }{{mesh.SettingNoise, noise}, {mesh.SettingSecrets, secrets}} {
		if _, ok := w.Settings.ByKey(s.key); ok {
			evs = append(evs, w.SettingPutFor(s.key, s.value, "replica", false, now)...)
			continue
		}
		next++
		evs = append(evs, mesh.SettingPut{Setting: &mesh.Setting{ID: next, Key: s.key, Value: s.value, Source: "replica", UpdatedAt: now}})
	}
	return evs
}

func (c Config) errMissing(r mesh.NoiseKey) error {
	if len(r.Sealed) > 0 {
		return lostKey{fmt.Errorf("the server's key %s is encrypted in the database: set secrets_key_file to the file that the other replicas use", r.Public)}
	}
	return lostKey{fmt.Errorf("noise.private_key_path %s does not exist, but clients already use the server's key %s: "+
		"restore the file from a backup or another replica; running clients do not accept another key", c.NoisePath, r.Public)}
}

// open decrypts the key from the database.
func (c Config) open(r mesh.NoiseKey, seal []byte) (key.MachinePrivate, error) {
	private, ok := unsealed(r.Public, seal, r.Sealed)
	if !ok {
		return private, lostKey{fmt.Errorf("secrets_key_file %s cannot decrypt the server's key %s: use the same file as the other replicas", c.KeyFile, r.Public)}
	}
	return private, nil
}

func noiseRecordIn(w *policy.World) (r mesh.NoiseKey, ok bool, err error) {
	v, ok := w.Settings.ByKey(mesh.SettingNoise)
	if !ok {
		return r, false, nil
	}
	if err := json.Unmarshal([]byte(v.Value), &r); err != nil {
		return r, false, fmt.Errorf("cannot read the record of the server's key: restore the database from a backup: %w", err)
	}
	return r, true, nil
}

// sealedRecord returns the record of a key: encrypted, or only its public part.
func sealedRecord(private key.MachinePrivate, seal []byte) mesh.NoiseKey {
	r := mesh.NoiseKey{Public: private.Public()}
	if seal != nil {
		r.Sealed = sealed(private, seal)
	}
	return r
}

func sealed(private key.MachinePrivate, with []byte) []byte {
	return identity.Seal(with, noisePurpose, keyText(private))
}

// unsealed decrypts a private key, if it belongs to the public one.
func unsealed(public key.MachinePublic, with, box []byte) (private key.MachinePrivate, ok bool) {
	if with == nil || len(box) == 0 {
		return private, false
	}
	plain, ok := identity.Unseal(with, noisePurpose, box)
	ok = ok && private.UnmarshalText(plain) == nil && private.Public() == public
	return private, ok
}

func encoded(r mesh.NoiseKey) (string, error) {
	value, err := json.Marshal(r)
	return string(value), err
}

// sealingKey reads the key in secrets_key_file, or returns nil if that is not set. It never
// creates a key: all replicas need the same one, and it has to be backed up.
func sealingKey(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	const remedy = "create one with: umask 077; openssl rand -hex 32 > FILE, and copy it to every replica"
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("secrets_key_file: %w: %s", err, remedy)
	}
	trimmed := strings.TrimSpace(string(text))
	if k, err := hex.DecodeString(trimmed); err == nil && len(k) == secretBytes {
		return k, nil
	}
	if k, err := base64.StdEncoding.DecodeString(trimmed); err == nil && len(k) == secretBytes {
		return k, nil
	}
	return nil, fmt.Errorf("secrets_key_file %s does not contain %d bytes as hexadecimal digits or base64: %s", path, secretBytes, remedy)
}

// errCutShort means that a file ends before its key does, as after a power failure during
// writing.
var errCutShort = errors.New("the file is truncated")

// readNoise reads a key file. It returns the zero key if there is none.
func (c Config) readNoise(path string) (private key.MachinePrivate, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return private, nil
	}
	if err != nil {
		return private, fmt.Errorf("noise.private_key_path: %w", err)
	}
	trimmed := strings.TrimSpace(string(text))
	if err := private.UnmarshalText([]byte(trimmed)); err != nil || private.IsZero() {
		err := fmt.Errorf("noise.private_key_path %s does not contain a key (privkey: followed by 64 hexadecimal digits): restore the right file from a backup or another replica", path)
		if cutShort(trimmed) {
			err = fmt.Errorf("%w: %w", err, errCutShort)
		}
		return key.MachinePrivate{}, err
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		c.Log.Warn("the private key is readable by other users; fix it with: chmod 600", "path", path)
	}
	return private, nil
}

// cutShort reports whether text is the beginning of a key.
func cutShort(text string) bool {
	const prefix = "privkey:"
	digits, whole := strings.CutPrefix(text, prefix)
	if !whole {
		return strings.HasPrefix(prefix, text)
	}
	return len(digits) < 2*secretBytes && strings.Trim(digits, "0123456789abcdef") == ""
}

func writeNoise(path string, private key.MachinePrivate) error {
	text, err := private.MarshalText()
	if err == nil {
		err = CreateFile(path, text)
	}
	if err != nil {
		return fmt.Errorf("noise.private_key_path: %w: make the directory writable for the user that runs the server, or set noise.private_key_path to another path", err)
	}
	return nil
}

// CreateFile creates a file with a key atomically, even if the power fails. It never replaces an
// existing file, which another replica may have just created. The file system must support
// hard links.
func CreateFile(path string, text []byte) error { return writeFile(path, text, os.Link) }

// writeFile writes a file atomically: place gives the complete file its name.
func writeFile(path string, text []byte, place func(from, to string) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".noise-*") // readable only by its owner
	if err == nil {
		defer os.Remove(f.Name())
		_, err = f.Write(append(text, '\n'))
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err == nil {
		err = place(f.Name(), path)
	}
	if err == nil {
		err = syncDir(dir)
	}
	return err
}

// syncDir flushes the entries of a directory to disk.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
