package identity

import (
	"crypto/rand"
	"encoding/base64"

	"tailscale.com/types/key"
)

// WebhookSecrets makes the secrets that webhooks are signed with. They follow
// from the service's own key, so all replicas have them and none is stored.
type WebhookSecrets struct{ key []byte }

// NewWebhookSecrets returns those of the service with this key.
func NewWebhookSecrets(service key.MachinePrivate) *WebhookSecrets {
	return &WebhookSecrets{keyText(service)}
}

// NewWebhookSalt draws what makes a secret differ from all others.
func NewWebhookSalt() string { return rand.Text() }

// Secret is the one that a salt stands for: flw_ and 256 bits.
func (s *WebhookSecrets) Secret(salt string) string {
	return "flw_" + base64.RawURLEncoding.EncodeToString(derive(s.key, []byte(salt), "webhook secret"))
}
