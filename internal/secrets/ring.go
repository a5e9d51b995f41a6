package secrets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

const ringPurpose = "server secrets"

// ring holds the secrets of the server. It is stored encrypted in the database: with the key in secrets_key_file, or else
// with the Noise key, so that replicas need no further file. It is not derived from the Noise key: somebody who has only
// that key cannot compute it.
type ring struct {
	Secrets []identity.ServerSecret `json:"secrets"` // the current one is the last
}

// ringRecord is the value of mesh.SettingSecrets: the ring, encrypted with each of several keys.
type ringRecord struct {
	Seals []ringSeal `json:"seals"`
}

type ringSeal struct {
	// By is the public part of the Noise key that encrypts the ring, or bySecretsKey.
	By     string `json:"by"`
	Sealed []byte `json:"sealed"`
}

const bySecretsKey = "secrets_key_file"

// wrapping is a key that encrypts rings.
type wrapping struct {
	by  string
	key []byte
}

// wrappings returns the keys of this replica that encrypt the ring; the first one should. seal may be nil.
func wrappings(private key.MachinePrivate, seal []byte) (all []wrapping) {
	if seal != nil {
		all = append(all, wrapping{bySecretsKey, seal})
	}
	return append(all, wrapping{private.Public().String(), keyText(private)})
}

func keyText(private key.MachinePrivate) []byte {
	text, err := private.MarshalText()
	if err != nil {
		panic(err) // a key can always be encoded
	}
	return text
}

// sealed returns the value of mesh.SettingSecrets.
func (r ring) sealed(with ...wrapping) (string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	var record ringRecord
	for _, w := range with {
		record.Seals = append(record.Seals, ringSeal{w.by, identity.Seal(w.key, ringPurpose, text)})
	}
	value, err := json.Marshal(record)
	return string(value), err
}

// openRing decrypts a value of mesh.SettingSecrets with one of the keys, and returns which one that was.
func openRing(value string, keys []wrapping) (r ring, with wrapping, err error) {
	var record ringRecord
	if err := json.Unmarshal([]byte(value), &record); err != nil {
		return r, with, fmt.Errorf("cannot read the record of the server's secrets: restore the database from a backup: %w", err)
	}
	for _, k := range keys {
		for _, s := range record.Seals {
			if s.By != k.by {
				continue
			}
			text, ok := identity.Unseal(k.key, ringPurpose, s.Sealed)
			if ok && json.Unmarshal(text, &r) == nil && len(r.Secrets) > 0 {
				return r, k, nil
			}
		}
	}
	return r, with, lostKey{errors.New("the server's secrets in the database cannot be decrypted with the keys of this replica: " +
		"use the same noise.private_key_path and secrets_key_file as the other replicas, or the files that belong to this database")}
}

// newRing returns the value of mesh.SettingSecrets for a ring with a random secret.
func newRing(private key.MachinePrivate, seal []byte) (string, error) {
	return ring{[]identity.ServerSecret{identity.NewServerSecret(1)}}.sealed(wrappings(private, seal)[0])
}

// secrets returns the server's secrets. A database of an earlier version has none: there, keys were derived from the Noise
// key, which therefore becomes the first secret, so that webhook secrets and sealed tokens stay valid and replicas of both
// versions understand each other.
func (c Config) secrets(ctx context.Context, private key.MachinePrivate, seal []byte) (*identity.ServerSecrets, error) {
	keys := wrappings(private, seal)
	value, ok := c.ringValue()
	if !ok {
		first := ring{[]identity.ServerSecret{{Number: 1, Value: keyText(private)}}}
		if err := c.putRing(ctx, "", first, keys[0]); err != nil {
			return nil, err
		}
		value, _ = c.ringValue()
	}
	r, with, err := openRing(value, keys)
	var lost lostKey
	if errors.As(err, &lost) && c.GiveUpLost {
		c.Log.Warn("server secrets replaced: give every webhook receiver its new secret")
		r, with = ring{[]identity.ServerSecret{identity.NewServerSecret(1)}}, keys[0]
		err = c.putRing(ctx, value, r, with)
	}
	if err != nil {
		return nil, err
	}
	if with.by != keys[0].by { // the replica got a secrets_key_file; others may not have it yet
		if err := c.putRing(ctx, value, r, keys...); err != nil {
			return nil, err
		}
	}
	return identity.NewServerSecrets(r.Secrets...), nil
}

func (c Config) ringValue() (string, bool) {
	v, ok := c.Ledger.World().Settings.ByKey(mesh.SettingSecrets)
	if !ok {
		return "", false
	}
	return v.Value, true
}

// putRing stores a ring instead of the value old, unless another replica was faster.
func (c Config) putRing(ctx context.Context, old string, r ring, with ...wrapping) error {
	value, err := r.sealed(with...)
	if err != nil {
		return err
	}
	_, err = c.Ledger.Commit(ctx, mesh.Actor{Kind: mesh.ActorServer}, func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
		if v, ok := w.Settings.ByKey(mesh.SettingSecrets); ok && v.Value != old {
			return nil, nil
		}
		return w.SettingPutFor(mesh.SettingSecrets, value, "replica", false, now), nil
	})
	return err
}
