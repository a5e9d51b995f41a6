package identity

import (
	"crypto/rand"
	"encoding/base64"

	"tailscale.com/types/key"
)

// WebhookSecrets derives the secrets that webhooks are signed with. They are derived from the server's own
// key, so all replicas have them and none is stored.
type WebhookSecrets struct{ key []byte }

// NewWebhookSecrets returns the secrets of the server with this key.
func NewWebhookSecrets(service key.MachinePrivate) *WebhookSecrets {
	return &WebhookSecrets{keyText(service)}
}

// NewWebhookSalt returns a random salt for a secret.
func NewWebhookSalt() string { return rand.Text() }

// Secret returns the secret for a salt: flw_ and 256 bits.
func (s *WebhookSecrets) Secret(salt string) string {
	return "flw_" + base64.RawURLEncoding.EncodeToString(derive(s.key, []byte(salt), "webhook secret"))
}
