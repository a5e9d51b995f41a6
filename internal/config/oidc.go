package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// OIDC configures sign-in. Providers holds those of oidc.providers; All also returns the one of the flat keys.
type OIDC struct {
	OIDCProvider
	Providers            []OIDCProvider
	ConsoleURLs          []string
	SessionExpiry        time.Duration
	UserApprovalRequired bool
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
	GroupsMap        map[string]string
	Roles            map[mesh.Role][]string // the groups of each role

	EmailVerifiedRequired bool
	UseExpiryFromToken    bool
	PKCE                  bool
	Recheck               time.Duration // zero means never
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
		oidcSection + "user_approval_required", boolean(&o.UserApprovalRequired), "false", shared,
		"Whether a person who signs in for the first time must wait until an administrator approves the user. Until then, the person has no access, and their devices wait too.",
	}, key{
		oidcSection + "providers", providers(&o.Providers), "", shared,
		"Additional providers: a list of sections, each with the `oidc` keys of one provider, written without `oidc.`. People choose a provider on the login page.",
	}, key{
		oidcSection + "console_urls", list(&o.ConsoleURLs, "URLs", parseConsoleURL), "", shared,
		"URLs of the consoles to which people may sign in, with a provider or a passkey, such as `https://console.example.com/admin/`. The server sends people back to no other address. Default: `<server_url>/admin/`.",
	}, key{
		oidcSection + "session_expiry", duration(&o.SessionExpiry, time.Minute, 365*24*time.Hour), "24h", shared,
		"How long a person stays signed in to the console and the command line.",
	})
}

