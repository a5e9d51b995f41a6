package identity

import (
	"regexp"
	"strings"

	"golang.org/x/crypto/bcrypt"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// The forms of keys that Headscale issued. Since 0.28 a key has a marker, a prefix and a secret, joined by
// hyphens, which the prefix and the secret may contain too. Before that, an API key had a shorter prefix and
// secret, joined by a dot; both were longer before 0.25 than from then on. A pre-auth key consisted of hexadecimal digits.
const (
	importedAPI     = "hskey-api-"
	importedPreAuth = "hskey-auth-"

	importedSecret                   = 64
	formerAPIPrefix, formerAPISecret = 7, 32
)

// FirstAPIPrefix is the length of the prefix of API keys that Headscale issued before 0.25.
const FirstAPIPrefix = 10

const firstAPISecret = 43

var formerPreAuth = regexp.MustCompile(`^[0-9a-f]{48}$`)

// maxBcryptCost is the greatest cost of a hash that is computed for a stranger. Headscale uses 10.
const maxBcryptCost = 12

// importedParts splits a key that Headscale issued. Of a former pre-auth key, which has no prefix, the first
// characters count as its prefix.
func importedParts(kind Kind, text string) (prefix, secret string, ok bool) {
	switch {
	case kind != KindAPI && kind != KindPreAuth:
	case len(text) == len(marker(kind))+prefixLength+1+importedSecret && strings.HasPrefix(text, marker(kind)):
		text = text[len(marker(kind)):]
		return text[:prefixLength], text[prefixLength+1:], text[prefixLength] == '-'
	case kind == KindAPI && len(text) == formerAPIPrefix+1+formerAPISecret:
		return text[:formerAPIPrefix], text[formerAPIPrefix+1:], text[formerAPIPrefix] == '.'
	case kind == KindAPI && len(text) == FirstAPIPrefix+1+firstAPISecret:
		return text[:FirstAPIPrefix], text[FirstAPIPrefix+1:], text[FirstAPIPrefix] == '.'
	case kind == KindPreAuth && formerPreAuth.MatchString(text):
		return text[:prefixLength], text[prefixLength:], true
	}
	return "", "", false
}

func marker(kind Kind) string {
	if kind == KindAPI {
		return importedAPI
	}
	return importedPreAuth
}

// importedPrefix returns the prefix of a whole or masked key that Headscale issued.
func importedPrefix(kind Kind, text string) (string, bool) {
	if prefix, _, ok := importedParts(kind, text); ok {
		return prefix, true
	}
	rest, ok := strings.CutPrefix(text, marker(kind))
	if !ok || kind != KindAPI && kind != KindPreAuth || len(rest) < prefixLength {
		return "", false
	}
	return rest[:prefixLength], true
}

// FormerPreAuthKey returns what is stored of a pre-auth key that Headscale kept as plain text, or false if the
// text has another form.
func FormerPreAuthKey(text string) (Issued, bool) {
	if !formerPreAuth.MatchString(text) {
		return Issued{}, false
	}
	return Issued{Prefix: text[:prefixLength], Hash: hash(text[prefixLength:])}, true
}

// UsableBcrypt reports whether a hash can be used to verify imported keys.
func UsableBcrypt(hash mesh.Bcrypt) bool {
	cost, err := bcrypt.Cost([]byte(hash))
	return err == nil && cost <= maxBcryptCost
}

// Unverified is an imported key of which only a bcrypt hash is known, and the secret that a caller gave.
type Unverified struct {
	Bcrypt mesh.Bcrypt
	secret string
}

// UnverifiedAPIKey returns the key with the prefix of this text, if only Verify can tell whether the text is
// right. The key is valid otherwise, as for APIKey.
func UnverifiedAPIKey(s *mesh.Snapshot, text string, now mesh.Time) (*mesh.APIKey, Unverified, bool) {
	prefix, secret := parts(KindAPI, text)
	k, ok := s.APIKeys.ByPrefix(prefix)
	if !ok || !unused(k.Bcrypt, k.Hash) || k.Expiry.Reached(max(now, s.At)) || suspended(s, k.User) {
		return nil, Unverified{}, false
	}
	return k, Unverified{k.Bcrypt, secret}, true
}

// UnverifiedPreAuthKey returns the key with the prefix of this text, valid or not, if only Verify can tell
// whether the text is right.
func UnverifiedPreAuthKey(s *mesh.Snapshot, text string) (*mesh.PreAuthKey, Unverified, bool) {
	prefix, secret := parts(KindPreAuth, text)
	k, ok := s.PreAuthKeys.ByPrefix(prefix)
	if !ok || !unused(k.Bcrypt, k.Hash) {
		return nil, Unverified{}, false
	}
	return k, Unverified{k.Bcrypt, secret}, true
}

// unused reports whether only the slow hash of a key is known. A key that was used may have both.
func unused(slow mesh.Bcrypt, fast mesh.Secret) bool { return slow != "" && fast == mesh.Secret{} }

// Verify computes the slow hash and returns the fast one, with which the key is verified from now on. It takes tens of milliseconds of
// one core, so callers must limit how often strangers cause it.
func (u Unverified) Verify() (mesh.Secret, bool) {
	if !UsableBcrypt(u.Bcrypt) || bcrypt.CompareHashAndPassword([]byte(u.Bcrypt), []byte(u.secret)) != nil {
		return mesh.Secret{}, false
	}
	return hash(u.secret), true
}
