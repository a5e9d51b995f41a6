package app

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/config"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/oidc"
	"github.com/fairlead-mesh/fairlead/internal/wire"
)

// newProviders returns the identity providers with which people can sign in. It does not connect to them.
func (s *service) newProviders() (all []*oidc.Provider, err error) {
	for _, c := range s.Config.OIDC.All() {
		secret, err := c.ReadSecret()
		if err != nil {
			return nil, err
		}
		all = append(all, oidc.New(oidc.Config{
			Name: c.Name, Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: string(secret), RedirectURL: wire.CallbackURL(s.Config.ServerURL),
			Scopes: c.Scope, ExtraParams: c.ExtraParams, PKCE: c.PKCE, GroupsClaim: c.GroupsClaim, GroupsMap: c.GroupsMap,
			AllowedDomains: c.AllowedDomains, AllowedUsers: c.AllowedUsers, AllowedGroups: c.AllowedGroups,
			EmailVerifiedRequired: c.EmailVerifiedRequired, UseExpiry: c.UseExpiryFromToken, Offline: c.Recheck > 0, Log: s.log,
		}))
	}
	return all, nil
}

// providerLoops returns the loops that reach the providers and ask them about people.
func (p *parts) providerLoops() []func(context.Context) error {
	loops := []func(context.Context) error{p.rechecks.Run}
	for _, provider := range p.providers {
		loops = append(loops, provider.Run)
	}
	return loops
}

// consoleURLs returns where the consoles are. By default, there is one on the server's own host.
func consoleURLs(c *config.Config) []string {
	if len(c.OIDC.ConsoleURLs) > 0 {
		return c.OIDC.ConsoleURLs
	}
	return []string{c.ServerURL + "/admin/"}
}

// signInChoices returns what programs need to know before a person signs in.
func (s *service) signInChoices(all []*oidc.Provider) openapi.SignIn {
	out := openapi.SignIn{URL: wire.SessionURL(s.Config.ServerURL), Providers: []openapi.SignInProvider{}}
	for i, p := range all {
		out.Providers = append(out.Providers, openapi.SignInProvider{ID: strconv.Itoa(i), Name: p.Name()})
	}
	return out
}

// roleRules returns which groups of the providers give which roles.
func roleRules(c config.OIDC) (rules mesh.RoleRules) {
	for _, p := range c.All() {
		for role, groups := range p.Roles {
			for _, g := range groups {
				rules = append(rules, mesh.RoleRule{Issuer: p.Issuer, Group: g, Role: role})
			}
		}
	}
	return rules
}

// recheckIntervals returns how often each provider is asked about people; zero means never.
func recheckIntervals(c config.OIDC) map[string]time.Duration {
	every := map[string]time.Duration{}
	for _, p := range c.All() {
		every[p.Issuer] = max(every[p.Issuer], p.Recheck)
	}
	return every
}

// providerWarnings says which providers cannot be reached or asked about people. Why is in the log, because strangers read
// this.
func (p *parts) providerWarnings() (texts []string) {
	for _, provider := range p.providers {
		if provider.Err() != nil {
			texts = append(texts, fmt.Sprintf("identity provider %s cannot be reached: nobody can sign in with it. Devices that have joined are not affected. The log says why; search for \"identity provider unreachable\"", provider.Name()))
		}
	}
	if text := p.rechecks.Warning(); text != "" {
		texts = append(texts, text)
	}
	if text := p.control.Users.HoldWarning(); text != "" {
		texts = append(texts, text)
	}
	return texts
}
