package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	coreos "github.com/coreos/go-oidc/v3/oidc"
)

const (
	// logoutEvent is the event that a logout token contains.
	logoutEvent = "http://schemas.openid.net/event/backchannel-logout"
	// A logout token is accepted if it was issued at most logoutAge ago, and at most logoutAhead in the future, because
	// clocks differ. Callers must remember its ID for longer than both together.
	logoutAge   = 5 * time.Minute
	logoutAhead = time.Minute
	maxTokenID  = 255
)

// Logout says that a person has been signed out at the provider.
type Logout struct {
	Issuer, Subject string
	// ID identifies the token, which must be accepted once only.
	ID string
}

// IssuerOf returns the issuer that a JWT claims to be from. Nothing is verified.
func IssuerOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(data, &claims) != nil {
		return ""
	}
	return claims.Issuer
}

// VerifyLogout verifies a logout token (OpenID Connect Back-Channel Logout 1.0, section 2.6), except that it is used
// once.
func (p *Provider) VerifyLogout(ctx context.Context, token string) (Logout, error) {
	d, err := p.ready()
	if err != nil {
		return Logout{}, err
	}
	ctx, cancel := context.WithTimeout(coreos.ClientContext(ctx, p.client), requestTimeout)
	defer cancel()
	// Some providers send no exp. The age is limited below.
	signed, err := d.Verifier(&coreos.Config{ClientID: p.config.ClientID, SkipExpiryCheck: true}).Verify(ctx, token)
	if err != nil {
		return Logout{}, errors.New("the logout token is not valid: its signature, issuer or audience is wrong")
	}
	var claims struct {
		Events map[string]json.RawMessage `json:"events"`
		Nonce  json.RawMessage            `json:"nonce"`
		ID     string                     `json:"jti"`
	}
	now := time.Now()
	switch {
	case signed.Claims(&claims) != nil:
		return Logout{}, errors.New("the logout token is not valid: its claims cannot be read")
	case !isObject(claims.Events[logoutEvent]):
		return Logout{}, errors.New("the logout token is not valid: it does not contain the logout event")
	case len(claims.Nonce) > 0:
		return Logout{}, errors.New("the logout token is not valid: it contains a nonce")
	case claims.ID == "" || len(claims.ID) > maxTokenID:
		return Logout{}, errors.New("the logout token is not valid: jti is missing or too long")
	case signed.IssuedAt.IsZero() || now.Sub(signed.IssuedAt) > logoutAge || signed.IssuedAt.Sub(now) > logoutAhead:
		return Logout{}, errors.New("the logout token is not valid: it is too old, or from the future")
	case !signed.Expiry.IsZero() && signed.Expiry.Unix() != 0 && now.Sub(signed.Expiry) > logoutAhead:
		return Logout{}, errors.New("the logout token is not valid: it has expired")
	case !validSubject(signed.Subject):
		return Logout{}, errors.New("the logout token names no person: configure the provider to send sub")
	}
	return Logout{Issuer: signed.Issuer, Subject: signed.Subject, ID: claims.ID}, nil
}

func isObject(raw json.RawMessage) bool {
	var object map[string]any
	return len(raw) > 0 && json.Unmarshal(raw, &object) == nil && object != nil
}
