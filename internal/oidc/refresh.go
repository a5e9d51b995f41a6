package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	coreos "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// maxRefreshToken limits the length of refresh tokens, which some providers make long.
const maxRefreshToken = 8 << 10

// refreshToken returns the refresh token of a sign-in, unless it ends with the person's session at the provider: then
// a refusal would not mean that the person has left.
func (p *Provider) refreshToken(d *discovered, token *oauth2.Token) string {
	if !p.config.Offline {
		return ""
	}
	text := token.RefreshToken
	granted, _ := token.Extra("scope").(string) // empty means what was requested
	reason := ""
	switch bound := d.offline && granted != "" && !slices.Contains(strings.Fields(granted), coreos.ScopeOfflineAccess) && !omitsOffline(p.config.Issuer); {
	case text == "":
		reason = "the provider sent no refresh token. Allow the client to use refresh tokens"
	case bound:
		reason = "the provider did not grant offline_access. Allow the scope for the client; some providers also need oidc.extra_params with prompt: consent"
	case len(text) > maxRefreshToken:
		reason = "the refresh token is too long"
	default:
		return text
	}
	account, subject := accountOf(token)
	p.config.Log.Warn("person signed in who cannot be rechecked with this sign-in", "account", account, "subject", subject, "issuer", p.config.Issuer, "reason", reason)
	return ""
}

// accountOf returns what the ID token of a sign-in calls the person, for the log. The caller has verified the ID token.
func accountOf(token *oauth2.Token) (account, subject string) {
	raw, _ := token.Extra("id_token").(string)
	_, rest, _ := strings.Cut(raw, ".")
	payload, _, _ := strings.Cut(rest, ".")
	var claims struct {
		Subject  string `json:"sub"`
		Email    any    `json:"email"`
		Username any    `json:"preferred_username"`
		Name     any    `json:"name"`
	}
	if data, err := base64.RawURLEncoding.DecodeString(payload); err != nil || json.Unmarshal(data, &claims) != nil {
		return "", ""
	}
	for _, claim := range []any{claims.Email, claims.Username, claims.Name} {
		if text, ok := claim.(string); ok && Line(text) != "" {
			return Line(text), Line(claims.Subject)
		}
	}
	return "", Line(claims.Subject)
}

// omitsOffline reports whether a provider never lists offline_access among the granted scopes. Microsoft Entra ID lists
// only those of the access token.
func omitsOffline(issuer string) bool {
	u, err := url.Parse(issuer)
	return err == nil && strings.HasPrefix(u.Hostname(), "login.microsoftonline.")
}

// Outcome is how a refresh ended that did not succeed.
type Outcome int

// The outcomes. Only Refused says something about the account.
const (
	// Unsent means that the provider was not reached. The token is unused.
	Unsent Outcome = iota
	// Refused means that the provider does not accept the token (invalid_grant).
	Refused
	// Rejected means that the provider does not accept the request, with another error. Some providers answer like this
	// if the token was used before.
	Rejected
	// Deferred means that the provider answered with an error that says nothing about the token: the client is not
	// allowed to refresh, there were too many requests, or a proxy answered. The token is unused.
	Deferred
	// Unknown means that there was no answer, or one that cannot be understood. The provider may have used up the token.
	Unknown
)

// RefreshError is why a refresh token was not exchanged.
type RefreshError struct {
	Outcome Outcome
	text    string
}

func (e *RefreshError) Error() string { return e.text }

// Renewal is the result of a refresh.
type Renewal struct {
	// Token replaces the refresh token. Providers that do not rotate tokens return the same one.
	Token string

	token *oauth2.Token
}

// Refresh asks the provider whether it still accepts a refresh token. It sends one request, and the error is a *RefreshError.
func (p *Provider) Refresh(ctx context.Context, token string) (Renewal, error) {
	d, err := p.ready()
	if err != nil {
		return Renewal{}, &RefreshError{Unsent, err.Error()}
	}
	ctx, cancel := context.WithTimeout(coreos.ClientContext(ctx, p.client), requestTimeout)
	defer cancel()
	renewed, err := d.oauth.TokenSource(ctx, &oauth2.Token{RefreshToken: token}).Token()
	if err != nil {
		failure := refreshError(err)
		if failure.Outcome == Unsent || failure.Outcome == Unknown {
			p.doubt()
		}
		return Renewal{}, failure
	}
	if len(renewed.RefreshToken) > maxRefreshToken {
		return Renewal{}, &RefreshError{Unknown, "the provider sent a refresh token that is too long"}
	}
	return Renewal{Token: renewed.RefreshToken, token: renewed}, nil
}

func refreshError(err error) *RefreshError {
	refused, dial := new(oauth2.RetrieveError), new(net.OpError)
	switch {
	case errors.As(err, &refused) && refused.Response != nil:
		status := refused.Response.StatusCode
		outcome, text := Unknown, http.StatusText(status)
		switch code := refused.ErrorCode; {
		case status < http.StatusBadRequest || status >= http.StatusInternalServerError:
		case code == "invalid_grant":
			outcome = Refused
		case status == http.StatusBadRequest && code != "" && !aboutClient(code):
			outcome = Rejected
		default:
			outcome = Deferred
		}
		if refused.ErrorCode != "" {
			text = Line(refused.ErrorCode)
		}
		return &RefreshError{outcome, text}
	case errors.As(err, &dial) && dial.Op == "dial":
		return &RefreshError{Unsent, "the provider could not be reached"}
	}
	return &RefreshError{Unknown, "the provider did not answer as it should"}
}

// aboutClient reports whether an error of a token endpoint is about the client or the provider itself, and not about a token.
func aboutClient(code string) bool {
	switch code {
	case "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope", "server_error", "temporarily_unavailable", "slow_down":
		return true
	}
	return false
}

// ErrNoIdentity is returned if a renewal says nothing about the person.
var ErrNoIdentity = errors.New("the provider sent no ID token and has no UserInfo")

// Identify returns who the person is now, from the ID token and UserInfo. Groups that are in neither are unknown unless
// UserInfo answered, because a renewed ID token may contain less than the first one.
func (p *Provider) Identify(ctx context.Context, r Renewal) (Identity, error) {
	d, err := p.ready()
	if err != nil {
		return Identity{}, err
	}
	ctx, cancel := context.WithTimeout(coreos.ClientContext(ctx, p.client), requestTimeout)
	defer cancel()
	claims, subject := map[string]any{}, ""
	if raw, ok := r.token.Extra("id_token").(string); ok {
		signed, found, err := p.verify(ctx, d, raw)
		if err != nil {
			return Identity{}, err
		}
		claims, subject = found, signed.Subject
	}
	complete := false
	if d.UserInfoEndpoint() != "" {
		info, err := d.UserInfo(ctx, oauth2.StaticTokenSource(r.token))
		if err == nil {
			more := map[string]any{}
			if subject != "" && info.Subject != subject || info.Claims(&more) != nil {
				return Identity{}, errors.New("UserInfo describes another person than the ID token, or cannot be read")
			}
			subject, complete = info.Subject, true
			maps.Copy(claims, more)
		}
	}
	if !validSubject(subject) {
		return Identity{}, ErrNoIdentity
	}
	who := p.identity(claims, complete)
	who.Issuer, who.Subject = p.config.Issuer, subject
	return who, nil
}
