package chaos

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Message is one line of a replica's output, as JSON. One of its fields is set.
type Message struct {
	Answer  *Answer  `json:"answer,omitempty"`
	View    *View    `json:"view,omitempty"`
	Key     string   `json:"key,omitempty"` // a pre-auth key that all replicas may use
	Finding *Finding `json:"finding,omitempty"`
	Quiet   bool     `json:"quiet,omitempty"` // all workers have stopped
	Final   *Final   `json:"final,omitempty"`
}

// The lines that a replica reads. It exits at the end of its input.
const (
	OrderKey    = "key"    // followed by the text of a pre-auth key
	OrderStop   = "stop"   // stop all workers and report Quiet
	OrderSettle = "settle" // followed by a revision and a number of replicas: compare, then report Final
)

// Outcome is how a command ended for its caller.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"    // acknowledged
	Refused Outcome = "refused" // by a rule, so it is not in the log
	Failed  Outcome = "failed"  // nothing was written
	Unknown Outcome = "unknown" // it may or may not have been written
	Broken  Outcome = "broken"  // an error that no caller expects
)

// Answer is written after a command has returned. A caller waits for each answer before its next command, so
// its answers have the numbers 1, 2, 3… until its process is killed.
type Answer struct {
	Caller  string  `json:"caller"`
	Seq     int64   `json:"seq"`
	Verb    string  `json:"verb"`
	Outcome Outcome `json:"outcome"`
	Error   string  `json:"error,omitempty"`
	// Effect is the event that was acknowledged, as encoded by mesh.EncodeEvents; it is empty if the caller
	// was only told that the command succeeded.
	Effect string `json:"effect,omitempty"`
	// Idle means that the command may have had nothing to do.
	Idle bool `json:"idle,omitempty"`
}

// RequestID returns the name of a command in the log.
func RequestID(caller string, seq int64) string { return fmt.Sprintf("%s#%d", caller, seq) }

// ParseRequestID parses the result of RequestID. The caller is empty if nobody made a request: a replica has begun a new
// epoch.
func ParseRequestID(id string) (caller string, seq int64, err error) {
	if id == "" {
		return "", 0, nil
	}
	caller, number, _ := strings.Cut(id, "#")
	seq, err = strconv.ParseInt(number, 10, 64)
	return caller, seq, err
}

// Audited reports whether the replicas write an audit row for an event.
func Audited(e mesh.Event) bool {
	switch e.Kind() {
	case mesh.KindNodeNet, mesh.KindOnline, mesh.KindOffline, mesh.KindAddressCursor, mesh.KindClockSet, mesh.KindHistoryReset,
		mesh.KindLoginPut, mesh.KindLoginGone, mesh.KindSettingPut, mesh.KindSettingGone,
		mesh.KindNodeFacts, mesh.KindPreAuthKeyUsed, mesh.KindAPIKeyUsed, mesh.KindSessionUsed,
		mesh.KindRecheckPut, mesh.KindRecheckGone, mesh.KindRelayReported:
		return false
	default:
		return true
	}
}

// View is the current state of a replica.
type View struct {
	Replica string        `json:"replica"`
	Rev     mesh.Revision `json:"rev"`
	Digest  string        `json:"digest"`
}

// Final is the state of a replica after all work has stopped.
type Final struct {
	View
	Mismatches int `json:"mismatches"` // number of mismatches that its heartbeats found
	Compared   int `json:"compared"`   // number of replicas whose heartbeats show this revision, including its own
}

// Faults that a replica reads from its environment.
const (
	FaultVariable     = "CHAOS_FAULT"
	FaultSkipHeadLock = "skip-head-lock"            // needs the build tag chaosfault
	FaultEarlyAnswer  = "acknowledge-before-commit" // sometimes the commit does not follow
	FaultDropEntry    = "drop-entry"                // a follower misses the content of an entry
	FaultNoSync       = "no-sync"                   // nothing waits for the disk
	FaultWrongOrder   = "wrong-order"               // a follower applies two entries in the wrong order
)
