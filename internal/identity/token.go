package identity

import (
	"encoding/base64"
	"math"
)

// TokenSealer seals tokens of others that the server has to store. Every replica can open them, and the database alone is
// not enough.
type TokenSealer struct{ secrets *ServerSecrets }

// NewTokenSealer returns a sealer whose keys are derived from the server's secrets.
func NewTokenSealer(s *ServerSecrets) *TokenSealer { return &TokenSealer{s} }

// SealToken seals a token. Only OpenToken with the same owner can open it.
func (s *TokenSealer) SealToken(owner, token string) string {
	return base64.RawURLEncoding.EncodeToString(Seal(s.secrets.current().Value, "token of "+owner, []byte(token)))
}

// OpenToken opens a sealed token. It returns false for anything that SealToken did not return for this owner.
func (s *TokenSealer) OpenToken(owner, sealed string) (string, bool) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil {
		return "", false
	}
	for _, secret := range s.secrets.newest(math.MaxInt) { // the token may be older than the current secret
		if plain, ok := Unseal(secret.Value, "token of "+owner, data); ok {
			return string(plain), true
		}
	}
	return "", false
}