func providerKeys(p *OIDCProvider) []key {
	return []key{
		{
			oidcSection + "issuer", scalar(&p.Issuer, "a URL", parseIssuer), "", shared,
			"URL of the OpenID Connect provider with which people sign in to add devices, exactly as the provider spells it. The URL must begin with `https://`, unless the provider runs on the same machine as the server.",
		},
		{oidcSection + "client_id", text(&p.ClientID), "", shared, "ID of the client that you register with the provider. Its redirect URI is `<server_url>/oidc/callback`."},
		{oidcSection + "client_secret", secret(&p.ClientSecret), "", none, "Client secret that the provider issues. The secret is never logged."},
		{
			oidcSection + "client_secret_path", filePath(&p.ClientSecretPath), "", none,
			"File that contains the client secret, instead of `oidc.client_secret`. The path may contain environment variables such as `$CREDENTIALS_DIRECTORY`.",
		},
		{
			oidcSection + "name", text(&p.Name), "", none,
			"Name of the provider on login pages. Default: the host of `oidc.issuer`.",
		},
		{
			oidcSection + "scope", list(&p.Scope, "scopes", parseText), "openid,profile,email", shared,
			"Scopes that the server requests. Some providers send the groups of a person only if you request an additional scope.",
		},
		{
			oidcSection + "extra_params", texts(&p.ExtraParams, parseText), "", shared,
			"Additional query parameters for the provider's login page, such as `domain_hint`.",
		},
		{
			oidcSection + "allowed_domains", list(&p.AllowedDomains, "domains", parseText), "", shared,
			"Domains whose email addresses may sign in. If you set neither this key nor `oidc.allowed_users` nor `oidc.allowed_groups`, everyone with an account at the provider may sign in. If you set more than one of these keys, a person must match all of them.",
		},
		{oidcSection + "allowed_users", list(&p.AllowedUsers, "email addresses", parseText), "", shared, "Email addresses of the people who may sign in."},
		{oidcSection + "allowed_groups", list(&p.AllowedGroups, "groups", parseText), "", shared, "Groups whose members may sign in, as the provider spells them."},
		{
			oidcSection + "groups_claim", text(&p.GroupsClaim), "groups", shared,
			"Name of the claim that contains the groups of a person. To refer to a nested claim, separate the names with dots.",
		},
		{
			oidcSection + "groups_map", texts(&p.GroupsMap, parseGroup), "", shared,
			"Groups that count, with their names in the policy: a section of texts, such as `/staff: staff` or `0b1f…: dev` for an object ID of Microsoft Entra ID. The server ignores all other groups of the provider. Without this key, it uses the names that the provider sends.",
		},
		{
			oidcSection + "roles", roles(&p.Roles), "", shared,
			"Roles that groups give to people: a section with the keys `admin`, `operator` and `read`, each with a list of groups, named as in the policy. Of several roles, a person gets the highest. Everyone else who signs in is a `member`. See [identity.md](identity.md#roles).",
		},
		{
			oidcSection + "email_verified_required", boolean(&p.EmailVerifiedRequired), "true", shared,
			"Whether to ignore email addresses that the provider has not verified. With `true`, such an address does not match `oidc.allowed_domains` or `oidc.allowed_users`.",
		},
		{
			oidcSection + "use_expiry_from_token", boolean(&p.UseExpiryFromToken), "false", shared,
			"Whether a node expires together with the ID token of its owner's sign-in, instead of after `node.expiry`.",
		},
		{
			oidcSection + "pkce.enabled", boolean(&p.PKCE), "false", shared,
			"Whether to use PKCE even if the provider does not announce support for it. If the provider announces support, the server always uses PKCE.",
		},
		{
			oidcSection + "recheck", duration(&p.Recheck, 0, 30*24*time.Hour), "0", shared,
			"How often the server asks the provider whether each person still has an account, such as `15m`. People who do not are suspended. The server then requests and stores refresh tokens. `0` means never. See [identity.md](identity.md#find-out-who-has-left).",
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
func texts(dst *map[string]string, parse func(string) (string, error)) value {
	const takes = "a section of texts"
	read := func(n *yaml.Node, fail failFunc) {
		*dst = nil
		if n.Kind != yaml.MappingNode {
			fail(n, "", wrongType("must be "+takes+", got "+kindOf(n)))
			return
		}
		found := map[string]string{}
		for name, v := range pairs(n) {
			if s, ok := parsed(v, "."+name.Value, "text", parse, fail); ok {
				found[name.Value] = s
			}
		}
		if len(found) > 0 {
			*dst = found
		}
	}
	return value{takes: takes, structured: true, read: read, show: func() any { return *dst }}
}

// groupName matches what may follow group: in the policy.
var groupName = regexp.MustCompile(`^[^\s:*,@]{1,128}$`)

func parseGroup(s string) (string, error) {
	if !groupName.MatchString(s) {
		return "", errors.New("must be the name of a group in the policy, without group:, spaces and any of : * , @")
	}
	return s, nil
}

// roles returns a value that is a section with a list of groups for each role.
func roles(dst *map[mesh.Role][]string) value {
	const takes = "a section with lists of groups"
	read := func(n *yaml.Node, fail failFunc) {
		*dst = nil
		if n.Kind != yaml.MappingNode {
			fail(n, "", wrongType("must be "+takes+", got "+kindOf(n)))
			return
		}
		found := map[mesh.Role][]string{}
		for name, v := range pairs(n) {
			here := "." + name.Value
			role, err := mesh.ParsePersonRole(name.Value)
			if err == nil && role == mesh.RoleMember {
				err = errors.New("everyone without another role is a member; remove this key")
			}
			if err != nil {
				fail(name, here, err)
				continue
			}
			var groups []string
			list(&groups, "groups", parseRoleGroup).read(v, func(n *yaml.Node, more string, err error) { fail(n, here+more, err) })
			found[role] = append(found[role], groups...)
		}
		if len(found) > 0 {
			*dst = found
		}
	}
	return value{takes: takes, structured: true, read: read, show: func() any { return *dst }}
}

// parseRoleGroup accepts a group as the provider spells it, too, and returns the name that users have it with.
func parseRoleGroup(s string) (string, error) {
	return parseGroup(strings.Join(strings.Fields(strings.TrimPrefix(s, "/")), "-"))
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

// parseConsoleURL accepts plain HTTP too, because a console may be reached through an SSH tunnel.
func parseConsoleURL(s string) (string, error) {
	if _, err := parseURL("http", "https")(s); err != nil {
		return "", err
	}
	u, err := url.Parse(s)
	if err != nil || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", errors.New("must be a URL without a query, such as https://console.example.com/admin/")
	}
	return s, nil
}

func (l *loader) settleOIDC() {
	const issuer, list = oidcSection + "issuer", oidcSection + "providers"
	o := &l.config.OIDC
	// These keys are not about the first provider. Those for sessions also apply to people with passkeys.
	others := []string{list, oidcSection + "console_urls", oidcSection + "session_expiry", oidcSection + "user_approval_required"}
	if first := l.firstGiven(oidcSection, others...); o.Issuer == "" && first != "" && l.sound(issuer) {
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
