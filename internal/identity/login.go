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
	// LoginLifetime is how long a link can be answered.
	LoginLifetime = time.Hour
	// maxToken bounds what is decoded for a stranger.
	maxToken = 1024
	// maxLoginText bounds what a link tells of a device.
	maxLoginText = 64
	// codeAlphabet has no letter that is taken for another, or for a digit.
	codeAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	codeLength   = 8
	// longCodeLength is what Headplane asks for: it takes no code of another length.
	longCodeLength = 24
)

// Login is what a login link holds: the device that asked to join, and when.
// Whoever shows the link proves only that the service made it.
type Login struct {
	MachineKey key.MachinePublic `json:"m"`
	NodeKey    key.NodePublic    `json:"n"`
	Hostname   string            `json:"h,omitempty"`
	OS         string            `json:"o,omitempty"`
	IssuedAt   mesh.Time         `json:"t"`
}

// Expired reports whether it is too late to answer.
func (l Login) Expired(now mesh.Time) bool { return l.IssuedAt.Add(LoginLifetime) <= now }

// LoginSealer makes login links and opens them. Every replica with the same key
// opens the links of all, so nothing is kept for a stranger.
type LoginSealer struct{ secret []byte }

// NewLoginSealer returns a sealer whose key follows from the service's own.
func NewLoginSealer(service key.MachinePrivate) *LoginSealer {
	return &LoginSealer{keyText(service)}
}

// SealLogin returns the token for a link.
func (s *LoginSealer) SealLogin(l Login) string {
	l.Hostname, l.OS = shorten(l.Hostname), shorten(l.OS)
	plain, err := json.Marshal(l)
	if err != nil {
		panic(err) // keys and texts can always be encoded
	}
	return base64.RawURLEncoding.EncodeToString(Seal(s.secret, loginPurpose, plain))
}

// OpenLogin opens a token, a link that ends in one, or neither. Whether it has
// expired is for the caller to judge.
func (s *LoginSealer) OpenLogin(link string) (Login, bool) {
	token := LoginToken(link)
	if len(token) > maxToken {
		return Login{}, false
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil {
		return Login{}, false
	}
	plain, ok := Unseal(s.secret, loginPurpose, sealed)
	if !ok {
		return Login{}, false
	}
	var l Login
	if err := json.Unmarshal(plain, &l); err != nil {
		return Login{}, false
	}
	return l, true
}

// LoginToken is the last part of a link.
func LoginToken(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }

// LoginCode is what a person reads out instead of a link: ABCD-EFGH.
func LoginCode(link string) string { return Code(LoginToken(link)) }

// LongLoginCode is the code for tools that take no other length. It begins with the
// characters of LoginCode; the rest are 80 more bits.
func LongLoginCode(link string) string {
	token := LoginToken(link)
	sum := sha256.Sum256([]byte(token))
	more := base32.NewEncoding(codeAlphabet).WithPadding(base32.NoPadding).EncodeToString(sum[8:18])
	return strings.ReplaceAll(Code(token), "-", "") + more
}

// Code is a short name for a text, for people to read out: ABCD-EFGH.
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

// FoldLoginCode is the form in which codes are compared, or empty for what is no
// code: case and hyphen do not matter, and letters that look like digits are.
func FoldLoginCode(text string) string {
	if text = foldCode(text); len(text) != codeLength {
		return ""
	}
	return text[:codeLength/2] + "-" + text[codeLength/2:]
}

// FoldLongLoginCode does the same for long codes, and returns the code that it
// begins with.
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

// shorten cuts between characters.
func shorten(text string) string {
	if len(text) <= maxLoginText {
		return text
	}
	return strings.ToValidUTF8(text[:maxLoginText], "")
}
