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

// ExportedVersion is the version of Headscale whose schema Exported has.
const ExportedVersion = "v0.29.1"

// noSecret is a bcrypt hash that no known secret has. A key with it keeps its id, but cannot be used.
const noSecret = "$2a$04$" + "....................................................."

// Exported is a database for Headscale 0.29.
type Exported struct {
	Tables Tables
	// Last is the last id of each table that was ever used. New ids must be greater.
	Last map[string]int64
	// Lost lists what Headscale cannot store, with the reason.
	Lost []string
}

// Export maps a mesh to the tables of Headscale 0.29. policy is the policy in force.
func Export(s *mesh.Snapshot, policy string, now mesh.Time) *Exported {
	e := &export{s: s, now: now, keys: map[mesh.KeyID]bool{}, Exported: Exported{Tables: Tables{}, Last: map[string]int64{
		"users": int64(s.Counters.User), "nodes": int64(s.Counters.Node), "pre_auth_keys": int64(s.Counters.PreAuth), "api_keys": int64(s.Counters.API),
	}}}
	e.users()
	e.preAuthKeys()
	e.apiKeys()
	e.nodes()
	if policy != "" {
		e.add("policies", Row{"id": int64(1), "data": policy, "created_at": timeText(now), "updated_at": timeText(now)})
	}
	e.rest(policy)
	for _, id := range migrations() {
		e.add("migrations", Row{"id": id})
	}
	e.add("database_versions", Row{"id": int64(1), "version": ExportedVersion, "updated_at": timeText(now)})
	return &e.Exported
}

// Schema returns the statements that create the tables of Headscale 0.29 in SQLite. Headscale compares them with its own when
// it starts.
func Schema() []string {
	const created = ", created_at datetime"
	const times = created + ", updated_at datetime, deleted_at datetime"
	const id = "id integer PRIMARY KEY AUTOINCREMENT, "
	return []string{
		"CREATE TABLE migrations(id text, PRIMARY KEY(id))",
		"CREATE TABLE users(" + id + "name text, display_name text, email text, provider_identifier text, provider text, profile_pic_url text" + times + ")",
		"CREATE INDEX idx_users_deleted_at ON users(deleted_at)",
		"CREATE UNIQUE INDEX idx_provider_identifier ON users(provider_identifier) WHERE provider_identifier IS NOT NULL",
		"CREATE UNIQUE INDEX idx_name_provider_identifier ON users(name, provider_identifier)",
		"CREATE UNIQUE INDEX idx_name_no_provider_identifier ON users(name) WHERE provider_identifier IS NULL",
		"CREATE TABLE pre_auth_keys(" + id + "key text, prefix text, hash blob, user_id integer, reusable numeric, ephemeral numeric DEFAULT false, " +
			"used numeric DEFAULT false, tags text, expiration datetime" + created +
			", CONSTRAINT fk_pre_auth_keys_user FOREIGN KEY(user_id) REFERENCES users(id) ON DELETE SET NULL)",
		"CREATE UNIQUE INDEX idx_pre_auth_keys_prefix ON pre_auth_keys(prefix) WHERE prefix IS NOT NULL AND prefix != ''",
		"CREATE TABLE api_keys(" + id + "prefix text, hash blob, expiration datetime, last_seen datetime" + created + ")",
		"CREATE UNIQUE INDEX idx_api_keys_prefix ON api_keys(prefix)",
		"CREATE TABLE nodes(" + id + "machine_key text, node_key text, disco_key text, endpoints text, host_info text, ipv4 text, ipv6 text, hostname text, " +
			"given_name varchar(63), user_id integer, register_method text, tags text, auth_key_id integer, last_seen datetime, expiry datetime, approved_routes text" + times +
			", CONSTRAINT fk_nodes_user FOREIGN KEY(user_id) REFERENCES users(id) ON DELETE CASCADE" +
			", CONSTRAINT fk_nodes_auth_key FOREIGN KEY(auth_key_id) REFERENCES pre_auth_keys(id))",
		"CREATE TABLE policies(" + id + "data text" + times + ")",
		"CREATE INDEX idx_policies_deleted_at ON policies(deleted_at)",
		"CREATE TABLE database_versions(id integer PRIMARY KEY, version text NOT NULL, updated_at datetime)",
	}
}

