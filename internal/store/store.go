// Package store is the contract between the ledger and a database: tables and
// an ordered log, written together. It holds no code that speaks to one; both
// engines are in sqlstore, and storetest holds the suite that each must pass.
//
// It imports mesh and starts no goroutine.
package store

import (
	"context"
	"errors"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Errors that a caller tells apart.
var (
	// ErrPruned says that the log no longer reaches back far enough: load.
	ErrPruned = errors.New("the log no longer holds these revisions")
	// ErrRewound means that the database does not have the history that the
	// caller has seen: a backup was restored, or a standby without the newest
	// commits was promoted.
	ErrRewound = errors.New("the database has gone back to an earlier state")
	// ErrUnknownOutcome says that the connection was lost during commit. The
	// batch is in the log or it is not; only a later Lock tells, and only one
	// that confirms tells whether it stays there.
	ErrUnknownOutcome = errors.New("connection lost during commit; the outcome is unknown")
	// ErrUnavailable says that the database could not be reached or is not
	// usable now. Nothing was written.
	ErrUnavailable = errors.New("database unavailable")
)

// BatchID names one transaction of one ledger for ever.
type BatchID = mesh.BatchID

// Point is a position in one history. A zero batch matches any.
type Point struct {
	Rev   mesh.Revision
	Batch BatchID // of that revision
}

// Entry is one command in the log.
type Entry struct {
	Rev    mesh.Revision
	Batch  BatchID
	Prev   BatchID // the batch of the entry before
	At     mesh.Time
	Actor  mesh.Actor
	Events []mesh.Event
}

// Command is one accepted command on its way into the log.
type Command struct {
	Actor  mesh.Actor
	Events []mesh.Event       // settled
	Audit  []history.AuditRow // what people will read about it
	// Presence are the nodes that Events bring online or take offline.
	Presence []history.Transition
	// Leaders are the prefixes that Events give another leader.
	Leaders []history.Leader
}

// Store keeps tables and log. Revisions have no gaps and become visible in
// order: a reader that has seen N has seen everything up to N.
type Store interface {
	// Load reads the tables at one revision.
	Load(ctx context.Context) (*mesh.Snapshot, error)
	// Tail reads the entries after a point, oldest first, at most TailLimit
	// of them. It fails with ErrRewound when the point is not in the history,
	// with ErrPruned when entries are gone, and with mesh.ErrUnknownKind when a
	// newer binary wrote one.
	Tail(ctx context.Context, after Point) ([]Entry, error)
	// Lock runs fn while no other writer, on any replica, can commit. What fn
	// appends becomes durable and visible, all or nothing, when Lock returns
	// nil. Any error but ErrUnknownOutcome means that nothing was written.
	//
	// If the wait for a synchronous standby is cut short, by anyone, the outcome
	// of the commit is unknown: its rows may be visible, and a failover may lose
	// them.
	Lock(ctx context.Context, after mesh.Revision, batch BatchID, fn func(Tx) error) error
	// Changed is signalled after a commit through another handle. It is a
	// hint: it may be spurious, merged or lost.
	Changed() <-chan struct{}
	// Watch keeps Changed alive until ctx ends.
	Watch(ctx context.Context) error
	// Beat publishes this replica's report and returns the newest report of
	// every replica that beat within a minute, by the database's clock.
	Beat(ctx context.Context, self Report) ([]Report, error)
	// Probe makes a commit that changes nothing. It returns nil only if Lock
	// would have been able to commit just now: the head could be locked, every
	// table written, there was room, and the commit ended normally. It gives up
	// within seconds.
	Probe(ctx context.Context, self ReplicaID) error
	// Clock is the database's clock as it was last read, by Load, Tail or Lock.
	Clock() Clock
	// Prune drops log entries older than age, keeping those after keep, and
	// returns how many went. Entries dated in the future are dropped too: time
	// was set back after them.
	Prune(ctx context.Context, keep mesh.Revision, age time.Duration) (int64, error)
	// Close releases what Open took.
	Close() error
}

// TailLimit bounds one answer of Tail.
const TailLimit = 4096

// Tx is a locked log.
type Tx interface {
	// Missed are the entries after the revision given to Lock. When there are
	// more than TailLimit the first of them are returned and Append must not
	// be called: follow with Tail first.
	Missed() ([]Entry, error)
	// Head is the newest revision, Last the batch it came with, and Now the
	// time of this batch, not before that of any earlier one.
	Head() mesh.Revision
	Last() BatchID
	Now() mesh.Time
	// Clock is the database's clock, read under the lock.
	Clock() Clock
	// Rewind makes Now the database's clock although earlier entries are dated
	// later. Call it before Append.
	Rewind()
	// Append buffers one command and returns its revision.
	Append(c Command) (mesh.Revision, error)
	// Confirm makes Lock commit even if nothing is appended. Commits become
	// durable in order, so when Lock returns nil, everything up to Head is
	// durable, whatever became of the commits that wrote it.
	Confirm()
}

// ReplicaID names one run of one process.
type ReplicaID string

// Report is what a replica says of itself with each beat.
type Report struct {
	ID         ReplicaID     `json:"-"`
	Version    string        `json:"version"`
	ConfigHash string        `json:"configHash"`
	Rev        mesh.Revision `json:"rev"`
	// DigestRev and Digest belong together; replicas compare them where the
	// revisions are equal.
	DigestRev mesh.Revision `json:"digestRev"`
	Digest    string        `json:"digest"`
	// DigestForm says what the digest is made from: replicas of two versions
	// may have no digest in common.
	DigestForm int `json:"digestForm"`
	// URL is where other replicas can reach this one; empty if they cannot.
	URL string `json:"url,omitempty"`
	// Held is how many nodes have their stream here.
	Held int `json:"held"`
	// Logins are the devices that wait here for an answer, the newest
	// MaxWaitingLogins of them.
	Logins []WaitingLogin `json:"logins,omitempty"`
	// SSH are the sessions that wait here for an approval, the newest hundred.
	SSH []WaitingSSH `json:"ssh,omitempty"`
	// Facts and Uses are what the replica has seen of nodes and API keys and
	// not committed yet, the newest that fit into MaxSeen bytes.
	Facts []*mesh.Facts     `json:"facts,omitempty"`
	Uses  []mesh.APIKeyUsed `json:"uses,omitempty"`
	// PolicyHash is of the policy file that the replica has, if it has one.
	PolicyHash string `json:"policyHash,omitempty"`
	// Age is how long ago the beat was, by the database's clock.
	Age time.Duration `json:"-"`
}

// MaxSeen keeps a report short however many nodes measure something: each
// replica reads the reports of all with every beat.
const MaxSeen = 16 << 10

// MaxWaitingLogins keeps a report short whoever asks to join.
const MaxWaitingLogins = 100

// WaitingLogin is a device that asked to join without a key. It is in no table:
// a stranger must not be able to write one.
type WaitingLogin struct {
	Code       string            `json:"code"`               // what a person types to name it
	LongCode   string            `json:"longCode,omitempty"` // the same in 24 characters
	MachineKey key.MachinePublic `json:"machineKey"`
	NodeKey    key.NodePublic    `json:"nodeKey"`
	Hostname   string            `json:"hostname"`
	OS         string            `json:"os,omitempty"`
	Addr       string            `json:"addr,omitempty"`
	Tags       []string          `json:"tags,omitempty"` // that it asks for
	Since      mesh.Time         `json:"since"`
}

// WaitingSSH is a session that an administrator must approve. It is in no table
// before one has answered.
type WaitingSSH struct {
	Code  string      `json:"code"` // what a person types to name it
	Src   mesh.NodeID `json:"src"`
	Dst   mesh.NodeID `json:"dst"`
	User  string      `json:"user"` // on Dst
	Since mesh.Time   `json:"since"`
}
