package identity

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
)

// maxCookie limits the size of a cookie. A browser sends all its cookies in one line, of which many proxies accept
// 8 KiB.
const maxCookie = 2400

// CookieSealer seals what a browser keeps for the server. Every replica can open it, and the browser cannot
// read or change it.
type CookieSealer struct{ secrets *ServerSecrets }

// NewCookieSealer returns a sealer whose key is derived from the current secret of the server.
func NewCookieSealer(s *ServerSecrets) *CookieSealer { return &CookieSealer{s} }

// SealCookie returns the value of a cookie, which only OpenCookie with the same purpose can open. It returns
// false if v is too large for a cookie.
func (s *CookieSealer) SealCookie(purpose string, v any) (string, bool) {
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false) // shorter
	if err := encoder.Encode(v); err != nil {
		return "", false
	}
	text := base64.RawURLEncoding.EncodeToString(Seal(s.secrets.current().Value, "cookie "+purpose, plain.Bytes()))
	return text, len(text) <= maxCookie
}

// OpenCookie opens the value of a cookie into v. It returns false for anything that SealCookie did not return.
// The caller must check whether the content has expired.
func (s *CookieSealer) OpenCookie(purpose, text string, v any) bool {
	if len(text) > maxCookie {
		return false
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return false
	}
	plain, ok := Unseal(s.secrets.current().Value, "cookie "+purpose, sealed)
	return ok && json.Unmarshal(plain, v) == nil
}
