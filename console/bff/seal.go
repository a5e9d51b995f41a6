package bff

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
)

// sealVersion is authenticated with every sealed text. Change it when the format of the content changes.
const sealVersion = "/v1"

var errNotOurs = errors.New("not sealed by this console")

// seals encrypts and authenticates texts that a browser stores for the console and can neither read nor
// change. The keys are derived from the cookie secret, each with its own label.
type seals struct {
	aead cipher.AEAD
	csrf []byte
}

func newSeals(secret string) (*seals, error) {
	derive := func(label string) ([]byte, error) {
		return hkdf.Key(sha256.New, []byte(secret), nil, "fairlead console "+label+sealVersion, sha256.Size)
	}
	cookie, err := derive("cookie")
	if err != nil {
		return nil, err
	}
	csrf, err := derive("csrf")
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(cookie)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &seals{aead, csrf}, err
}

// seal encrypts a value for a purpose, such as the name of the cookie that will hold it. The result cannot be
// opened for another purpose.
func (s *seals) seal(purpose string, v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, []byte(purpose+sealVersion))), nil
}

func (s *seals) open(purpose, text string, v any) error {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return errNotOurs
	}
	plain, err := s.aead.Open(nil, nil, sealed, []byte(purpose+sealVersion))
	if err != nil {
		return errNotOurs
	}
	return json.Unmarshal(plain, v)
}

// csrfToken returns the token that the pages of a session must send with each change.
func (s *seals) csrfToken(sessionID string) string {
	mac := hmac.New(sha256.New, s.csrf)
	mac.Write([]byte(sessionID))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (s *seals) isCSRFToken(sessionID, token string) bool {
	return hmac.Equal([]byte(s.csrfToken(sessionID)), []byte(token))
}
