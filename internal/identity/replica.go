package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// replicaKeys is how many secrets authenticate replicas: the current one and the one before, because a replica without the
// database does not learn of a rotation.
const replicaKeys = 2

// ReplicaKey lets replicas authenticate to each other. It is derived from the server's secrets, which only they have.
type ReplicaKey struct{ secrets *ServerSecrets }

// NewReplicaKey returns the key of all replicas with these secrets.
func NewReplicaKey(s *ServerSecrets) *ReplicaKey { return &ReplicaKey{s} }

// Sign returns a proof that a replica sent these words. The first should be the
// purpose of the proof.
func (k *ReplicaKey) Sign(words ...string) string {
	var proofs []string
	for _, mac := range k.macs(words) {
		proofs = append(proofs, base64.RawURLEncoding.EncodeToString(mac))
	}
	return strings.Join(proofs, ",")
}

// Signed reports whether proof is valid for these words.
func (k *ReplicaKey) Signed(proof string, words ...string) bool {
	own, valid := k.macs(words), false
	for _, part := range strings.SplitN(proof, ",", replicaKeys) {
		given, err := base64.RawURLEncoding.DecodeString(part)
		for _, mac := range own {
			valid = err == nil && hmac.Equal(given, mac) || valid
		}
	}
	return valid
}

// macs returns the MACs of words, one for each secret. They also cover the boundaries between the words.
func (k *ReplicaKey) macs(words []string) (macs [][]byte) {
	for _, s := range k.secrets.newest(replicaKeys) {
		h := hmac.New(sha256.New, derive(s.Value, nil, "replicas"))
		for _, w := range words {
			h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(w))))
			h.Write([]byte(w))
		}
		macs = append(macs, h.Sum(nil))
	}
	return macs
}
