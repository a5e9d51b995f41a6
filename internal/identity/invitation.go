package identity

import (
	"crypto/rand"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// KindInvitation is the kind of a key that lets its holder create a passkey.
const KindInvitation Kind = "fli"

// A recovery code has recoveryLength characters of codeAlphabet, in groups of four so that people can copy it from paper. The
// first recoveryPrefix characters are public.
const (
	recoveryLength = 24
	recoveryPrefix = 8
	recoveryGroup  = 4
)

// NewRecoveryCode generates a recovery code. Its secret part has 80 bits.
func NewRecoveryCode() Issued {
	var random [recoveryLength]byte
	_, _ = rand.Read(random[:]) // never fails
	code := make([]byte, recoveryLength)
	for i, b := range random {
		code[i] = codeAlphabet[b%32]
	}
	var groups []string
	for i := 0; i < recoveryLength; i += recoveryGroup {
		groups = append(groups, string(code[i:i+recoveryGroup]))
	}
	return Issued{Text: strings.Join(groups, "-"), Prefix: string(code[:recoveryPrefix]), Hash: hash(string(code[recoveryPrefix:]))}
}

// Invitation returns the invitation with this text, or the recovery code, which may be typed in lower case and without
// hyphens. It is valid at now or at the time of the newest entry, whichever is later.
func Invitation(s *mesh.Snapshot, text string, now mesh.Time) (*mesh.Invitation, bool) {
	prefix, secret := split(KindInvitation, text)
	code := foldCode(text)
	recovery := len(code) == recoveryLength
	if recovery {
		prefix, secret = code[:recoveryPrefix], hash(code[recoveryPrefix:])
	}
	i, found := s.Invitations.ByPrefix(prefix)
	var kept *mesh.Secret
	if found && i.Recovery == recovery {
		kept = &i.Hash
	}
	if !matches(kept, secret) || !i.Recovery && i.Expiry.Reached(max(now, s.At)) {
		return nil, false
	}
	return i, true
}
