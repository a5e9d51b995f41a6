// Package identity authenticates callers: it creates and checks keys and sealed login links. Its only state
// is the number of logged refusals, and it imports only mesh.
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
	KindSession Kind = "fls"
	KindRelay   Kind = "flr"
)

const (
	prefixLength = 12
	secretBytes  = 32 // 256 bits, so a slow hash would add nothing
	// maxKeyLength limits how much is hashed for a stranger.
	maxKeyLength = 256
	alphabet     = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
)

// Issued is a new key. Text is shown once and not stored.
type Issued struct {
	Text   string
	Prefix string
	Hash   mesh.Secret
}

// NewKey generates a key: kind, public prefix and secret, joined by underscores.
func NewKey(kind Kind) Issued {
	prefix := make([]byte, 0, prefixLength)
	for len(prefix) < prefixLength {
		var b [1]byte
		_, _ = rand.Read(b[:])                // never fails
		if int(b[0]) < 256/62*len(alphabet) { // so that all letters are equally likely
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

// Mask returns the form in which a key is shown after its creation.
func Mask(kind Kind, prefix string) string { return string(kind) + "_" + prefix + "_***" }

// split splits a key into its parts. It does the same work for any text.
func split(kind Kind, text string) (prefix string, secret mesh.Secret) {
	prefix, plain := parts(kind, text)
	return prefix, hash(plain)
}

// parts splits a key into its prefix and its secret. If the text has no form of a key, there is no prefix.
func parts(kind Kind, text string) (prefix, secret string) {
	if len(text) > maxKeyLength {
		text = ""
	}
	if parts := strings.SplitN(text, "_", 3); len(parts) == 3 && parts[0] == string(kind) {
		return parts[1], parts[2]
	}
	if prefix, secret, ok := importedParts(kind, text); ok {
		return prefix, secret
	}
	return "", text
}

// matches compares in constant time, even if there is no key to compare with.
func matches(kept *mesh.Secret, given mesh.Secret) bool {
	var none mesh.Secret
	known := kept != nil
	if !known {
		kept = &none
	}
	return subtle.ConstantTimeCompare(kept[:], given[:]) == 1 && known
}

// APIKey returns the key with this text, if it is valid at now or at the time of the newest entry, whichever
// is later: a key that has expired by the database's clock is expired, even if this machine's clock is
// behind. Unknown, wrong and expired keys take the same amount of work.
func APIKey(s *mesh.Snapshot, text string, now mesh.Time) (*mesh.APIKey, bool) {
	prefix, secret := split(KindAPI, text)
	k, found := s.APIKeys.ByPrefix(prefix)
	var kept *mesh.Secret
	if found {
		kept = &k.Hash
	}
	if !matches(kept, secret) || k.Expiry.Reached(max(now, s.At)) || suspended(s, k.User) {
		return nil, false
	}
	return k, true
}

// Session returns the session with this token, if it is valid, as APIKey does for keys.
func Session(s *mesh.Snapshot, token string, now mesh.Time) (*mesh.Session, bool) {
	prefix, secret := split(KindSession, token)
	v, found := s.Sessions.ByPrefix(prefix)
	var kept *mesh.Secret
	if found {
		kept = &v.Hash
	}
	if !matches(kept, secret) || v.Expiry.Reached(max(now, s.At)) || suspended(s, v.User) {
		return nil, false
	}
	return v, true
}

// Relay returns the relay with this key.
func Relay(s *mesh.Snapshot, text string) (*mesh.Relay, bool) {
	prefix, secret := split(KindRelay, text)
	r, found := s.Relays.ByPrefix(prefix)
	var kept *mesh.Secret
	if found {
		kept = &r.Hash
	}
	if !matches(kept, secret) {
		return nil, false
	}
	return r, true
}

// suspended reports whether a user is suspended. Whatever authenticates such a user is refused like something
// unknown.
func suspended(s *mesh.Snapshot, id mesh.UserID) bool {
	u, ok := s.Users.Get(id)
	return ok && u.Suspended()
}

// PreAuthKey returns the key with this text, valid or not.
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

// Ref identifies a key by number or by prefix.
type Ref struct {
	ID     mesh.KeyID
	Prefix string
}

// ParseRef parses a numeric id, a prefix, the masked text or a whole key. A prefix may look like a number;
// then both are returned.
func ParseRef(kind Kind, text string) Ref {
	if prefix, ok := importedPrefix(kind, text); ok {
		return Ref{Prefix: prefix}
	}
	text = strings.TrimPrefix(text, string(kind)+"_")
	prefix, masked := strings.CutSuffix(text, "_***")
	// Only an imported prefix contains underscores.
	if len(prefix) != prefixLength && (!masked || len(prefix) != formerAPIPrefix && len(prefix) != FirstAPIPrefix) {
		prefix, _, _ = strings.Cut(text, "_")
	}
	ref := Ref{Prefix: prefix}
	if n, err := strconv.ParseInt(prefix, 10, 64); err == nil && n > 0 && len(prefix) < prefixLength {
		ref.ID = mesh.KeyID(n)
	}
	return ref
}
