package cli

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/fairlead-mesh/fairlead/internal/config"
)

const masked = "***"

var (
	keySecret      = regexp.MustCompile(`\b(fl[a-z]_[A-Za-z0-9]{12})_[A-Za-z0-9_-]{16,}`)
	importedSecret = regexp.MustCompile(`\b(hskey-[a-z]+-[A-Za-z0-9_-]{12})-[A-Za-z0-9_-]{16,}`)
	webhookSecret  = regexp.MustCompile(`\b(flw)_[A-Za-z0-9_-]{16,}`)
	bearerToken    = regexp.MustCompile(`(?i)\b(bearer) +[^\s"',]+`)
	privateKey     = regexp.MustCompile(`\b(privkey):[0-9a-fA-F]+`)
	privatePEM     = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`)
	urlPassword    = regexp.MustCompile(`(://[^/\s:@"]*):[^/\s@"]+@`)
	webAddress     = regexp.MustCompile(`(?i)\b(https?://)(?:[^/\s"@?#\\]*@)?([^/\s"@?#\\]*)(?:\\u[0-9a-f]{4}|[^\s"\\])*`)
	publicKey      = regexp.MustCompile(`\b((?:mkey|nodekey|discokey|nlpub|chalpub):[0-9a-f]{8})[0-9a-f]{24,}`)
	secretVariable = regexp.MustCompile(`^FAIRLEAD_.*(PASS|SECRET|TOKEN|API_KEY)$`)
	secretMember   = regexp.MustCompile(`(?i)(secret|password|passphrase|^pass$|token|private_?key)`)
)

// minSecret is the minimum length of a secret to search for. A shorter one may also be part of an ordinary
// word, which support needs to see.
const minSecret = 8

// mask hides secrets in texts that leave the machine.
type mask struct {
	known []string // secrets to hide, verbatim
}

// know adds secrets to hide wherever they occur. It skips those that are also words in the names of settings,
// because hiding them would garble the output; the value of a secret setting is hidden anyway.
func (m *mask) know(secrets ...string) {
	words := strings.FieldsFunc((&config.Config{}).String(), func(r rune) bool { return !unicode.IsLetter(r) })
	for _, s := range secrets {
		if len(s) >= minSecret && !slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, s) }) {
			m.known = append(m.known, s)
		}
	}
}

// hosts shortens URLs to their hosts, because some contain a token in their path or query.
func hosts(text string) string { return webAddress.ReplaceAllString(text, "$1$2") }

// text masks the known secrets and anything that looks like one.
func (m *mask) text(text string) string {
	for _, secret := range m.known {
		text = strings.ReplaceAll(text, secret, masked)
	}
	text = keySecret.ReplaceAllString(text, "${1}_"+masked)
	text = importedSecret.ReplaceAllString(text, "${1}-"+masked)
	text = webhookSecret.ReplaceAllString(text, "${1}_"+masked)
	text = bearerToken.ReplaceAllString(text, "$1 "+masked)
	text = privateKey.ReplaceAllString(text, "$1:"+masked)
	text = privatePEM.ReplaceAllString(text, masked)
	text = urlPassword.ReplaceAllString(text, "$1:"+masked+"@")
	return publicKey.ReplaceAllString(text, "$1…")
}

// members formats JSON for people and masks the fields whose names suggest a secret.
func (m *mask) members(text string) (string, error) {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return "", err
	}
	return encodeJSON(hideMembers(value), false)
}

func hideMembers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if s, ok := member.(string); ok && s != "" && secretMember.MatchString(name) {
				v[name] = masked
			} else {
				v[name] = hideMembers(member)
			}
		}
	case []any:
		for i := range v {
			v[i] = hideMembers(v[i])
		}
	}
	return value
}
