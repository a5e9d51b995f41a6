package sqlstore

import (
	"net/netip"
	"reflect"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// columnType is one of the three types that both engines store the same way.
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

// insert is one multi-row statement of a commit: the columns of a table that it sets, the first of which is
// the key.
type insert struct {
	table   string
	key     string
	columns []column
	// replace makes the statement overwrite an existing row.
	replace bool
}

func (in *insert) names() string {
	names := make([]string, len(in.columns))
	for i, c := range in.columns {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}

// onConflict returns the clause that overwrites existing rows, in a form that both engines understand. It is
// empty if rows are not replaced.
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

func (in *insert) selectAll() string { return "SELECT " + in.names() + " FROM " + in.table }

// schema maps data to tables. A commit sends each statement at most once, whatever its size.
type schema struct {
	// records store the objects, in the order in which a commit writes them and Load reads them: nodes and
	// keys come before the rows that complete them.
	records []*record
	byRow   map[reflect.Type]*record  // nil for events that only change the head row
	byGone  map[reflect.Type][]string // tables, by the event that deletes a row
	// log and the following tables are append-only.
	log, audit, transitions, leaders *record
}

type logRow struct {
	Rev         mesh.Revision
	Batch, Prev store.BatchID
	At          mesh.Time
	Actor       string // JSON
	Events      []byte
}

type auditRow struct {
	Rev                           mesh.Revision
	Idx                           int // index within the revision
	At                            mesh.Time
	Actor                         string // JSON
	Verb, ObjectKind, ObjectID    string
	Before, After                 []byte
	ActorKind, ActorID, ActorName string // for queries
}

type transitionRow struct {
	Node   mesh.NodeID
	Minute int64
	Online bool
	At     mesh.Time
	Rev    mesh.Revision
	Idx    int // index within the revision
}

type leaderRow struct {
	Prefix netip.Prefix
	Rev    mesh.Revision
	At     mesh.Time
	Node   mesh.NodeID
	Name   string
}

// presenceRow is what Online and Offline store.
type presenceRow struct {
	ID       mesh.NodeID
	Presence mesh.Presence
}

// factsRow is what NodeFacts stores.
type factsRow struct {
	ID    mesh.NodeID
	Facts *mesh.Facts `column:"facts"`
}

// rowOf returns the row that an event adds or replaces. Its fields are the columns. Most events are their own
// row.
func rowOf(e mesh.Event) any {
	switch e := e.(type) {
	case mesh.Online:
		return presenceRow{e.ID, e.Presence()}
	case mesh.Offline:
		return presenceRow{e.ID, e.Presence()}
	case mesh.NodeFacts:
		return factsRow{e.Facts.Node, e.Facts}
	}
	return e
}

// eventOf returns the event that stored a row.
func eventOf(row any) mesh.Event {
	switch r := row.(type) {
	case presenceRow:
		if p := r.Presence; p.Online {
			return mesh.Online{ID: r.ID, Replica: p.Replica, Conn: p.Conn, At: p.LastSeen}
		}
		return mesh.Offline{ID: r.ID, At: r.Presence.LastSeen}
	case factsRow:
		return mesh.NodeFacts{Facts: r.Facts}
	}
	return row.(mesh.Event)
}

func newSchema() *schema {
	s := &schema{byRow: map[reflect.Type]*record{}, byGone: map[reflect.Type][]string{}}
	for _, t := range []struct {
		table string
		row   any        // an event, or the result of rowOf
		gone  mesh.Event // the event that deletes a row
	}{
		{"users", mesh.UserPut{}, mesh.UserGone{}},
		{"nodes", mesh.NodePut{}, mesh.NodeGone{}},
		{"node_net", mesh.NodeNet{}, mesh.NodeGone{}},
		{"node_net", presenceRow{}, mesh.NodeGone{}},
		{"node_facts", factsRow{}, mesh.NodeGone{}},
		{"preauth_keys", mesh.PreAuthKeyPut{}, mesh.PreAuthKeyGone{}},
		{"preauth_key_uses", mesh.PreAuthKeyUsed{}, mesh.PreAuthKeyGone{}},
		{"api_keys", mesh.APIKeyPut{}, mesh.APIKeyGone{}},
		{"api_key_uses", mesh.APIKeyUsed{}, mesh.APIKeyGone{}},
		{"logins", mesh.LoginPut{}, mesh.LoginGone{}},
		{"settings", mesh.SettingPut{}, mesh.SettingGone{}},
		{"policies", mesh.PolicyPut{}, nil},
		{"ssh_grants", mesh.SSHGrantPut{}, mesh.SSHGrantGone{}},
		{"webhooks", mesh.WebhookPut{}, mesh.WebhookGone{}},
		{"webhook_progress", mesh.WebhookMoved{}, mesh.WebhookGone{}},
		{"dead_letters", mesh.DeadLetterPut{}, mesh.DeadLetterGone{}},
		{"receipts", mesh.ReceiptPut{}, mesh.ReceiptGone{}},
		{"sessions", mesh.SessionPut{}, mesh.SessionGone{}},
		{"session_uses", mesh.SessionUsed{}, mesh.SessionGone{}},
		{"passkeys", mesh.PasskeyPut{}, mesh.PasskeyGone{}},
		{"invitations", mesh.InvitationPut{}, mesh.InvitationGone{}},
		{"user_groups", mesh.GroupPut{}, mesh.GroupGone{}},
		{"rechecks", mesh.RecheckPut{}, mesh.RecheckGone{}},
		{"reservations", mesh.ReservationPut{}, mesh.ReservationGone{}},
		{"relays", mesh.RelayPut{}, mesh.RelayGone{}},
		{"relay_reports", mesh.RelayReported{}, mesh.RelayGone{}},
	} {
		r := bind(t.table, t.row)
		r.key, r.replace = "id", true
		s.records, s.byRow[r.typ] = append(s.records, r), r
		if t.gone != nil {
			s.byGone[reflect.TypeOf(t.gone)] = append(s.byGone[reflect.TypeOf(t.gone)], t.table)
		}
	}
	of[mesh.PolicyPut](s).clause = " ORDER BY id DESC LIMIT 1" // older versions are read only by the history
	of[mesh.DeadLetterPut](s).unloaded = true                  // dead letters are read only by the history
	for _, e := range []mesh.Event{mesh.AddressCursor{}, mesh.ClockSet{}, mesh.HistoryReset{}} {
		s.byRow[reflect.TypeOf(e)] = nil // stored in the head row
	}
	s.log, s.audit, s.leaders = bind("log", logRow{}), bind("audit", auditRow{}), bind("route_leaders", leaderRow{})
	s.transitions = bind("presence", transitionRow{})
	s.transitions.key, s.transitions.replace = "node, minute, online", true
	return s
}

// of returns the record of an event or row.
func of[R any](s *schema) *record { return s.byRow[reflect.TypeFor[R]()] }
