// Package history defines data about the past that is not part of the state: audit rows,
// presence, earlier versions of the policy, and events that a webhook's receiver did not
// accept. The store implements Store; everyone else reads through Reader.
package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// ErrForgotten means that rows after a position may be missing: it is older than what is
// kept, or belongs to another history.
var ErrForgotten = errors.New("the history no longer contains this position")

// ErrNoPolicy means that the policy never had that version.
var ErrNoPolicy = errors.New("no such policy version")

// PresenceAge is how long transitions are kept.
const PresenceAge = 30 * 24 * time.Hour

// DeadLetterAge is how long events that a receiver did not accept are kept, and DeadLetters
// how many of each webhook.
const (
	DeadLetterAge = 30 * 24 * time.Hour
	DeadLetters   = 1000
)

// Reader reads what snapshots do not contain. The rows were written in the same transaction
// as the log.
//
// A caller that combines audit rows and transitions must request both up to one revision
// that it has seen. Otherwise a commit in between may be in only one of the two results.
type Reader interface {
	// Audit returns the rows that match q. It fails with ErrForgotten if q.After is set and
	// rows after it have been deleted.
	Audit(ctx context.Context, q AuditQuery) ([]AuditRow, error)
	// Transitions returns which nodes went online or offline between two positions, oldest
	// first. It fails with ErrForgotten like Audit.
	Transitions(ctx context.Context, after, before Position, limit int) ([]Transition, error)
	// Presence returns the presence of nodes within a period, sorted by id; nil means all
	// existing nodes. Deleted nodes can be requested by id.
	Presence(ctx context.Context, nodes []mesh.NodeID, from, to mesh.Time) ([]Presence, error)
	// DeadLetters returns the events that a webhook's receiver did not accept, with ids
	// below before, newest first; zero means from the newest.
	DeadLetters(ctx context.Context, w mesh.WebhookID, before mesh.DeadLetterID, limit int) ([]mesh.DeadLetter, error)
	// Leaders returns the primary routers of a prefix over time, newest first.
	Leaders(ctx context.Context, prefix netip.Prefix, limit int) ([]Leader, error)
	// Policies returns the versions of the policy below before, newest first; zero means
	// from the newest. Versions are never deleted.
	Policies(ctx context.Context, before mesh.PolicyVersion, limit int) ([]mesh.Policy, error)
	// Policy returns one version, or fails with ErrNoPolicy.
	Policy(ctx context.Context, v mesh.PolicyVersion) (*mesh.Policy, error)
}

// Store is a Reader that can also delete old rows.
type Store interface {
	Reader
	// Forget deletes audit rows, leaders and transitions that are older than their
	// retention times, and dead letters that are too old, too many, or belong to a deleted
	// webhook. It returns how many rows it deleted.
	Forget(ctx context.Context, audit, transitions time.Duration) (int64, error)
}

// Position is the place of a row in the history. Audit rows and transitions share one
// order, and no two rows have the same position. The zero position is before all rows.
type Position struct {
	Rev   mesh.Revision
	Index int // within the revision
}

// EndOf returns the position after all rows of a revision and before those of the next.
func EndOf(rev mesh.Revision) Position { return Position{Rev: rev, Index: math.MaxInt32} }

// String returns the form that the API uses: <revision>-<index>.
func (p Position) String() string {
	return strconv.FormatInt(int64(p.Rev), 10) + "-" + strconv.Itoa(p.Index)
}

// Compare returns a negative number if p is before q, and zero if they are equal.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Rev, q.Rev), cmp.Compare(p.Index, q.Index))
}

// ParsePosition parses the result of String. It accepts no other form.
func ParsePosition(text string) (Position, error) {
	before, after, _ := strings.Cut(text, "-")
	rev, revErr := strconv.ParseInt(before, 10, 64)
	index, indexErr := strconv.ParseInt(after, 10, 32)
	p := Position{Rev: mesh.Revision(rev), Index: int(index)}
	if revErr != nil || indexErr != nil || rev < 0 || index < 0 || p.String() != text {
		return Position{}, fmt.Errorf("invalid position %q: use a revision and an index, such as 42-0", text)
	}
	return p, nil
}

// Leader records that a node became the primary router of a prefix. It stays primary until
// the next Leader of that prefix. Append fills revision and time.
type Leader struct {
	Prefix netip.Prefix
	Rev    mesh.Revision
	At     mesh.Time
	Node   mesh.NodeID // zero if there is none
	Name   string      // name of the node at that time
}

// AuditRow describes one change for people: who, when, what, and the object before and
// after as the API shows it. Append fills position, time and actor.
type AuditRow struct {
	Position Position
	At       mesh.Time
	Actor    mesh.Actor
	Verb     string // created, changed, deleted, …
	Kind     string // user, node, preauthkey, apikey, …
	Object   string // the object's id
	Before   []byte // JSON, nil if it was created
	After    []byte // JSON, nil if it was deleted
}

// AuditQuery selects the rows that meet all its conditions. Zero values set no condition.
type AuditQuery struct {
	After, Before Position  // both exclusive
	From, To      mesh.Time // To is exclusive
	Kinds         []string  // one of these
	Verbs         []string  // one of these
	Object        string    // this id, of any kind
	// Actor is a kind of actor, such as "key", or one actor: the kind, a colon,
	// and its id or its name at that time, such as "key:3" or "node:laptop".
	Actor string
	// Newest selects the last rows, newest first, instead of the first rows, oldest first.
	Newest bool
	// Limit is the maximum number of rows; zero returns none.
	Limit int
}
