package sqlstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// columnType is one of the three types that both engines store alike.
type columnType byte

const (
	integer columnType = iota
	text
	blob
)

type column struct {
	name string
	typ  columnType
}

// insert is one multi-row statement of a commit: the columns it sets of a
// table, the first of them the key.
type insert struct {
	table   string
	key     string
	columns []column
	// replace says that a row which exists is given the new values.
	replace bool
}

func (in *insert) names() string {
	names := make([]string, len(in.columns))
	for i, c := range in.columns {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}

// onConflict is understood by both engines.
func (in *insert) onConflict() string {
	if !in.replace {
		return ""
	}
	var set []string
	for _, c := range in.columns[1:] {
		set = append(set, c.name+" = excluded."+c.name)
	}
	return " ON CONFLICT (" + in.key + ") DO UPDATE SET " + strings.Join(set, ", ")
}

func upsert(table string, columns ...column) *insert {
	return &insert{table: table, key: "id", columns: columns, replace: true}
}

// schema names the statements of a commit. A commit sends each at most once,
// whatever its size.
type schema struct {
	users, nodes, net, presence, preAuth, api, logins, settings, policies, sshGrants, webhooks, progress, letters, log, audit, transitions *insert
	facts, preAuthUses, apiUses, leaders, receipts                                                                                         *insert
}

func newSchema() *schema {
	return &schema{
		users: upsert("users", column{"id", integer}, column{"name", text}, column{"display_name", text}, column{"email", text},
			column{"provider", text}, column{"provider_id", text}, column{"profile_pic_url", text}, column{"created_at", integer}),
		nodes: upsert("nodes", column{"id", integer}, column{"owner", integer}, column{"created_by", integer}, column{"machine_key", text},
			column{"node_key", text}, column{"hostname", text}, column{"name", text}, column{"renamed", integer}, column{"ipv4", text}, column{"ipv6", text}, column{"tags", text},
			column{"method", text}, column{"preauth_key", integer}, column{"ephemeral", integer}, column{"os", text}, column{"arch", text},
			column{"client_version", text}, column{"cap_version", integer}, column{"host", text}, column{"routable_ips", text}, column{"routes", text}, column{"all_routes", text}, column{"primary_routes", text}, column{"unwell", integer},
			column{"expiry", integer}, column{"lapsed", integer}, column{"created_at", integer}, column{"updated_at", integer}),
		net:      upsert("node_net", column{"id", integer}, column{"endpoints", text}, column{"disco_key", text}, column{"home_relay", integer}),
		presence: upsert("node_net", column{"id", integer}, column{"online", integer}, column{"replica", text}, column{"conn", integer}, column{"last_seen", integer}),
		preAuth: upsert("preauth_keys", column{"id", integer}, column{"prefix", text}, column{"hash", blob}, column{"user_id", integer}, column{"reusable", integer},
			column{"ephemeral", integer}, column{"tags", text}, column{"used", integer}, column{"expiry", integer}, column{"created_at", integer}),
		api: upsert("api_keys", column{"id", integer}, column{"prefix", text}, column{"hash", blob}, column{"role", text}, column{"scopes", text}, column{"comment", text}, column{"expiry", integer}, column{"created_at", integer}),
		logins: upsert("logins", column{"id", integer}, column{"machine_key", text}, column{"node_key", text}, column{"user_id", integer},
			column{"rejected", text}, column{"until", integer}),
		settings: upsert("settings", column{"id", integer}, column{"key", text}, column{"value", text}, column{"source", text}, column{"pinned", integer},
			column{"updated_at", integer}),
		policies: upsert("policies", column{"id", integer}, column{"text", text}, column{"source", text}, column{"author", text}, column{"reason", text},
			column{"saved_at", integer}, column{"confirm_by", integer}, column{"revert_to", integer}),
		sshGrants: upsert("ssh_grants", column{"id", integer}, column{"src", integer}, column{"dst", integer}, column{"login", text},
			column{"rejected", integer}, column{"granted_by", text}, column{"until", integer}, column{"granted_at", integer}),
		webhooks: upsert("webhooks", column{"id", integer}, column{"url", text}, column{"description", text}, column{"events", text},
			column{"disabled", integer}, column{"salt", text}, column{"created_at", integer}, column{"updated_at", integer}),
		progress: upsert("webhook_progress", column{"id", integer}, column{"rev", integer}, column{"idx", integer}, column{"replica", text}, column{"until", integer},
			column{"failures", integer}, column{"last_success", integer}, column{"last_failure", integer}, column{"last_answer", text}),
		letters: upsert("dead_letters", column{"id", integer}, column{"webhook", integer}, column{"rev", integer}, column{"idx", integer}, column{"event", text},
			column{"attempts", integer}, column{"answer", text}, column{"at", integer}),
		facts:       upsert("node_facts", column{"id", integer}, column{"facts", text}),
		preAuthUses: upsert("preauth_key_uses", column{"id", integer}, column{"at", integer}, column{"addr", text}, column{"count", integer}),
		apiUses:     upsert("api_key_uses", column{"id", integer}, column{"at", integer}, column{"addr", text}),
		leaders: &insert{table: "route_leaders", columns: []column{
			{"prefix", text},
			{"rev", integer},
			{"at", integer},
			{"node", integer},
			{"name", text},
		}},
		receipts: upsert("receipts", column{"id", integer}, column{"owner", text}, column{"key", blob}, column{"request", blob}, column{"rev", integer},
			column{"object", text}, column{"answer", text}, column{"until", integer}),
		log: &insert{table: "log", columns: []column{{"rev", integer}, {"batch", blob}, {"prev", blob}, {"at", integer}, {"actor", text}, {"events", blob}}},
		audit: &insert{table: "audit", columns: []column{
			{"rev", integer},
			{"idx", integer},
			{"at", integer},
			{"actor", text},
			{"verb", text},
			{"object_kind", text},
			{"object_id", text},
			{"before", blob},
			{"after", blob},
			{"actor_kind", text},
			{"actor_id", text},
			{"actor_name", text},
		}},
		transitions: &insert{table: "presence", key: "node, minute, online", replace: true, columns: []column{
			{"node", integer},
			{"minute", integer},
			{"online", integer},
			{"at", integer},
			{"rev", integer},
			{"idx", integer},
		}},
	}
}

// changes gathers the rows of a commit. Of several values for one row only the
// last is sent; removals are sent first.
type changes struct {
	schema *schema
	gone   map[string]map[int64]bool // table → ids
	rows   map[*insert]map[int64][]any
	log    [][]any
	audit  [][]any
	// transitions are kept one for each node, minute and state
	transitions map[[3]int64][]any
	leaders     [][]any
}

func newChanges(s *schema) *changes {
	return &changes{schema: s, gone: map[string]map[int64]bool{}, rows: map[*insert]map[int64][]any{}, transitions: map[[3]int64][]any{}}
}

// order is the order in which the statements of a commit are sent.
func (s *schema) order() []*insert {
	return []*insert{
		s.users, s.nodes, s.net, s.presence, s.preAuth, s.api, s.logins, s.settings, s.policies, s.sshGrants, s.webhooks, s.progress, s.letters,
		s.facts, s.preAuthUses, s.apiUses, s.receipts,
	}
}

func (c *changes) put(in *insert, row ...any) {
	if c.rows[in] == nil {
		c.rows[in] = map[int64][]any{}
	}
	c.rows[in][row[0].(int64)] = row
}

func (c *changes) drop(id int64, ins ...*insert) {
	for _, in := range ins {
		if c.gone[in.table] == nil {
			c.gone[in.table] = map[int64]bool{}
		}
		c.gone[in.table][id] = true
		delete(c.rows[in], id)
	}
}

// add gathers the rows that an event changes.
func (c *changes) add(e mesh.Event) {
	s := c.schema
	switch e := e.(type) {
	case mesh.UserPut:
		u := e.User
		c.put(s.users, int64(u.ID), u.Name, u.DisplayName, u.Email, u.Provider, u.ProviderID, u.ProfilePicURL, int64(u.CreatedAt))
	case mesh.UserGone:
		c.drop(int64(e.ID), s.users)
	case mesh.NodePut:
		n := e.Node
		c.put(s.nodes, int64(n.ID), int64(n.Owner), int64(n.CreatedBy), textOf(n.MachineKey), textOf(n.NodeKey), n.Hostname, n.Name, bit(n.Renamed),
			textOf(n.IPv4), textOf(n.IPv6), join(n.Tags), string(n.Method), int64(n.PreAuthKey), bit(n.Ephemeral), n.OS, n.Arch,
			n.ClientVersion, int64(n.CapVersion), n.Host, joinText(n.RoutableIPs), joinText(n.Routes), routesText(n.AllRoutes), joinText(n.Primary), bit(n.Unwell), int64(n.Expiry), bit(n.Lapsed), int64(n.CreatedAt), int64(n.UpdatedAt))
	case mesh.NodeGone:
		c.drop(int64(e.ID), s.nodes, s.net, s.presence, s.facts)
	case mesh.NodeNet:
		c.put(s.net, int64(e.ID), joinText(e.Net.Endpoints), discoText(e.Net.DiscoKey), int64(e.Net.HomeRelay))
	case mesh.Online:
		c.put(s.presence, int64(e.ID), int64(1), e.Replica, e.Conn, int64(e.At))
	case mesh.Offline:
		c.put(s.presence, int64(e.ID), int64(0), "", int64(0), int64(e.At))
	case mesh.PreAuthKeyPut:
		k := e.Key
		c.put(s.preAuth, int64(k.ID), k.Prefix, k.Hash[:], int64(k.User), bit(k.Reusable), bit(k.Ephemeral), join(k.Tags), bit(k.Used), int64(k.Expiry), int64(k.CreatedAt))
	case mesh.PreAuthKeyGone:
		c.drop(int64(e.ID), s.preAuth, s.preAuthUses)
	case mesh.APIKeyPut:
		k := e.Key
		c.put(s.api, int64(k.ID), k.Prefix, k.Hash[:], string(k.Role), join(k.Scopes), k.Comment, int64(k.Expiry), int64(k.CreatedAt))
	case mesh.APIKeyGone:
		c.drop(int64(e.ID), s.api, s.apiUses)
	case mesh.LoginPut:
		l := e.Login
		c.put(s.logins, int64(l.ID), textOf(l.MachineKey), textOf(l.NodeKey), int64(l.User), l.Rejected, int64(l.Until))
	case mesh.LoginGone:
		c.drop(int64(e.ID), s.logins)
	case mesh.SettingPut:
		v := e.Setting
		c.put(s.settings, int64(v.ID), v.Key, v.Value, v.Source, bit(v.Pinned), int64(v.UpdatedAt))
	case mesh.SettingGone:
		c.drop(int64(e.ID), s.settings)
	case mesh.PolicyPut:
		p := e.Policy
		c.put(s.policies, int64(p.Version), p.Text, p.Source, p.Author, p.Reason, int64(p.SavedAt), int64(p.ConfirmBy), int64(p.RevertTo))
	case mesh.SSHGrantPut:
		g := e.Grant
		c.put(s.sshGrants, int64(g.ID), int64(g.Src), int64(g.Dst), g.User, bit(g.Rejected), g.By, int64(g.Until), int64(g.GrantedAt))
	case mesh.SSHGrantGone:
		c.drop(int64(e.ID), s.sshGrants)
	case mesh.WebhookPut:
		w := e.Webhook
		c.put(s.webhooks, int64(w.ID), w.URL, w.Description, join(w.Events), bit(w.Disabled), w.Salt, int64(w.CreatedAt), int64(w.UpdatedAt))
	case mesh.WebhookGone:
		c.drop(int64(e.ID), s.webhooks, s.progress)
	case mesh.WebhookMoved:
		p := e.Progress
		c.put(s.progress, int64(e.ID), int64(p.Rev), int64(p.Index), p.Replica, int64(p.Until), int64(p.Failures), int64(p.LastSuccess), int64(p.LastFailure), p.LastAnswer)
	case mesh.DeadLetterPut:
		l := e.Letter
		c.put(s.letters, int64(l.ID), int64(l.Webhook), int64(l.Rev), int64(l.Index), l.Event, int64(l.Attempts), l.Answer, int64(l.At))
	case mesh.DeadLetterGone:
		c.drop(int64(e.ID), s.letters)
	case mesh.NodeFacts:
		facts, _ := json.Marshal(e.Facts) // cannot fail
		c.put(s.facts, int64(e.Facts.Node), string(facts))
	case mesh.PreAuthKeyUsed:
		c.put(s.preAuthUses, int64(e.ID), int64(e.Use.At), e.Use.From, e.Use.Count)
	case mesh.APIKeyUsed:
		c.put(s.apiUses, int64(e.ID), int64(e.Use.At), e.Use.From)
	case mesh.Remembered:
		m := e.Receipt
		c.put(s.receipts, int64(m.ID), m.Owner, m.Key[:], m.Request[:], int64(m.Rev), m.Object, m.Answer, int64(m.Until))
	case mesh.Forgotten:
		c.drop(int64(e.ID), s.receipts)
	case mesh.AddressCursor, mesh.ClockSet: // in the head row
	}
}

// scanner is a row of either driver.
type scanner interface{ Scan(dest ...any) error }

const selectLog = "SELECT rev, batch, prev, at, actor, events FROM log WHERE rev > $1 ORDER BY rev LIMIT $2"

// rawEntry is an entry of which the events are not decoded yet.
type rawEntry struct {
	store.Entry
	actor  string
	events []byte
}

func scanEntry(r scanner) (rawEntry, error) {
	var e rawEntry
	var batch, prev []byte
	err := r.Scan(&e.Rev, &batch, &prev, &e.At, &e.actor, &e.events)
	copy(e.Batch[:], batch)
	copy(e.Prev[:], prev)
	return e, err
}

// entries decodes raws, which must follow after without a gap. The head was
// read before them.
func entries(raws []rawEntry, after store.Point, head store.Point) ([]store.Entry, error) {
	next := head
	if len(raws) > 0 && raws[0].Rev == after.Rev+1 {
		next = store.Point{Rev: after.Rev, Batch: raws[0].Prev}
	}
	switch anyBatch := after.Batch == (store.BatchID{}); {
	case head.Rev < after.Rev, next.Rev == after.Rev && next.Batch != after.Batch && !anyBatch:
		return nil, fmt.Errorf("%w: its newest revision is %d, and revision %d is missing or has changed", store.ErrRewound, head.Rev, after.Rev)
	case len(raws) == 0 && after.Rev != head.Rev:
		return nil, fmt.Errorf("%w: the log ends at %d, but entries after %d were requested", store.ErrPruned, head.Rev, after.Rev)
	}
	out := make([]store.Entry, len(raws))
	for i, raw := range raws {
		if raw.Rev != after.Rev+mesh.Revision(i)+1 {
			return nil, fmt.Errorf("%w: found revision %d, want the one after %d", store.ErrPruned, raw.Rev, after.Rev+mesh.Revision(i))
		}
		evs, err := mesh.DecodeEvents(raw.events)
		if err != nil {
			return nil, fmt.Errorf("revision %d: %w", raw.Rev, err)
		}
		if err := json.Unmarshal([]byte(raw.actor), &raw.Actor); err != nil {
			return nil, fmt.Errorf("revision %d: actor: %w", raw.Rev, err)
		}
		out[i] = raw.Entry
		out[i].Events = evs
	}
	return out, nil
}

// head is the row that writers lock.
type head struct {
	rev      mesh.Revision
	at       mesh.Time // of the newest entry
	batch    store.BatchID
	counters mesh.Counters
	// members are all counters of the row, also those of a newer binary: they
	// stay.
	members map[string]json.RawMessage
	clock   store.Clock
	now     mesh.Time // by clock, but not before at
	lazy    bool      // PostgreSQL would acknowledge a commit before it is on disk
}

// countersText is what the row keeps.
func (h *head) countersText() (string, error) {
	known, err := json.Marshal(h.counters)
	if err != nil {
		return "", err
	}
	if h.members == nil {
		return string(known), nil
	}
	if err := json.Unmarshal(known, &h.members); err != nil {
		return "", err
	}
	all, err := json.Marshal(h.members)
	return string(all), err
}

const selectHead = "SELECT rev, at, batch, counters"

func scanHead(r scanner, more ...any) (head, error) {
	var h head
	var counters string
	var batch []byte
	if err := r.Scan(append([]any{&h.rev, &h.at, &batch, &counters}, more...)...); err != nil {
		return h, err
	}
	copy(h.batch[:], batch)
	if counters == "" {
		return h, nil
	}
	if err := errors.Join(json.Unmarshal([]byte(counters), &h.counters), json.Unmarshal([]byte(counters), &h.members)); err != nil {
		return h, fmt.Errorf("counters of the head row: %w", err)
	}
	return h, nil
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// textOf is the text form of a key or address; an unset one is empty.
func textOf(v interface{ MarshalText() ([]byte, error) }) string {
	b, err := v.MarshalText()
	if err != nil {
		return ""
	}
	return string(b)
}

func discoText(k key.DiscoPublic) string {
	if k.IsZero() {
		return ""
	}
	return textOf(k)
}

// Lists are kept as text with commas: no element of ours holds one.

func join(list []string) string { return strings.Join(list, ",") }

// routesText is empty for no routes.
func routesText(routes []mesh.Route) string {
	if len(routes) == 0 {
		return ""
	}
	text, _ := json.Marshal(routes) // cannot fail
	return string(text)
}

func joinText[T fmt.Stringer](list []T) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = v.String()
	}
	return join(texts)
}
