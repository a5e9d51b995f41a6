package headscale

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Options are what an import needs to know about both servers.
type Options struct {
	// V4 and V6 are the ranges of the new server, OldV4 and OldV6 those of Headscale.
	V4, V6, OldV4, OldV6 netip.Prefix
	Now                  mesh.Time
}

// Node is a node with what Headscale knows about it.
type Node struct {
	*mesh.Node
	HostInfo json.RawMessage
	// Approved lists the routes that were approved.
	Approved []netip.Prefix
	// AskedTags lists the tags that the device requested. Before 0.28 the policy decided at each use whether they
	// count.
	AskedTags []string
	Net       mesh.Net
	LastSeen  mesh.Time
}

// Plan is what an import creates.
type Plan struct {
	Users       []*mesh.User
	Nodes       []Node
	PreAuthKeys []*mesh.PreAuthKey
	APIKeys     []*mesh.APIKey
	// Policy is the newest policy in the database, or empty.
	Policy string
	// LongName is an example of a DNS name that contains the name of a user, as in Headscale 0.22, without the base domain.
	// It is empty if names do not.
	LongName string
	// TaggedInGroups is set if there are devices with tags that also belonged to the groups of a user, as in Headscale before
	// 0.26.
	TaggedInGroups bool
	// Version is the version of Headscale, as far as the database tells.
	Version  string
	Repairs  []string
	Refusals []string

	known map[mesh.UserID]bool
}

func (p *Plan) repair(format string, args ...any) {
	p.Repairs = append(p.Repairs, fmt.Sprintf(format, args...))
}

func (p *Plan) refuse(format string, args ...any) {
	p.Refusals = append(p.Refusals, fmt.Sprintf(format, args...))
}

// Map maps the tables of Headscale.
func Map(t Tables, o Options) *Plan {
	p := &Plan{Version: version(t), known: map[mesh.UserID]bool{}}
	switch {
	case t["users"] == nil && t["nodes"] == nil && t["machines"] == nil:
		p.refuse("the database has no tables of Headscale 0.22 or newer; upgrade an older Headscale to 0.25 first")
		return p
	case t["nodes"] == nil && t["machines"] == nil:
		p.refuse("the database has neither a table nodes nor machines")
		return p
	}
	p.mapUsers(t["users"])
	p.mapPreAuthKeys(t)
	p.mapAPIKeys(t["api_keys"])
	p.mapNodes(t, o)
	if t["nodes"] == nil {
		p.LongName = p.longName()
	}
	p.TaggedInGroups = !hasColumn(t, "nodes", "approved_routes") && slices.ContainsFunc(p.Nodes, func(n Node) bool { return len(n.Tags) > 0 && n.CreatedBy != 0 })
	var newest int64
	for _, row := range t["policies"] {
		if id := row.number("id"); !row.deleted() && id > newest {
			newest, p.Policy = id, row.text("data")
		}
	}
	return p
}

func (p *Plan) longName() string {
	for _, n := range p.Nodes {
		for _, u := range p.Users {
			if u.ID == n.Owner {
				return n.Name + "." + u.Name
			}
		}
	}
	return ""
}

func hasColumn(t Tables, table, column string) bool {
	return len(t[table]) > 0 && t[table][0].has(column)
}

// version returns the version that wrote the database, or a range of versions.
func version(t Tables) string {
	for _, row := range t["database_versions"] {
		if v := row.text("version"); v != "" {
			return v
		}
	}
	switch {
	case t["nodes"] == nil:
		return "0.22 or older"
	case hasColumn(t, "nodes", "tags") || hasColumn(t, "pre_auth_keys", "prefix"):
		return "0.28"
	case hasColumn(t, "nodes", "approved_routes"):
		return "0.26 or 0.27"
	case hasColumn(t, "users", "provider_identifier"):
		return "0.24 or 0.25"
	}
	return "0.23 to 0.27"
}

// maxUserName is the maximum length of a user name.
const maxUserName = 128

func (p *Plan) mapUsers(rows []Row) {
	taken := map[string]bool{"tagged-devices": true}
	claim := func(name string) bool {
		if !validUserName(name) || taken[mesh.FoldName(name)] {
			return false
		}
		taken[mesh.FoldName(name)] = true
		return true
	}
	var renamed []Row
	add := func(row Row, name string) {
		u := &mesh.User{
			ID: mesh.UserID(row.number("id")), Name: name, DisplayName: row.text("display_name"), Email: row.text("email"), ProfilePicURL: row.text("profile_pic_url"),
			CreatedAt: row.time("created_at"),
		}
		if id := row.text("provider_identifier"); id != "" {
			u.Provider, u.ProviderID = mesh.ProviderOIDC, id
		}
		p.Users, p.known[u.ID] = append(p.Users, u), true
	}
	for _, local := range []bool{true, false} { // a local user keeps its name if a person from a provider has the same
		for _, row := range rows {
			switch id := row.number("id"); {
			case row.deleted() || (row.text("provider_identifier") == "") != local:
			case id <= 0 || id > mesh.MaxID || mesh.UserID(id) == mesh.TaggedDevices:
				p.refuse("user %q has the invalid id %d", row.text("name"), id)
			case claim(row.text("name")):
				add(row, row.text("name"))
			default:
				renamed = append(renamed, row)
			}
		}
	}
	for _, row := range renamed {
		id, was := row.number("id"), row.text("name")
		name := ""
		candidates := []string{row.text("email"), plainName(was), plainName(was) + fmt.Sprintf("-%d", id), fmt.Sprintf("user-%d", id), fmt.Sprintf("headscale-user-%d", id)}
		for _, c := range candidates {
			if name == "" && claim(c) {
				name = c
			}
		}
		if name == "" {
			p.refuse("user %d (%q) cannot be given a name", id, was)
			continue
		}
		if was != "" || name != row.text("email") { // a person with an address and no name is known by the address
			p.repair("user %d: the name %q is invalid or used twice, and becomes %q; check whether the policy uses it", id, was, name)
		}
		add(row, name)
	}
}

