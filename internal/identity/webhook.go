package identity

import (
	"crypto/rand"
	"encoding/base64"
	"strconv"
	"strings"
)

// WebhookSecrets derives the secrets that webhooks are signed with. They are derived from the server's secrets, so all
// replicas have them and none is stored.
type WebhookSecrets struct{ secrets *ServerSecrets }

// NewWebhookSecrets returns the webhook secrets of the server with these secrets.
func NewWebhookSecrets(s *ServerSecrets) *WebhookSecrets { return &WebhookSecrets{s} }

// NewSalt returns a random salt for a secret. It contains the number of the server's secret, unless that is the first one,
// so that a rotation of the server's secret does not change those of webhooks.
func (s *WebhookSecrets) NewSalt() string {
	if n := s.secrets.current().Number; n > 1 {
		return strconv.Itoa(n) + "." + rand.Text()
	}
	return rand.Text()
}

// Secret returns the secret for a salt: flw_ and 256 bits.
func (s *WebhookSecrets) Secret(salt string) string {
	own := s.secrets.numbered(WebhookSaltNumber(salt))
	return "flw_" + base64.RawURLEncoding.EncodeToString(derive(own.Value, []byte(salt), "webhook secret"))
}

// WebhookSaltNumber returns the number of the server's secret from which the secret for a salt is derived.
func WebhookSaltNumber(salt string) int {
	number, _, found := strings.Cut(salt, ".")
	if n, err := strconv.Atoi(number); found && err == nil {
		return n
	}
	return 1
}