// ExportedTables returns the tables of an export, each after those that it refers to.
func ExportedTables() []string {
	return []string{"migrations", "database_versions", "users", "pre_auth_keys", "api_keys", "nodes", "policies"}
}

// migrations returns the steps that Headscale must not run, because the tables already have their result.
func migrations() []string {
	return []string{
		"SCHEMA_INIT", "202501221827", "202501311657", "202502070949", "202502131714", "202502171819", "202505091439", "202505141324", "202507021200", "202510311551",
		"202511101554-drop-old-idx", "202511011637-preauthkey-bcrypt", "202511122344-remove-newline-index", "202511131445-node-forced-tags-to-tags",
		"202601121700-migrate-hostinfo-request-tags", "202602201200-clear-tagged-node-user-id", "202605221435-clear-zero-time-node-expiry",
		"202606181200-recover-null-tags-node-user-id",
	}
}

type export struct {
	Exported
	s    *mesh.Snapshot
	now  mesh.Time
	keys map[mesh.KeyID]bool // whether a pre-auth key that was exported makes nodes ephemeral
}

func (e *export) add(table string, row Row) { e.Tables[table] = append(e.Tables[table], row) }

func (e *export) lose(format string, args ...any) {
	e.Lost = append(e.Lost, fmt.Sprintf(format, args...))
}

func (e *export) users() {
	for u := range e.s.Users.All() {
		row := Row{
			"id": int64(u.ID), "name": u.Name, "display_name": u.DisplayName, "email": u.Email, "profile_pic_url": u.ProfilePicURL, "provider": "",
			"created_at": timeText(u.CreatedAt), "updated_at": timeText(e.now),
		}
		if u.ProviderID != "" {
			row["provider"], row["provider_identifier"] = mesh.ProviderOIDC, u.ProviderID
		}
		e.add("users", row)
		switch {
		case u.SuspendedAt != 0:
			e.lose("user %s (%s): Headscale cannot suspend people; their nodes and pre-auth keys are exported as expired", u.ID, u.Name)
		case u.NeedsApproval:
			e.lose("user %s (%s): Headscale does not know that the person waits for approval", u.ID, u.Name)
		case u.Held():
			e.lose("user %s (%s): Headscale does not know that you have to decide whether the person is suspended", u.ID, u.Name)
		}
		if u.Role != "" {
			e.lose("user %s (%s): the role %s; Headscale has no roles", u.ID, u.Name, u.Role)
		}
	}
}

func (e *export) suspended(id mesh.UserID) bool {
	u, ok := e.s.Users.Get(id)
	return ok && u.SuspendedAt != 0
}

func (e *export) preAuthKeys() {
	for k := range e.s.PreAuthKeys.All() {
		hash, expiry := string(k.Bcrypt), k.Expiry
		switch _, known := e.s.Users.Get(k.User); {
		case !known && len(k.Tags) == 0:
			e.lose("pre-auth key %s: its user was deleted", k.ID)
			continue
		case hash == "" && (expiry.Reached(e.now) || k.Used && !k.Reusable): // nobody can use it anyway
			hash = noSecret
		case hash == "":
			hash, expiry = noSecret, e.now
			e.lose("pre-auth key %s: Headscale's hash of it is not known, so it is exported as expired; create a new one", k.ID)
		}
		e.keys[k.ID] = k.Ephemeral
		if e.suspended(k.User) && !expiry.Reached(e.now) {
			expiry = e.now
		}
		e.preAuthKey(k, hash, expiry)
	}
}

func (e *export) preAuthKey(k *mesh.PreAuthKey, hash string, expiry mesh.Time) {
	row := Row{
		"id": int64(k.ID), "key": "", "prefix": k.Prefix, "hash": []byte(hash), "reusable": number(k.Reusable), "ephemeral": number(k.Ephemeral), "used": number(k.Used),
		"tags": listText(k.Tags), "created_at": timeText(k.CreatedAt),
	}
	if expiry != 0 {
		row["expiration"] = timeText(expiry)
	}
	if _, ok := e.s.Users.Get(k.User); ok {
		row["user_id"] = int64(k.User)
	}
	e.add("pre_auth_keys", row)
}

