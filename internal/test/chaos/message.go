package chaos

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Message is one line that a replica writes, as JSON. One of its members is
// set.
type Message struct {
	Answer  *Answer  `json:"answer,omitempty"`
	View    *View    `json:"view,omitempty"`
	Key     string   `json:"key,omitempty"` // a pre-auth key that all replicas may use
	Finding *Finding `json:"finding,omitempty"`
	Quiet   bool     `json:"quiet,omitempty"` // all workers have stopped
	Final   *Final   `json:"final,omitempty"`
}

// The lines that a replica reads. The end of its input ends it.
const (
	OrderKey    = "key"    // and the text of a pre-auth key
	OrderStop   = "stop"   // stop all workers and say that it is quiet
	OrderSettle = "settle" // and a revision and a number of replicas: compare, then say Final
)

// Outcome is how a command ended for its caller.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"    // acknowledged
	Refused Outcome = "refused" // by a rule, so it leaves no trace
	Failed  Outcome = "failed"  // nothing was written
	Unknown Outcome = "unknown" // it was written or it was not
	Broken  Outcome = "broken"  // an error that no caller is prepared for
)

// Answer is written after a command was answered. A caller waits for each
// answer before its next command, so its answers have the numbers 1, 2, 3…
// until its process is killed.
type Answer struct {
	Caller  string  `json:"caller"`
	Seq     int64   `json:"seq"`
	Verb    string  `json:"verb"`
	Outcome Outcome `json:"outcome"`
	Error   string  `json:"error,omitempty"`
	// Effect is the event that was acknowledged, as mesh.EncodeEvents gives
	// it; empty when the caller was told no more than that it is done.
	Effect string `json:"effect,omitempty"`
	// Idle says that the command may have found its effect there already.
	Idle bool `json:"idle,omitempty"`
}

// RequestID is how the log names a command.
func RequestID(caller string, seq int64) string { return fmt.Sprintf("%s#%d", caller, seq) }

// ParseRequestID reads what RequestID wrote.
func ParseRequestID(id string) (caller string, seq int64, err error) {
	caller, number, _ := strings.Cut(id, "#")
	seq, err = strconv.ParseInt(number, 10, 64)
	return caller, seq, err
}

// Audited reports whether the replicas write a row of audit about an event.
func Audited(e mesh.Event) bool {
	switch e.Kind() {
	case mesh.KindNodeNet, mesh.KindOnline, mesh.KindOffline, mesh.KindAddressCursor, mesh.KindClockSet,
		mesh.KindLoginPut, mesh.KindLoginGone, mesh.KindSettingPut, mesh.KindSettingGone,
		mesh.KindNodeFacts, mesh.KindPreAuthKeyUsed, mesh.KindAPIKeyUsed:
		return false
	default:
		return true
	}
}

// View is what a replica holds at the moment.
type View struct {
	Replica string        `json:"replica"`
	Rev     mesh.Revision `json:"rev"`
	Digest  string        `json:"digest"`
}

// Final is what a replica holds when nothing moves any more.
type Final struct {
	View
	Mismatches int `json:"mismatches"` // that its heartbeats found
	Compared   int `json:"compared"`   // replicas whose heartbeats show this revision, its own included
}

// Faults that a replica takes from its environment.
const (
	FaultVariable     = "CHAOS_FAULT"
	FaultSkipHeadLock = "skip-head-lock"            // needs the build tag chaosfault
	FaultEarlyAnswer  = "acknowledge-before-commit" // now and then the commit does not follow
	FaultDropEntry    = "drop-entry"                // a follower misses what an entry says
	FaultWrongOrder   = "wrong-order"               // a follower applies two entries the wrong way round
)
