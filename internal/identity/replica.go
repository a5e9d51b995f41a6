package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"tailscale.com/types/key"
)

// ReplicaKey lets replicas authenticate to each other. It is derived from the
// server's Noise key, which only they have.
type ReplicaKey struct{ key []byte }

// NewReplicaKey derives the replica key from the server's key.
func NewReplicaKey(service key.MachinePrivate) *ReplicaKey {
	return &ReplicaKey{derive(keyText(service), nil, "replicas")}
}

// Sign returns a proof that a replica sent these words. The first should be the
// purpose of the proof.
func (k *ReplicaKey) Sign(words ...string) string {
	return base64.RawURLEncoding.EncodeToString(k.mac(words))
}

// Signed reports whether proof is valid for these words.
func (k *ReplicaKey) Signed(proof string, words ...string) bool {
	given, err := base64.RawURLEncoding.DecodeString(proof)
	return err == nil && hmac.Equal(given, k.mac(words))
}

// mac returns the MAC of words, which also covers the boundaries between them.
func (k *ReplicaKey) mac(words []string) []byte {
	h := hmac.New(sha256.New, k.key)
	for _, w := range words {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(w))))
		h.Write([]byte(w))
	}
	return h.Sum(nil)
}
