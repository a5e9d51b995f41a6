package oidc

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	coreos "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Identity is who a provider says a person is.
type Identity struct {
	Issuer, Subject string
	// Email is empty if it is not verified and has to be.
	Email       string
	Username    string
	DisplayName string
	Picture     string
	// Groups holds the groups that the provider's claim lists, after GroupsMap.
	Groups []string
	// GroupsUnknown means that the provider did not say which groups the person is in, as opposed to none.
	GroupsUnknown bool
	// AuthTime is when the person last proved to the provider who they are, if the ID token says so.
	AuthTime time.Time
	// Session identifies the session of the person at the provider, if the ID token says so (sid). A logout may name it.
	Session string
	// Expiry is when the ID token expires, if the configuration uses it.
	Expiry time.Time
	// RefreshToken is for Refresh, if the configuration requests it and the provider sent one. It is a secret.
	RefreshToken string
}

// RefusedError is an error that the provider reported, with its own words.
type RefusedError struct{ Code, Description string }

func (e *RefusedError) Error() string {
	if e.Description == "" {
		return e.Code
	}
	return e.Code + ": " + e.Description
}

// NotAllowedError is why a person may not sign in.
type NotAllowedError struct{ Text string }

func (e *NotAllowedError) Error() string { return e.Text }

// maxSubject is the limit of the specification.
const maxSubject = 255

// maxTime limits times, in seconds.
const maxTime = 1 << 40

// Exchange exchanges a code for the identity of the person, and checks that the configuration allows the person
// to sign in.
func (p *Provider) Exchange(ctx context.Context, f Flow, code string) (Identity, error) {
	d, err := p.ready()
	if err != nil {
		return Identity{}, err
	}
	ctx, cancel := context.WithTimeout(coreos.ClientContext(ctx, p.client), requestTimeout)
	defer cancel()
	var options []oauth2.AuthCodeOption
	if d.pkce {
		options = append(options, oauth2.VerifierOption(f.Verifier))
	}
	token, err := d.oauth.Exchange(ctx, code, options...)
	if err != nil {
		p.doubt()
		return Identity{}, exchangeError(err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return Identity{}, errors.New("the provider sent no ID token: check that the scope contains openid")
	}
	signed, claims, err := p.verify(ctx, d, raw)
	if err != nil {
		return Identity{}, err
	}
	if subtle.ConstantTimeCompare([]byte(signed.Nonce), []byte(f.Nonce)) != 1 {
		return Identity{}, errors.New("the ID token is not valid: it belongs to another sign-in")
	}
	authTime := timeOf(claims["auth_time"]) // of the ID token: UserInfo says nothing about this sign-in
	session, _ := claims["sid"].(string)
	if !validSubject(session) {
		session = ""
	}
	complete, err := p.addUserInfo(ctx, d, token, signed.Subject, claims)
	if err != nil {
		return Identity{}, err
	}
	who := p.identity(claims, complete)
	who.Issuer, who.Subject, who.AuthTime, who.Session = signed.Issuer, signed.Subject, authTime, session
	if p.config.UseExpiry {
		who.Expiry = signed.Expiry
	}
	if !validSubject(who.Subject) {
		return Identity{}, errors.New("the ID token is not valid: its subject is empty or too long")
	}
	if err := p.allow(claims, who); err != nil {
		return Identity{}, err
	}
	who.RefreshToken = p.refreshToken(d, token)
	return who, nil
}

// timeOf returns the zero time if a claim is not a time.
func timeOf(claim any) time.Time {
	seconds, ok := claim.(float64)
	if !ok || seconds <= 0 || seconds > maxTime {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}

func validSubject(text string) bool {
	return text != "" && len(text) <= maxSubject && Line(text) == text
}

// verify checks an ID token, except its nonce.
func (p *Provider) verify(ctx context.Context, d *discovered, raw string) (*coreos.IDToken, map[string]any, error) {
	signed, err := d.Verifier(&coreos.Config{ClientID: p.config.ClientID}).Verify(ctx, raw)
	if err != nil {
		return nil, nil, fmt.Errorf("the ID token is not valid: %w", plain(err))
	}
	claims := map[string]any{}
	if err := signed.Claims(&claims); err != nil {
		return nil, nil, errors.New("the ID token is not valid: its claims cannot be read")
	}
	if azp, _ := claims["azp"].(string); len(signed.Audience) > 1 && azp != p.config.ClientID {
		return nil, nil, errors.New("the ID token is not valid: it was issued to another client")
	}
	return signed, claims, nil
}

// addUserInfo overrides the claims of the ID token with those of UserInfo. Without an answer, those of the ID
// token count, and complete is false.
func (p *Provider) addUserInfo(ctx context.Context, d *discovered, token *oauth2.Token, subject string, claims map[string]any) (complete bool, err error) {
	if d.UserInfoEndpoint() == "" {
		return true, nil
	}
	info, err := d.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		p.config.Log.Warn("identity provider did not answer UserInfo, using the ID token", "issuer", p.config.Issuer)
		return false, nil
	}
	if info.Subject != subject {
		return false, errors.New("UserInfo describes another person than the ID token")
	}
	more := map[string]any{}
	if err := info.Claims(&more); err != nil {
		return false, errors.New("UserInfo cannot be read")
	}
	maps.Copy(claims, more)
	return true, nil
}

// exchangeError returns what the provider said, without the code, the token or the secret that a raw response
// may repeat.
func exchangeError(err error) error {
	refused := new(oauth2.RetrieveError)
	switch {
	case errors.As(err, &refused) && refused.ErrorCode != "":
		return &RefusedError{Line(refused.ErrorCode), Line(refused.ErrorDescription)}
	case errors.As(err, &refused) && refused.Response != nil:
		return fmt.Errorf("the provider answered the code with status %d", refused.Response.StatusCode)
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("the provider did not answer in time")
	}
	return errors.New("the provider did not answer as it should, or could not be reached")
}

// identity reads the claims. complete is false if there might be more of them.
func (p *Provider) identity(claims map[string]any, complete bool) Identity {
	text := func(name string) string {
		s, _ := claims[name].(string)
		return Line(s)
	}
	who := Identity{
		Email: text("email"), Username: text("preferred_username"), DisplayName: text("name"), Picture: text("picture"),
	}
	who.Groups, who.GroupsUnknown = p.groups(claims, complete)
	if p.config.EmailVerifiedRequired && !verified(claims) || !strings.Contains(who.Email, "@") {
		who.Email = ""
	}
	if raw, _ := claims["picture"].(string); raw != who.Picture || !strings.HasPrefix(who.Picture, "https://") {
		who.Picture = ""
	}
	return who
}

// groups returns the person's groups. They are unknown if there are too many for a token, as Microsoft Entra ID
// announces with the claims _claim_names and hasgroups, or if the claim is missing and UserInfo, which may have it,
// could not be read.
func (p *Provider) groups(claims map[string]any, complete bool) (names []string, unknown bool) {
	claim := lookup(claims, p.config.GroupsClaim)
	if claim == nil {
		elsewhere, _ := claims["_claim_names"].(map[string]any)
		_, distributed := elsewhere[p.config.GroupsClaim]
		if distributed || isTrue(claims["hasgroups"]) {
			p.config.Log.Warn("identity provider did not send the groups of a person because there are too many; the groups of the last sign-in stay. "+
				"Configure the provider to send only groups that are assigned to the application", "issuer", p.config.Issuer)
			return nil, true
		}
		return nil, !complete
	}
	for _, name := range texts(claim) {
		if len(p.config.GroupsMap) > 0 {
			mapped, ok := p.config.GroupsMap[name]
			if !ok {
				continue
			}
			name = mapped
		}
		names = append(names, name)
	}
	return names, false
}

// verified reads email_verified, which some providers send as a string.
func verified(claims map[string]any) bool {
	return isTrue(claims["email_verified"])
}

func isTrue(claim any) bool {
	switch v := claim.(type) {
	case bool:
		return v
	case string:
		return strings.EqualFold(v, "true")
	}
	return false
}

// lookup returns a claim by its name, which may contain dots, or else by its path.
func lookup(claims map[string]any, path string) any {
	if v, ok := claims[path]; ok {
		return v
	}
	first, rest, nested := strings.Cut(path, ".")
	inner, ok := claims[first].(map[string]any)
	if !nested || !ok {
		return nil
	}
	return lookup(inner, rest)
}

// texts returns the strings of a list, or of one string, which some providers send instead.
func texts(v any) (found []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			if s, ok := e.(string); ok {
				found = append(found, s)
			}
		}
	}
	return found
}

