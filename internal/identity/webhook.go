package identity

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"tailscale.com/types/key"
)

// WebhookSecrets makes the secrets that webhooks are signed with. They follow
// from the service's own key, so all replicas have them and none is stored.
type WebhookSecrets struct{ key []byte }

// NewWebhookSecrets returns those of the service with this key.
func NewWebhookSecrets(service key.MachinePrivate) *WebhookSecrets {
	text, err := service.MarshalText()
	if err != nil {
		panic(err) // a key can always be encoded
	}
	return &WebhookSecrets{text}
}

// NewWebhookSalt draws what makes a secret differ from all others.
func NewWebhookSalt() string { return rand.Text() }

// Secret is the one that a salt stands for: flw_ and 256 bits.
func (s *WebhookSecrets) Secret(salt string) string {
	const secretBytes = 32
	derived, err := hkdf.Key(sha256.New, s.key, []byte(salt), "fairlead webhook secret", secretBytes)
	if err != nil {
		panic(fmt.Sprintf("deriving a secret of %d bytes: %v", secretBytes, err)) // fails for thousands of bytes only
	}
	return "flw_" + base64.RawURLEncoding.EncodeToString(derived)
}
