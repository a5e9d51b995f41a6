package identity

import (
	"encoding/base64"

	"tailscale.com/types/key"
)

// TokenSealer seals tokens of others that the server has to store. Every replica can open them, and the database alone is
// not enough.
type TokenSealer struct{ secret []byte }

// NewTokenSealer returns a sealer whose key is derived from the server's own.
func NewTokenSealer(service key.MachinePrivate) *TokenSealer { return &TokenSealer{keyText(service)} }

// SealToken seals a token. Only OpenToken with the same owner can open it.
func (s *TokenSealer) SealToken(owner, token string) string {
	return base64.RawURLEncoding.EncodeToString(Seal(s.secret, "token of "+owner, []byte(token)))
}

// OpenToken opens a sealed token. It returns false for anything that SealToken did not return for this owner.
func (s *TokenSealer) OpenToken(owner, sealed string) (string, bool) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil {
		return "", false
	}
	plain, ok := Unseal(s.secret, "token of "+owner, data)
	return string(plain), ok
}
