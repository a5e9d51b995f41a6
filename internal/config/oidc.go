package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// OIDC configures sign-in. Providers holds those of oidc.providers; All also returns the one of the flat keys.
type OIDC struct {
	OIDCProvider
	Providers []OIDCProvider
}

// OIDCProvider is an OpenID Connect provider with which people sign in.
type OIDCProvider struct {
	Name             string // empty means the host of the issuer
	Issuer           string
	ClientID         string
	ClientSecret     Secret
	ClientSecretPath string
	Scope            []string
	ExtraParams      map[string]string
	AllowedDomains   []string
	AllowedUsers     []string
	AllowedGroups    []string
	GroupsClaim      string

	EmailVerifiedRequired bool
	UseExpiryFromToken    bool
	PKCE                  bool
}

// All returns every provider, the one of the flat keys first.
func (o OIDC) All() []OIDCProvider {
	if o.Issuer == "" {
		return o.Providers
	}
	return append([]OIDCProvider{o.OIDCProvider}, o.Providers...)
}

// ReadSecret returns the client secret, from its file if it is in one. Only the server needs it, and other
// commands may not be allowed to read the file.
func (p OIDCProvider) ReadSecret() (Secret, error) {
	if p.ClientSecretPath == "" {
		return p.ClientSecret, nil
	}
	data, err := readLimited(os.ExpandEnv(p.ClientSecretPath))
	s := strings.TrimSpace(string(data))
	if err == nil && s == "" {
		err = errors.New("the file is empty")
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the client secret of %s from client_secret_path %s: %w", p.Issuer, p.ClientSecretPath, err)
	}
	return Secret(s), nil
}

const oidcSection = "oidc."

func oidcKeys(o *OIDC) []key {
	return append(providerKeys(&o.OIDCProvider), key{
		oidcSection + "providers", providers(&o.Providers), "", shared,
		"More providers: a list of sections with the keys above, without `oidc.`. People choose one on the login page.",
	})
}

func providerKeys(p *OIDCProvider) []key {
	return []key{
		{
			oidcSection + "issuer", scalar(&p.Issuer, "a URL", parseIssuer), "", shared,
			"URL of the OpenID Connect provider with which people sign in to add devices, exactly as the provider spells it. It must begin with `https://`, except on this machine.",
		},
		{oidcSection + "client_id", text(&p.ClientID), "", shared, "ID of the client that you registered with the provider, with the redirect URI `<server_url>/oidc/callback`."},
		{oidcSection + "client_secret", secret(&p.ClientSecret), "", none, "Secret of the client. Never logged."},
		{
			oidcSection + "client_secret_path", filePath(&p.ClientSecretPath), "", none,
			"File with the secret, instead of `oidc.client_secret`. Variables such as `$CREDENTIALS_DIRECTORY` are expanded.",
		},
		{
			oidcSection + "name", text(&p.Name), "", none,
			"Name of the provider on login pages. Default: the host of the issuer.",
		},
		{
			oidcSection + "scope", list(&p.Scope, "scopes", parseText), "openid,profile,email", shared,
			"Scopes to request. Some providers send groups only for a scope of their own.",
		},
		{
			oidcSection + "extra_params", texts(&p.ExtraParams), "", shared,
			"Further parameters for the provider's login page, such as `domain_hint`.",
		},
		{
			oidcSection + "allowed_domains", list(&p.AllowedDomains, "domains", parseText), "", shared,
			"Domains of email addresses that may sign in. Everyone whom the provider signs in may, unless a list says otherwise. If there are several lists, a person must be in each.",
		},
		{oidcSection + "allowed_users", list(&p.AllowedUsers, "email addresses", parseText), "", shared, "Email addresses that may sign in."},
		{oidcSection + "allowed_groups", list(&p.AllowedGroups, "groups", parseText), "", shared, "Groups whose members may sign in, as the provider spells them."},
		{
			oidcSection + "groups_claim", text(&p.GroupsClaim), "groups", shared,
			"Claim with the groups of a person; dots separate nested names.",
		},
		{
			oidcSection + "email_verified_required", boolean(&p.EmailVerifiedRequired), "true", shared,
			"Whether to ignore email addresses that the provider has not verified. Then `allowed_domains` and `allowed_users` do not match them.",
		},
		{
			oidcSection + "use_expiry_from_token", boolean(&p.UseExpiryFromToken), "false", shared,
			"Whether a node expires together with the ID token of its owner's sign-in, instead of after `node.expiry`.",
		},
		{
			oidcSection + "pkce.enabled", boolean(&p.PKCE), "false", shared,
			"Whether to use PKCE even if the provider does not announce it. If it does, PKCE is always used.",
		},
	}
}

