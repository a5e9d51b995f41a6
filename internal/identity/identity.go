// Package identity tells who is calling: it makes keys and sealed login links,
// reads them, and finds out whether one opens the door. It keeps nothing but how
// often it told the log of those it did not open for, and imports mesh alone.
package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Kind is the first part of a key.
type Kind string

// The kinds of key.
const (
	KindAPI     Kind = "flk"
	KindPreAuth Kind = "flp"
)

const (
	prefixLength = 12
	secretBytes  = 32 // 256 bits: a slow hash would buy nothing
	// maxKeyLength bounds what is hashed for a stranger.
	maxKeyLength = 256
	alphabet     = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
)

// Issued is a new key. Text is shown once and kept nowhere.
type Issued struct {
	Text   string
	Prefix string
	Hash   mesh.Secret
}

// NewKey draws a key: kind, public prefix and secret, joined by underscores.
func NewKey(kind Kind) Issued {
	prefix := make([]byte, 0, prefixLength)
	for len(prefix) < prefixLength {
		var b [1]byte
		_, _ = rand.Read(b[:])                // never fails
		if int(b[0]) < 256/62*len(alphabet) { // no letter is likelier than another
			prefix = append(prefix, alphabet[int(b[0])%len(alphabet)])
		}
	}
	var secret [secretBytes]byte
	_, _ = rand.Read(secret[:])
	text := base64.RawURLEncoding.EncodeToString(secret[:])
	return Issued{
		Text:   string(kind) + "_" + string(prefix) + "_" + text,
		Prefix: string(prefix),
		Hash:   hash(text),
	}
}

func hash(secret string) mesh.Secret { return sha256.Sum256([]byte(secret)) }

// Mask is how a key is shown after its creation.
func Mask(kind Kind, prefix string) string { return string(kind) + "_" + prefix + "_***" }

// split takes a key apart. Whatever the text, the work is the same.
func split(kind Kind, text string) (prefix string, secret mesh.Secret) {
	if len(text) > maxKeyLength {
		text = ""
	}
	parts := strings.SplitN(text, "_", 3)
	if len(parts) != 3 || parts[0] != string(kind) {
		return "", hash(text)
	}
	return parts[1], hash(parts[2])
}

// matches compares in constant time. No key at all is compared too.
func matches(kept *mesh.Secret, given mesh.Secret) bool {
	var none mesh.Secret
	known := kept != nil
	if !known {
		kept = &none
	}
	return subtle.ConstantTimeCompare(kept[:], given[:]) == 1 && known
}

// APIKey returns the key that text is, if it is valid at now or at the time of
// the newest entry, whichever is later: a key that was ended by the clock of the
// database is ended, even if the clock of this machine is behind. Unknown, wrong
// and expired keys take the same work.
func APIKey(s *mesh.Snapshot, text string, now mesh.Time) (*mesh.APIKey, bool) {
	prefix, secret := split(KindAPI, text)
	k, found := s.APIKeys.ByPrefix(prefix)
	var kept *mesh.Secret
	if found {
		kept = &k.Hash
	}
	if !matches(kept, secret) || k.Expiry.Reached(max(now, s.At)) {
		return nil, false
	}
	return k, true
}

// PreAuthKey returns the key that text is, valid or not.
func PreAuthKey(s *mesh.Snapshot, text string) (*mesh.PreAuthKey, bool) {
	prefix, secret := split(KindPreAuth, text)
	k, found := s.PreAuthKeys.ByPrefix(prefix)
	var kept *mesh.Secret
	if found {
		kept = &k.Hash
	}
	if !matches(kept, secret) {
		return nil, false
	}
	return k, true
}

// Ref is how people name a key: by number or by prefix.
type Ref struct {
	ID     mesh.KeyID
	Prefix string
}

// ParseRef reads a numeric id, a prefix, the masked text or a whole key. A
// prefix may look like a number, so both are returned then.
func ParseRef(kind Kind, text string) Ref {
	text = strings.TrimPrefix(text, string(kind)+"_")
	prefix, _, _ := strings.Cut(text, "_")
	ref := Ref{Prefix: prefix}
	if n, err := strconv.ParseInt(prefix, 10, 64); err == nil && n > 0 && len(prefix) < prefixLength {
		ref.ID = mesh.KeyID(n)
	}
	return ref
}