func (e *export) apiKeys() {
	for k := range e.s.APIKeys.All() {
		name := fmt.Sprintf("API key %s (%s)", k.ID, k.Prefix)
		if k.Comment != "" {
			name += fmt.Sprintf(" %q", k.Comment)
		}
		switch {
		case k.Expiry.Reached(e.now) && k.Bcrypt == "":
		case k.Bcrypt == "":
			e.lose("%s: Headscale's hash of it is not known; create a new one", name)
		case k.Role != mesh.RoleAdmin || len(k.Scopes) > 0:
			e.lose("%s: it does not allow everything, as every API key of Headscale does", name)
		case len(k.Prefix) == identity.FirstAPIPrefix:
			e.lose("%s: Headscale before 0.25 created it, and 0.28 and newer refuse it; create a new one", name)
		default:
			row := Row{"id": int64(k.ID), "prefix": k.Prefix, "hash": []byte(k.Bcrypt), "created_at": timeText(k.CreatedAt)}
			if k.Expiry != 0 {
				row["expiration"] = timeText(k.Expiry)
			}
			e.add("api_keys", row)
		}
	}
}

func (e *export) nodes() {
	for n := range e.s.Nodes.All() {
		if n.NeedsApproval {
			e.lose("node %s (%s): it waits for approval, and Headscale would give it access", n.ID, n.Name)
			continue
		}
		expiry := n.Expiry
		if n.Suspended() && !expiry.Reached(e.now) {
			expiry = e.now
		}
		seen := n.Presence.LastSeen
		if n.Presence.Online {
			seen = e.now
		}
		row := Row{
			"id": int64(n.ID), "machine_key": n.MachineKey.String(), "node_key": n.NodeKey.String(), "disco_key": n.Net.DiscoKey.String(),
			"endpoints": listText(texts(n.Net.Endpoints)), "host_info": hostText(n), "hostname": n.Hostname, "given_name": n.Name, "register_method": methodText(n.Method),
			"tags": listText(n.Tags), "approved_routes": listText(texts(approved(n))), "created_at": timeText(n.CreatedAt), "updated_at": timeText(e.now),
		}
		for column, a := range map[string]netip.Addr{"ipv4": n.IPv4, "ipv6": n.IPv6} {
			if a.IsValid() {
				row[column] = a.String()
			}
		}
		for column, at := range map[string]mesh.Time{"expiry": expiry, "last_seen": seen} {
			if at != 0 {
				row[column] = timeText(at)
			}
		}
		if !n.Tagged() {
			row["user_id"] = int64(n.Owner)
		}
		if key := e.keyOf(n); key != 0 {
			row["auth_key_id"] = int64(key)
		}
		e.add("nodes", row)
		if n.StableID == "" && slices.ContainsFunc(n.Routes, mesh.Exit) {
			e.lose("node %s (%s): clients that use it as their exit node must select it again", n.ID, n.Name)
		}
	}
}

// keyOf returns the pre-auth key of a node. In Headscale it decides whether the node is ephemeral, so that a node whose key was
// deleted gets another one, which nobody can use.
func (e *export) keyOf(n *mesh.Node) mesh.KeyID {
	ephemeral, known := e.keys[n.PreAuthKey]
	switch {
	case known && ephemeral == n.Ephemeral:
		return n.PreAuthKey
	case !n.Ephemeral:
		return 0
	}
	e.Last["pre_auth_keys"]++
	k := &mesh.PreAuthKey{
		ID: mesh.KeyID(e.Last["pre_auth_keys"]), Prefix: fmt.Sprintf("deleted%05d", e.Last["pre_auth_keys"]%100000), User: n.Owner, Tags: n.Tags,
		Ephemeral: true, CreatedAt: n.CreatedAt,
	}
	e.preAuthKey(k, noSecret, e.now)
	return k.ID
}

