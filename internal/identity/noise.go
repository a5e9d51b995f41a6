package identity

import (
	"sync/atomic"

	"tailscale.com/types/key"
)

// NoiseKey is a private key by which clients recognize the server.
type NoiseKey struct {
	// Number identifies the key: the first has number 1, and each rotation adds the next.
	Number  int
	Private key.MachinePrivate
}

// NoiseKeys are the keys that the server accepts: the current one, and the one before while a rotation is in progress. It is
// safe for concurrent use.
type NoiseKeys struct {
	all atomic.Pointer[[]NoiseKey] // never empty; the current one is the first
}

// NewNoiseKeys returns keys of which the first is the current one. There must be at least one.
func NewNoiseKeys(all ...NoiseKey) *NoiseKeys {
	k := &NoiseKeys{}
	k.Replace(all...)
	return k
}

// Replace replaces all keys. The first is the current one.
func (k *NoiseKeys) Replace(all ...NoiseKey) {
	if len(all) == 0 {
		panic("no keys")
	}
	k.all.Store(&all)
}

// Current returns the key that new clients learn.
func (k *NoiseKeys) Current() NoiseKey { return k.All()[0] }

// All returns the keys, the current one first. The caller must not change the list.
func (k *NoiseKeys) All() []NoiseKey { return *k.all.Load() }
