package mesh

import (
	"strconv"
	"time"
)

// Revision is a position in the log.
type Revision int64

// Ids are greater than zero and never reused.
type (
	UserID        int64
	NodeID        int64
	KeyID         int64
	LoginID       int64
	SettingID     int64
	PolicyVersion int64
	SSHGrantID    int64
	RouteID       int64
	WebhookID     int64
	DeadLetterID  int64
	ReceiptID     int64
	SessionID     int64
	PasskeyID     int64
	InvitationID  int64
	GroupID       int64
	ReservationID int64
	RelayID       int64
)

// TaggedDevices is the user that clients and tools see as the owner of tagged nodes. It is
// never stored. Clients must not see a person as the owner of such a node, because they
// trust devices of the same user.
const TaggedDevices UserID = 2147455555

// BatchID identifies one transaction of one replica.
type BatchID [16]byte

// MaxID limits every id, so that a damaged entry cannot make a table huge.
const MaxID = 1<<32 - 1

// Time is a time in microseconds since 1970 UTC; zero means unset. Both engines store it
// unchanged, so a time that is read equals the time that was written.
type Time int64

// TimeOf truncates t to the stored precision. The zero time becomes unset.
func TimeOf(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return min(Time(t.UnixMicro()), lastTime)
}

// firstTime and lastTime limit times to those that can be formatted: years with four
// digits. A single time beyond them would make the encoding of a whole document fail.
const (
	firstTime Time = -62135596800_000000
	lastTime  Time = 253402300799_999999
)

// Time returns t in UTC, or the zero time if t is unset. Times after the year 9999 become
// the last moment of that year.
func (t Time) Time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(min(max(t, firstTime), lastTime))).UTC()
}

// Add returns the time d after t.
func (t Time) Add(d time.Duration) Time { return t + Time(d.Microseconds()) }

// Sub returns how much later t is than u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Microsecond }

// Reached reports whether t is set and not after now.
func (t Time) Reached(now Time) bool { return t != 0 && t <= now }

// ActorKind is the kind of a caller that requests changes.
type ActorKind string

// The kinds of actor.
const (
	ActorUser    ActorKind = "user"    // a person who signed in
	ActorKey     ActorKind = "key"     // an API key
	ActorNode    ActorKind = "node"    // a node, or a machine that joins with a pre-auth key
	ActorLocal   ActorKind = "local"   // a process on the local socket
	ActorServer  ActorKind = "server"  // the server itself, for example a sweep
	ActorReplica ActorKind = "replica" // the server, about one of its replicas
)

// ReasonExpired is the reason of changes that ActorServer makes to nodes whose key has
// expired.
const ReasonExpired = "expired"

// Actor is who requested a change. The log and the audit log record it for every change.
type Actor struct {
	Kind      ActorKind `json:"kind"`
	ID        string    `json:"id,omitempty"`
	Name      string    `json:"name,omitempty"`
	Addr      string    `json:"addr,omitempty"`
	RequestID string    `json:"requestId,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	// User is the person whose permissions limit the request; zero if there is none.
	User UserID `json:"-"`
	// Member is set if the request may only use what User owns.
	Member bool `json:"-"`
	// Once, if set, makes the request idempotent.
	Once *Once `json:"-"`
}

// String returns the short form for log lines.
func (a Actor) String() string {
	switch {
	case a.Name != "":
		return string(a.Kind) + ":" + a.Name
	case a.ID != "":
		return string(a.Kind) + ":" + a.ID
	}
	return string(a.Kind)
}

// String returns the decimal form that the API uses.
func (id UserID) String() string { return strconv.FormatInt(int64(id), 10) }

// String returns the decimal form that the API uses.
func (id NodeID) String() string { return strconv.FormatInt(int64(id), 10) }

// String returns the decimal form that the API uses.
func (id KeyID) String() string { return strconv.FormatInt(int64(id), 10) }

// String returns the decimal form that the API uses.
func (v PolicyVersion) String() string { return strconv.FormatInt(int64(v), 10) }

// String returns the decimal form that the API uses.
func (id GroupID) String() string { return strconv.FormatInt(int64(id), 10) }

// String returns the decimal form that the API uses.
func (id SSHGrantID) String() string { return strconv.FormatInt(int64(id), 10) }

// String returns the decimal form that the API uses.
func (id RouteID) String() string { return strconv.FormatInt(int64(id), 10) }

// String returns the decimal form that the API uses.
func (id WebhookID) String() string { return strconv.FormatInt(int64(id), 10) }

// String returns the decimal form that the API uses.
func (id SessionID) String() string { return strconv.FormatInt(int64(id), 10) }

// String returns the decimal form that the API uses.
func (id DeadLetterID) String() string { return strconv.FormatInt(int64(id), 10) }

// String returns the decimal form that the API uses.
func (id PasskeyID) String() string { return strconv.FormatInt(int64(id), 10) }

// String returns the decimal form that the API uses.
func (id InvitationID) String() string { return strconv.FormatInt(int64(id), 10) }

// String returns the id as decimal digits.
func (id ReservationID) String() string { return strconv.FormatInt(int64(id), 10) }

// String returns the decimal form that the API uses.
func (id RelayID) String() string { return strconv.FormatInt(int64(id), 10) }
