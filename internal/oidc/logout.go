package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
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
	// keysPace is how often keys are fetched at most because of tokens that no known key has signed.
	keysPace = time.Second
)

// ErrNoKeys is returned for a logout token that cannot be verified now, because no known key has signed it, and the keys
// cannot be fetched, or were fetched a moment ago.
var ErrNoKeys = errors.New("the keys of the identity provider cannot be fetched now")

// Logout says that a person has been signed out at the provider.
type Logout struct {
	// Subject is empty if the token names only the session.
	Issuer, Subject string
	// Session is the Identity.Session that has ended, or empty if the token names only the person.
	Session string
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
	keys := &logoutKeys{KeySet: d.logoutKeys}
	// Some providers send no exp. The age is limited below.
	c := &coreos.Config{ClientID: p.config.ClientID, SkipExpiryCheck: true, SupportedSigningAlgs: d.algs}
	signed, err := coreos.NewVerifier(p.config.Issuer, keys, c).Verify(ctx, token)
	if err != nil {
		if keys.missing {
			return Logout{}, ErrNoKeys
		}
		return Logout{}, errors.New("the logout token is not valid: its signature, issuer or audience is wrong")
	}
	var claims struct {
		Events map[string]json.RawMessage `json:"events"`
		Nonce  json.RawMessage            `json:"nonce"`
		ID     string                     `json:"jti"`
		// Session may have any type in a token with a subject.
		Session any `json:"sid"`
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
	}
	session, _ := claims.Session.(string)
	if signed.Subject != "" && !validSubject(signed.Subject) || signed.Subject == "" && !validSubject(session) {
		return Logout{}, errors.New("the logout token is not valid: it names neither a person (sub) nor a session (sid)")
	}
	return Logout{Issuer: signed.Issuer, Subject: signed.Subject, Session: session, ID: claims.ID}, nil
}

func isObject(raw json.RawMessage) bool {
	var object map[string]any
	return len(raw) > 0 && json.Unmarshal(raw, &object) == nil && object != nil
}

// logoutKeys verifies the signature of one token. Anyone can send tokens, so keys are fetched at a limited pace, apart from
// those for ID tokens: forged tokens neither make the server ask the provider each time nor keep people from signing in.
type logoutKeys struct {
	coreos.KeySet
	missing bool // the keys could not be fetched
}

// VerifySignature implements coreos.KeySet.
func (k *logoutKeys) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, token)
	if errors.Is(err, ErrNoKeys) { // another token may just have fetched them
		payload, err = k.KeySet.VerifySignature(ctx, token)
	}
	k.missing = errors.Unwrap(err) != nil // only failures to fetch keys have a cause
	return payload, err
}

// paced refuses requests that follow another one too soon.
type paced struct {
	next http.RoundTripper
	mu   sync.Mutex
	last time.Time // guarded by mu
}

// RoundTrip implements http.RoundTripper.
func (p *paced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Response == nil && !p.admit() { // not a redirect
		return nil, ErrNoKeys
	}
	return p.next.RoundTrip(r)
}

func (p *paced) admit() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.last) < keysPace {
		return false
	}
	p.last = now
	return true
}

// signatures returns the algorithms that use a public key.
func signatures(announced []string) (algs []string) {
	for _, alg := range announced {
		switch alg {
		case coreos.RS256, coreos.RS384, coreos.RS512, coreos.ES256, coreos.ES384, coreos.ES512, coreos.PS256, coreos.PS384, coreos.PS512, coreos.EdDSA:
			algs = append(algs, alg)
		}
	}
	return algs
}
