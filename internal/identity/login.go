package identity

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strings"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

const (
	loginPurpose = "login link"
	// LoginLifetime is how long a login link is valid.
	LoginLifetime = time.Hour
	// maxToken limits how much is decoded for a stranger.
	maxToken = 1024
	// maxLoginText limits the length of each text about a device in a link, in bytes.
	maxLoginText = 64
	// codeAlphabet has no letter that could be mistaken for another or for a digit.
	codeAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	codeLength   = 8
	// longCodeLength is the only length of code that Headplane accepts.
	longCodeLength = 24
)

// Login is the content of a login link: the device that asked to join, and when. Possession of the link
// proves only that the server created it.
type Login struct {
	MachineKey key.MachinePublic `json:"m"`
	NodeKey    key.NodePublic    `json:"n"`
	Hostname   string            `json:"h,omitempty"`
	OS         string            `json:"o,omitempty"`
	IssuedAt   mesh.Time         `json:"t"`
}

// Expired reports whether the link has expired.
func (l Login) Expired(now mesh.Time) bool { return l.IssuedAt.Add(LoginLifetime) <= now }

// LoginSealer creates and opens login links. Every replica has the same key and can open all links, so
// nothing is stored for strangers.
type LoginSealer struct{ secrets *ServerSecrets }

// NewLoginSealer returns a sealer whose key is derived from the current secret of the server.
func NewLoginSealer(s *ServerSecrets) *LoginSealer { return &LoginSealer{s} }

// SealLogin returns the token for a link.
func (s *LoginSealer) SealLogin(l Login) string {
	l.Hostname, l.OS = shorten(l.Hostname), shorten(l.OS)
	plain, err := json.Marshal(l)
	if err != nil {
		panic(err) // keys and texts can always be encoded
	}
	return base64.RawURLEncoding.EncodeToString(Seal(s.secrets.current().Value, loginPurpose, plain))
}

// OpenLogin opens a token, or a link that ends in one. It returns false for anything else. The caller must
// check whether the login has expired.
func (s *LoginSealer) OpenLogin(link string) (Login, bool) {
	token := LoginToken(link)
	if len(token) > maxToken {
		return Login{}, false
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil {
		return Login{}, false
	}
	plain, ok := Unseal(s.secrets.current().Value, loginPurpose, sealed)
	if !ok {
		return Login{}, false
	}
	var l Login
	if err := json.Unmarshal(plain, &l); err != nil {
		return Login{}, false
	}
	return l, true
}

// LoginToken returns the last part of a link.
func LoginToken(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }

// LoginCode returns a short code that a person can read out instead of a link: ABCD-EFGH.
func LoginCode(link string) string { return Code(LoginToken(link)) }

// LongLoginCode returns the code for tools that require a longer one. It starts with the characters of
// LoginCode, followed by 80 more bits.
func LongLoginCode(link string) string {
	token := LoginToken(link)
	sum := sha256.Sum256([]byte(token))
	more := base32.NewEncoding(codeAlphabet).WithPadding(base32.NoPadding).EncodeToString(sum[8:18])
	return strings.ReplaceAll(Code(token), "-", "") + more
}

// Code returns a short code for a text, which people can read out: ABCD-EFGH.
func Code(text string) string {
	sum := sha256.Sum256([]byte(text))
	bits := binary.BigEndian.Uint64(sum[:])
	code := make([]byte, 0, codeLength+1)
	for i := range codeLength {
		if i == codeLength/2 {
			code = append(code, '-')
		}
		code = append(code, codeAlphabet[bits>>(5*i)&31])
	}
	return string(code)
}

// FoldLoginCode returns the form in which codes are compared, or "" if text is not a code. Case and hyphens
// are ignored, and letters that look like digits are replaced by them.
func FoldLoginCode(text string) string {
	if text = foldCode(text); len(text) != codeLength {
		return ""
	}
	return text[:codeLength/2] + "-" + text[codeLength/2:]
}

// FoldLongLoginCode is FoldLoginCode for long codes. It also returns the short code at its start.
func FoldLongLoginCode(text string) (long, code string) {
	if long = foldCode(text); len(long) != longCodeLength {
		return "", ""
	}
	return long, FoldLoginCode(long[:codeLength])
}

func foldCode(text string) string {
	if len(text) > maxToken {
		return ""
	}
	text = strings.ReplaceAll(strings.ToUpper(strings.TrimSpace(text)), "-", "")
	text = strings.NewReplacer("O", "0", "I", "1", "L", "1").Replace(text)
	if strings.Trim(text, codeAlphabet) != "" {
		return ""
	}
	return text
}

// shorten truncates a text to at most maxLoginText bytes, at a character boundary.
func shorten(text string) string {
	if len(text) <= maxLoginText {
		return text
	}
	return strings.ToValidUTF8(text[:maxLoginText], "")
}