// rest lists what Headscale has no tables for.
func (e *export) rest(policy string) {
	notes, preferences, disabled := e.decisions()
	if !strings.Contains(policy, "autoApprovers") {
		disabled = 0
	}
	withGroups := 0
	for u := range e.s.Users.All() {
		if len(u.Groups) > 0 {
			withGroups++
		}
	}
	for _, r := range []struct {
		n          int
		what, whys string
	}{
		{e.s.Passkeys.Len(), "passkeys", "people can sign in with an identity provider only"},
		{e.s.Webhooks.Len(), "webhooks", "Headscale sends none"},
		{e.s.Invitations.Len(), "invitations", "Headscale has none"},
		{e.s.Groups.Len(), "groups of the directory", "the policy of Headscale must list their members"},
		{withGroups, "users with groups of their identity provider", "the policy of Headscale must list the members of each group"},
		{e.s.Rechecks.Len(), "people who are checked at their identity provider", "Headscale does not ask whether they still have an account"},
		{e.s.Relays.Len(), "relays", "Headscale uses those in its configuration only"},
		{e.s.Reservations.Len(), "reservations of names and addresses", "Headscale has none, and may give them to other nodes"},
		{notes, "notes about nodes", "Headscale has none"},
		{preferences, "preferences of routes", "Headscale has none"},
		{disabled, "routes that were disabled", "the autoApprovers of the policy may approve them again"},
	} {
		if r.n > 0 {
			e.lose("%d %s: %s", r.n, r.what, r.whys)
		}
	}
	if v, ok := e.s.Settings.ByKey(mesh.SettingDNS); ok && v.Source == mesh.SourceAPI {
		e.lose("DNS settings that were changed in Fairlead: change them in the configuration of Headscale too")
	}
	if mesh.NoiseKeyOf(e.s).Generation() > 1 {
		e.lose("the Noise key, which was rotated: Headscale still has the old one, so restart the client on every device after you go back")
	}
}

// decisions counts what people decided about nodes and their routes, and Headscale does not know.
func (e *export) decisions() (notes, preferences, disabled int) {
	for n := range e.s.Nodes.All() {
		if n.Note.Text != "" {
			notes++
		}
		for _, r := range n.AllRoutes {
			if r.Preference != 0 {
				preferences++
			}
			if r.Decided && !r.Enabled {
				disabled++
			}
		}
	}
	return notes, preferences, disabled
}

// hostText returns what the device said about itself, in the form of Headscale.
func hostText(n *mesh.Node) string {
	members := map[string]json.RawMessage{}
	_ = json.Unmarshal([]byte(n.Host), &members) // stays empty on an error
	set := func(name string, value any) {
		if text, err := json.Marshal(value); err == nil {
			members[name] = text
		}
	}
	set("Hostname", n.Hostname)
	if len(n.RoutableIPs) > 0 {
		set("RoutableIPs", n.RoutableIPs)
	}
	if n.Net.HomeRelay != 0 {
		set("NetInfo", map[string]int{"PreferredDERP": n.Net.HomeRelay})
	}
	text, err := json.Marshal(members)
	if err != nil {
		return "{}"
	}
	return string(text)
}

func approved(n *mesh.Node) (all []netip.Prefix) {
	for _, r := range n.AllRoutes {
		if r.Enabled {
			all = append(all, r.Prefix)
		}
	}
	return all
}

func methodText(m mesh.RegisterMethod) string {
	if m == mesh.RegisterApproved {
		return "cli"
	}
	return string(m)
}

func texts[T fmt.Stringer](list []T) (all []string) {
	for _, v := range list {
		all = append(all, v.String())
	}
	return all
}

func listText(list []string) string {
	text, err := json.Marshal(append([]string{}, list...))
	if err != nil {
		return "[]"
	}
	return string(text)
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// timeText returns a time as Headscale writes it to SQLite.
func timeText(at mesh.Time) string {
	return at.Time().UTC().Format("2006-01-02 15:04:05.999999999-07:00")
}
