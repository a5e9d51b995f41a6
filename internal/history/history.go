// Package history defines what happened and is no longer part of the state: audit
// rows, presence, earlier versions of the policy, events that a webhook's receiver
// did not accept. The store implements Store; everyone else reads through Reader.
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

// ErrForgotten says that rows after a position may be gone: it is older than
// what is kept, or of another history than this one.
var ErrForgotten = errors.New("the history does not reach back to this position")

// ErrNoPolicy says that the policy never had that version.
var ErrNoPolicy = errors.New("no such version of the policy")

// PresenceAge is how long transitions are kept.
const PresenceAge = 30 * 24 * time.Hour

// DeadLetterAge is how long events that a receiver did not take are kept, and
// DeadLetters how many of each webhook.
const (
	DeadLetterAge = 30 * 24 * time.Hour
	DeadLetters   = 1000
)

// Reader reads what the snapshot does not hold. The rows were written with the log,
// in the same transaction.
//
// A caller that joins audit and transitions asks for both up to one revision that
// it has seen: what is committed in between is then in neither answer.
type Reader interface {
	// Audit returns the rows that q asks for. It fails with ErrForgotten when
	// q.After is set and rows that followed it are gone.
	Audit(ctx context.Context, q AuditQuery) ([]AuditRow, error)
	// Transitions returns who came and went between two positions, oldest
	// first. It fails with ErrForgotten as Audit does.
	Transitions(ctx context.Context, after, before Position, limit int) ([]Transition, error)
	// Presence returns the presence of nodes from one moment up to another, in
	// the order of their ids; nil means every node that there is. Nodes that
	// were deleted are found by their ids.
	Presence(ctx context.Context, nodes []mesh.NodeID, from, to mesh.Time) ([]Presence, error)
	// DeadLetters returns what a webhook's receiver did not take, with ids below
	// before, newest first; zero means from the newest.
	DeadLetters(ctx context.Context, w mesh.WebhookID, before mesh.DeadLetterID, limit int) ([]mesh.DeadLetter, error)
	// Leaders returns who has led to a prefix, newest first.
	Leaders(ctx context.Context, prefix netip.Prefix, limit int) ([]Leader, error)
	// Policies returns the versions of the policy below before, newest first;
	// zero means from the newest. None is ever dropped.
	Policies(ctx context.Context, before mesh.PolicyVersion, limit int) ([]mesh.Policy, error)
	// Policy returns one version, or fails with ErrNoPolicy.
	Policy(ctx context.Context, v mesh.PolicyVersion) (*mesh.Policy, error)
}

// Store is a Reader that can also drop what is too old.
type Store interface {
	Reader
	// Forget drops audit rows and transitions, each older than its age, leaders
	// as old as those audit rows, and the dead letters that are too many, too old
	// or of a webhook that is gone. It returns how many went.
	Forget(ctx context.Context, audit, transitions time.Duration) (int64, error)
}

// Position is the place of a row in the history. Audit rows and transitions
// share one order, and no two rows have the same place. The zero position is
// before all of them.
type Position struct {
	Rev   mesh.Revision
	Index int // within the revision
}

// EndOf is after all rows of a revision and before those of the next.
func EndOf(rev mesh.Revision) Position { return Position{Rev: rev, Index: math.MaxInt32} }

// String is the form that the API uses: <revision>-<index>.
func (p Position) String() string {
	return strconv.FormatInt(int64(p.Rev), 10) + "-" + strconv.Itoa(p.Index)
}

// Compare is negative when p comes before q, and zero when they are the same.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Rev, q.Rev), cmp.Compare(p.Index, q.Index))
}

// ParsePosition reads what String wrote, and nothing else.
func ParsePosition(text string) (Position, error) {
	before, after, _ := strings.Cut(text, "-")
	rev, revErr := strconv.ParseInt(before, 10, 64)
	index, indexErr := strconv.ParseInt(after, 10, 32)
	p := Position{Rev: mesh.Revision(rev), Index: int(index)}
	if revErr != nil || indexErr != nil || rev < 0 || index < 0 || p.String() != text {
		return Position{}, fmt.Errorf("%q is not a position: give a revision and an index, such as 42-0", text)
	}
	return p, nil
}

// Leader says which node leads to a prefix from a moment on, until the next one
// of that prefix. Append fills revision and time.
type Leader struct {
	Prefix netip.Prefix
	Rev    mesh.Revision
	At     mesh.Time
	Node   mesh.NodeID // zero when nobody does
	Name   string      // of the node, at that time
}

// AuditRow says what one event meant to people: who, when, what, before and
// after in the shapes of the API. Append fills position, time and actor.
type AuditRow struct {
	Position Position
	At       mesh.Time
	Actor    mesh.Actor
	Verb     string // created, changed, deleted, …
	Kind     string // user, node, preauthkey, apikey
	Object   string // the object's id
	Before   []byte // JSON, nil when there was none
	After    []byte // JSON, nil when it is gone
}

// AuditQuery asks for the rows that meet all its conditions; a zero value is no
// condition.
type AuditQuery struct {
	After, Before Position  // both exclusive
	From, To      mesh.Time // To is exclusive
	Kinds         []string  // one of these
	Verbs         []string  // one of these
	Object        string    // this id, of whatever kind
	// Actor is a kind of actor, such as "key", or one actor: the kind, a colon,
	// and its id or its name at that time, such as "key:3" or "node:laptop".
	Actor string
	// Newest returns the last rows, newest first, instead of the first rows,
	// oldest first.
	Newest bool
	// Limit is how many rows at most; zero asks for none.
	Limit int
}