// allow checks the lists. Every list that is given must contain the person.
func (p *Provider) allow(claims map[string]any, who Identity) error {
	c := p.config
	if len(c.AllowedGroups) > 0 && !slices.ContainsFunc(texts(lookup(claims, c.GroupsClaim)), func(g string) bool { return slices.Contains(c.AllowedGroups, g) }) {
		if who.GroupsUnknown {
			return &NotAllowedError{"the identity provider does not say which groups your account is in"}
		}
		return &NotAllowedError{"your account is in none of the groups that may sign in here"}
	}
	if len(c.AllowedDomains)+len(c.AllowedUsers) == 0 {
		return nil
	}
	if given, _ := claims["email"].(string); who.Email == "" && given != "" {
		return &NotAllowedError{"the identity provider has not verified your email address"}
	}
	if who.Email == "" {
		return &NotAllowedError{"the identity provider does not say what your email address is"}
	}
	same := func(a string) func(string) bool { return func(b string) bool { return strings.EqualFold(a, b) } }
	if len(c.AllowedDomains) > 0 && !slices.ContainsFunc(c.AllowedDomains, same(who.Email[strings.LastIndexByte(who.Email, '@')+1:])) {
		return &NotAllowedError{"the domain of your email address may not sign in here"}
	}
	if len(c.AllowedUsers) > 0 && !slices.ContainsFunc(c.AllowedUsers, same(who.Email)) {
		return &NotAllowedError{"your email address may not sign in here"}
	}
	return nil
}

func printable(r rune) bool { return unicode.IsGraphic(r) }