// providers returns a value that is a list of sections with the keys of a provider.
func providers(dst *[]OIDCProvider) value {
	const takes = "a list of sections"
	read := func(n *yaml.Node, fail failFunc) {
		*dst = nil
		if n.Kind != yaml.SequenceNode {
			fail(n, "", wrongType("must be "+takes+", got "+kindOf(n)))
			return
		}
		for i, e := range n.Content {
			p := withDefaults().OIDC.OIDCProvider
			keys := map[string]key{}
			for _, k := range providerKeys(&p) {
				keys[strings.TrimPrefix(k.path, oidcSection)] = k
			}
			readProvider(e, keys, fmt.Sprintf("[%d]", i), "", fail)
			*dst = append(*dst, p)
		}
	}
	return value{takes: takes, structured: true, read: read, show: func() any { return *dst }}
}

func readProvider(n *yaml.Node, keys map[string]key, suffix, under string, fail failFunc) {
	if n.Kind != yaml.MappingNode {
		fail(n, suffix, wrongType("must be a section of keys, got "+kindOf(n)))
		return
	}
	seen := map[string]bool{}
	for name, v := range pairs(n) {
		path := under + name.Value
		k, ok := keys[path]
		switch here := suffix + "." + name.Value; {
		case seen[path]:
			fail(name, here, errors.New("already set; remove one of them"))
		case ok && v.Kind == yaml.ScalarNode && v.Value == "": // not set
		case ok:
			k.read(v, func(n *yaml.Node, more string, err error) { fail(n, here+more, err) })
		case path == "pkce":
			readProvider(v, keys, here, "pkce.", fail)
		case path == "pkce.method": // as for the flat keys
		default:
			fail(name, here, errors.New("unknown key"))
		}
		seen[path] = true
	}
}

// texts returns a value that is a section of texts.
func texts(dst *map[string]string) value {
	const takes = "a section of texts"
	read := func(n *yaml.Node, fail failFunc) {
		*dst = nil
		if n.Kind != yaml.MappingNode {
			fail(n, "", wrongType("must be "+takes+", got "+kindOf(n)))
			return
		}
		found := map[string]string{}
		for name, v := range pairs(n) {
			if s, ok := parsed(v, "."+name.Value, "text", parseText, fail); ok {
				found[name.Value] = s
			}
		}
		if len(found) > 0 {
			*dst = found
		}
	}
	return value{takes: takes, structured: true, read: read, show: func() any { return *dst }}
}

// parseIssuer accepts plain HTTP on this machine only: whoever can change the provider's answers can sign in as
// anyone.
func parseIssuer(s string) (string, error) {
	if _, err := parseURL("http", "https")(s); err != nil {
		return "", err
	}
	u, err := url.Parse(s)
	if err != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("must be a URL without a query")
	}
	addr, err := netip.ParseAddr(u.Hostname())
	if local := u.Hostname() == "localhost" || err == nil && addr.IsLoopback(); u.Scheme != "https" && !local {
		return "", errors.New("must begin with https://")
	}
	return s, nil
}

func (l *loader) settleOIDC() {
	const issuer, list = oidcSection + "issuer", oidcSection + "providers"
	o := &l.config.OIDC
	if first := l.firstGiven(oidcSection); o.Issuer == "" && first != "" && first != list && l.sound(issuer) {
		l.problem(l.at(first), issuer, errors.New("is required if another key of oidc is set"))
	}
	seen := map[string]bool{}
	for i, p := range o.All() {
		at, prefix := l.at(issuer), oidcSection
		if o.Issuer == "" || i > 0 {
			n := i
			if o.Issuer != "" {
				n--
			}
			at, prefix = l.at(list), fmt.Sprintf("%s[%d].", list, n)
		}
		if !l.sound(issuer, list) {
			return
		}
		switch {
		case p.Issuer == "":
			l.problem(at, prefix+"issuer", errors.New("is required"))
		case seen[strings.TrimSuffix(p.Issuer, "/")]:
			l.problem(at, prefix+"issuer", errors.New("is listed twice; remove one"))
		case p.ClientID == "":
			l.problem(at, prefix+"client_id", errors.New("is required"))
		case p.ClientSecret != "" && p.ClientSecretPath != "":
			l.problem(at, prefix+"client_secret_path", errors.New("client_secret is also set; remove one of them"))
		}
		seen[strings.TrimSuffix(p.Issuer, "/")] = true
	}
}