func validUserName(name string) bool {
	return name != "" && len(name) <= maxUserName && name == plainName(name)
}

// plainName replaces what a user name cannot contain.
func plainName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._@-", r) {
			return r
		}
		return '-'
	}, name)
	name = strings.TrimLeft(name, "0123456789._@-")
	return name[:min(len(name), maxUserName-12)]
}

// knownUser returns the id of a user, or zero if there is none with this id.
func (p *Plan) knownUser(id int64) mesh.UserID {
	if !p.known[mesh.UserID(id)] {
		return 0
	}
	return mesh.UserID(id)
}

// expired is the expiry of keys without a valid one.
const expired mesh.Time = 1

// keyExpiry returns when a key expires. Headscale treats a zero time as the past, and no time as never.
func keyExpiry(row Row) mesh.Time {
	at, zero := row.moment("expiration")
	if zero {
		return expired
	}
	return at
}

func (p *Plan) mapPreAuthKeys(t Tables) {
	tags := map[int64][]string{}
	for _, row := range t["pre_auth_key_acl_tags"] { // before 0.24
		tags[row.number("pre_auth_key_id")] = append(tags[row.number("pre_auth_key_id")], row.text("tag"))
	}
	seen := map[string]bool{}
	for _, row := range t["pre_auth_keys"] {
		id := row.number("id")
		k := &mesh.PreAuthKey{
			ID: mesh.KeyID(id), User: p.knownUser(row.number("user_id")), Reusable: row.flag("reusable"), Ephemeral: row.flag("ephemeral"), Used: row.flag("used"),
			PreApproved: true, Description: row.text("description"), Tags: row.list("tags"), Expiry: keyExpiry(row), CreatedAt: row.time("created_at"),
		}
		if len(k.Tags) == 0 {
			k.Tags = tags[id]
		}
		k.Tags = sortedTags(k.Tags)
		if revoked := row.time("revoked"); revoked != 0 && (k.Expiry == 0 || revoked < k.Expiry) {
			k.Expiry = revoked
		}
		if former, ok := identity.FormerPreAuthKey(row.text("key")); ok {
			k.Prefix, k.Hash = former.Prefix, former.Hash
		} else {
			k.Prefix, k.Bcrypt = row.text("prefix"), mesh.Bcrypt(row.text("hash"))
		}
		switch {
		case id <= 0 || id > mesh.MaxID:
			p.refuse("a pre-auth key has the invalid id %d", id)
		case k.User == 0 && len(k.Tags) == 0:
			p.repair("pre-auth key %d is left out: its user does not exist, and it has no tags", id)
		case k.Prefix == "" || k.Bcrypt != "" && !identity.UsableBcrypt(k.Bcrypt):
			p.repair("pre-auth key %d is left out: it has an unknown form", id)
		case seen[k.Prefix]:
			p.repair("pre-auth key %d is left out: another key has the same prefix", id)
		default:
			seen[k.Prefix] = true
			p.PreAuthKeys = append(p.PreAuthKeys, k)
		}
	}
}

// mapAPIKeys maps API keys. Each allowed everything.
func (p *Plan) mapAPIKeys(rows []Row) {
	seen := map[string]bool{}
	for _, row := range rows {
		id := row.number("id")
		k := &mesh.APIKey{
			ID: mesh.KeyID(id), Prefix: row.text("prefix"), Bcrypt: mesh.Bcrypt(row.text("hash")), Access: mesh.Access{Role: mesh.RoleAdmin},
			Comment: "imported from Headscale", Expiry: keyExpiry(row), CreatedAt: row.time("created_at"),
		}
		switch {
		case id <= 0 || id > mesh.MaxID:
			p.refuse("an API key has the invalid id %d", id)
		case k.Prefix == "" || !identity.UsableBcrypt(k.Bcrypt):
			p.repair("API key %d is left out: it has an unknown form", id)
		case seen[k.Prefix]:
			p.repair("API key %d is left out: another key has the same prefix", id)
		default:
			seen[k.Prefix] = true
			p.APIKeys = append(p.APIKeys, k)
		}
	}
}
