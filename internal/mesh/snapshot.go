package mesh

import (
	"net/netip"
	"reflect"

	"tailscale.com/types/key"
)

// Snapshot is everything durable at one revision. It never changes; readers
// take a pointer and need no lock.
type Snapshot struct {
	// Rev is the revision of the last change of any kind.
	Rev Revision
	// At is the time of the newest entry, and Batch its transaction. Batch distinguishes
	// histories with the same revisions.
	At    Time
	Batch BatchID
	// IdentityRev is the revision of the last change of a user, owner, tag, address or
	// route. It is never older than the revision at which the tables were loaded.
	IdentityRev Revision
	// SettingsRev is the revision of the last change of a setting or a relay, with the same limit as
	// IdentityRev.
	SettingsRev Revision
	// PolicyRev is the revision of the last change of the policy's text, with the same
	// limit as IdentityRev.
	PolicyRev Revision
	// Counters determine which ids and addresses come next.
	Counters Counters

	Users        Users
	Nodes        Nodes
	PreAuthKeys  PreAuthKeys
	APIKeys      APIKeys
	Logins       Logins
	Settings     Settings
	SSHGrants    SSHGrants
	Webhooks     Table[WebhookID, Webhook]
	Facts        Table[NodeID, Facts]
	Receipts     Receipts
	Sessions     Sessions
	Passkeys     Passkeys
	Invitations  Invitations
	Groups       Table[GroupID, Group]
	Rechecks     Table[UserID, Recheck]
	Reservations Reservations
	Relays       Relays

	policy    *Policy  // the newest version
	policySum [32]byte // its digest, computed only once because the text may be long
	line      *edit    // shared by all snapshots that follow one Load
}

// Counters are stored in the head of the log, so that ids and addresses that became
// free are not reused soon, even after a restart.
type Counters struct {
	User     UserID        `json:"user"` // the last one used
	Node     NodeID        `json:"node"`
	PreAuth  KeyID         `json:"preAuth"`
	API      KeyID         `json:"api"`
	Login    LoginID       `json:"login,omitempty"`
	Setting  SettingID     `json:"setting,omitempty"`
	Policy   PolicyVersion `json:"policy,omitempty"`
	SSHGrant SSHGrantID    `json:"sshGrant,omitempty"`
	Route    RouteID       `json:"route,omitempty"`
	Webhook  WebhookID     `json:"webhook,omitempty"`
	Receipt  ReceiptID     `json:"receipt,omitempty"`
	Session  SessionID     `json:"session,omitempty"`
	Passkey  PasskeyID     `json:"passkey,omitempty"`
	// Invitation is shared by invitations and recovery codes.
	Invitation  InvitationID  `json:"invitation,omitempty"`
	Group       GroupID       `json:"group,omitempty"`
	Reservation ReservationID `json:"reservation,omitempty"`
	Relay       RelayID       `json:"relay,omitempty"`
	// DeadLetter is shared by all webhooks.
	DeadLetter DeadLetterID `json:"deadLetter,omitempty"`
	V4         netip.Addr   `json:"v4"` // the address assigned last
	V6         netip.Addr   `json:"v6"`
	// LostPolicy is the newest version of the policy that the database lost, if any.
	LostPolicy PolicyVersion `json:"lostPolicy,omitempty"`
	Epoch      Epoch         `json:"epoch,omitzero"`
	// Format is the newest format of events that is in use. See the constant Format. It is an int,
	// because it is not an id: a new epoch skips numbers of all counters that are an int64.
	Format int `json:"format,omitempty"`
}

// AtLeast returns c with each id raised to at least that of o.
func (c Counters) AtLeast(o Counters) Counters {
	ids, least := reflect.ValueOf(&c).Elem(), reflect.ValueOf(o)
	for i := range ids.NumField() {
		if id := ids.Field(i); id.Kind() == reflect.Int64 {
			id.SetInt(max(id.Int(), least.Field(i).Int()))
		}
	}
	return c
}

// Count advances the counters past the ids that an event uses, and the format to that of the
// event.
func (c *Counters) Count(e Event) {
	c.Format = max(c.Format, formatOf(e))
	if e, ok := e.(interface{ count(c *Counters) }); ok {
		e.count(c)
	}
}

// AddressCursor records the addresses that were assigned last, so that the next search
// starts after them.
type AddressCursor struct {
	V4 netip.Addr `json:"v4"`
	V6 netip.Addr `json:"v6"`
}

// Kind names the event in the log.
func (AddressCursor) Kind() Kind          { return KindAddressCursor }
func (AddressCursor) valid() bool         { return true }
func (e AddressCursor) count(c *Counters) { c.V4, c.V6 = e.V4, e.V6 }
func (AddressCursor) apply(*Draft)        {} // it only moves counters

// ClockSet records that the time of the mesh was set back, because earlier changes
// were made while a clock was ahead.
type ClockSet struct {
	Was Time `json:"was"`
}

// Kind names the event in the log.
func (ClockSet) Kind() Kind   { return KindClockSet }
func (ClockSet) valid() bool  { return true }
func (ClockSet) apply(*Draft) {} // the time is in the log entry

// Empty returns the snapshot before the first revision.
func Empty() *Snapshot {
	return &Snapshot{
		Users:        newUsers(),
		Nodes:        newNodes(),
		PreAuthKeys:  PreAuthKeys{byPrefix: newIndex[string, KeyID]()},
		APIKeys:      APIKeys{byPrefix: newIndex[string, KeyID]()},
		Logins:       Logins{byNodeKey: newIndex[key.NodePublic, LoginID]()},
		Settings:     Settings{byKey: newIndex[string, SettingID]()},
		SSHGrants:    SSHGrants{byKey: newIndex[sshKey, SSHGrantID]()},
		Receipts:     newReceipts(),
		Sessions:     Sessions{byPrefix: newIndex[string, SessionID]()},
		Passkeys:     Passkeys{byCredential: newIndex[string, PasskeyID]()},
		Invitations:  Invitations{byPrefix: newIndex[string, InvitationID]()},
		Reservations: newReservations(),
		Relays:       Relays{byPrefix: newIndex[string, RelayID]()},
		line:         new(edit),
	}
}

// SameIdentities reports whether users, owners, tags, addresses and routes are
// the same in both: they follow one Load, and none has changed in between.
func (s *Snapshot) SameIdentities(t *Snapshot) bool {
	return s.line == t.line && s.IdentityRev == t.IdentityRev
}

// SameSettings reports whether the settings are the same in both: they follow
// one Load, and none has changed in between.
func (s *Snapshot) SameSettings(t *Snapshot) bool {
	return s.line == t.line && s.SettingsRev == t.SettingsRev
}

// SamePolicy reports whether the policy's text is the same in both: they follow
// one Load, and it has not changed in between.
func (s *Snapshot) SamePolicy(t *Snapshot) bool {
	return s.line == t.line && s.PolicyRev == t.PolicyRev
}

// found returns a pointer and whether it is set.
func found[V any](v *V) (*V, bool) { return v, v != nil }
