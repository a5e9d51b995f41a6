package mesh

import (
	"strconv"
	"time"
)

// Revision is a position in the log.
type Revision int64

// Ids are greater than zero and never handed out twice.
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
)

// TaggedDevices is the user of nodes that belong to tags, as clients and tools
// know it. It is never stored. No person may own such a node in the eyes of a
// client: it trusts devices of its own user.
const TaggedDevices UserID = 2147455555

// BatchID names one transaction of one replica for ever.
type BatchID [16]byte

// MaxID bounds every id, so that a damaged entry cannot make a table huge.
const MaxID = 1<<32 - 1

// Time is a moment in microseconds since 1970 UTC; zero means unset. Both
// engines store it as it is, so a time that was read equals the time that was
// written.
type Time int64

// TimeOf truncates t to the precision that is stored. The zero time is unset.
func TimeOf(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return min(Time(t.UnixMicro()), lastTime)
}

// firstTime and lastTime bound the moments that have a text form: years of four
// digits. One that has none would cost everybody the document it is in.
const (
	firstTime Time = -62135596800_000000
	lastTime  Time = 253402300799_999999
)

// Time returns the moment in UTC, or the zero time when it is unset. A moment
// beyond the year 9999 becomes the last one of it.
func (t Time) Time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(min(max(t, firstTime), lastTime))).UTC()
}

// Add returns the moment d later.
func (t Time) Add(d time.Duration) Time { return t + Time(d.Microseconds()) }

// Sub returns how much later t is than u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Microsecond }

// Reached reports whether t is set and not after now.
func (t Time) Reached(now Time) bool { return t != 0 && t <= now }

// ActorKind says what sort of caller asked for a change.
type ActorKind string

// The kinds of actor.
const (
	ActorUser    ActorKind = "user"    // a person who signed in
	ActorKey     ActorKind = "key"     // an API key
	ActorNode    ActorKind = "node"    // a node, or a machine that enrols with a pre-auth key
	ActorLocal   ActorKind = "local"   // a process on the local socket
	ActorServer  ActorKind = "server"  // the service by itself, such as a sweep
	ActorReplica ActorKind = "replica" // the service about one replica
)

// ReasonExpired is the reason of ActorServer for nodes whose key has expired.
const ReasonExpired = "expired"

// Actor is who asked. Every change carries one into the log and the audit.
type Actor struct {
	Kind      ActorKind `json:"kind"`
	ID        string    `json:"id,omitempty"`
	Name      string    `json:"name,omitempty"`
	Addr      string    `json:"addr,omitempty"`
	RequestID string    `json:"requestId,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	// Once, if set, lets what the actor asks for happen once.
	Once *Once `json:"-"`
}

// String is the short form for log lines.
func (a Actor) String() string {
	switch {
	case a.Name != "":
		return string(a.Kind) + ":" + a.Name
	case a.ID != "":
		return string(a.Kind) + ":" + a.ID
	}
	return string(a.Kind)
}

// String is the decimal form that the API uses.
func (id UserID) String() string { return strconv.FormatInt(int64(id), 10) }

// String is the decimal form that the API uses.
func (id NodeID) String() string { return strconv.FormatInt(int64(id), 10) }

// String is the decimal form that the API uses.
func (id KeyID) String() string { return strconv.FormatInt(int64(id), 10) }

// String is the decimal form that the API uses.
func (v PolicyVersion) String() string { return strconv.FormatInt(int64(v), 10) }

// String is the decimal form that the API uses.
func (id SSHGrantID) String() string { return strconv.FormatInt(int64(id), 10) }

// String is the decimal form that the API uses.
func (id RouteID) String() string { return strconv.FormatInt(int64(id), 10) }

// String is the decimal form that the API uses.
func (id WebhookID) String() string { return strconv.FormatInt(int64(id), 10) }

// String is the decimal form that the API uses.
func (id DeadLetterID) String() string { return strconv.FormatInt(int64(id), 10) }
