// Package store defines the interface between the ledger and a database: tables and an ordered log, written
// together. It contains no database code: both engines are in sqlstore, and storetest is the conformance
// suite that each must pass.
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

// Errors that callers distinguish.
var (
	// ErrPruned means that the log no longer reaches back far enough. Use Load to read the tables instead.
	ErrPruned = errors.New("the log no longer contains these revisions")
	// ErrRewound means that the database does not have the history that the
	// caller has seen: a backup was restored, or a standby without the newest
	// commits was promoted.
	ErrRewound = errors.New("the database has gone back to an earlier state")
	// ErrUnknownOutcome means that the connection was lost during commit. The batch may or may not be in the
	// log. Only a later Lock can find out, and only one with Confirm can find out whether it is durable.
	ErrUnknownOutcome = errors.New("connection lost during commit; the outcome is unknown")
	// ErrTooOld means that a newer version has used something that this one would lose or misread. Nothing was
	// read or written.
	ErrTooOld = errors.New("this version of fairlead is too old for the database")
	// ErrUnavailable means that the database could not be reached or is not usable now. Nothing was written.
	ErrUnavailable = errors.New("database unavailable")
)

// BatchID identifies one transaction of one ledger. It is never reused.
type BatchID = mesh.BatchID

// Point is a position in one history. A zero batch matches any.
type Point struct {
	Rev   mesh.Revision
	Batch BatchID // batch of that revision
}

// Entry is one command in the log.
type Entry struct {
	Rev    mesh.Revision
	Batch  BatchID
	Prev   BatchID // the batch of the previous entry
	At     mesh.Time
	Actor  mesh.Actor
	Events []mesh.Event
}

// Command is an accepted command to append to the log.
type Command struct {
	Actor  mesh.Actor
	Events []mesh.Event       // settled
	Audit  []history.AuditRow // the rows of the audit log about it
	// Presence lists the nodes that Events take online or offline.
	Presence []history.Transition
	// Leaders lists the prefixes whose leader Events change.
	Leaders []history.Leader
}

// Store stores the tables and the log. Revisions have no gaps and become visible in order: a reader that has
// seen N has seen everything up to N. Load, Tail and Lock fail with ErrTooOld if the format in use is newer
// than mesh.Format.
type Store interface {
	// Load reads the tables at one revision.
	Load(ctx context.Context) (*mesh.Snapshot, error)
	// Tail reads the entries after a point, oldest first, at most TailLimit of them. It fails with ErrRewound
	// if the point is not in the history, with ErrPruned if entries were deleted, and with
	// mesh.ErrUnknownKind if a newer version of the server wrote one of them.
	Tail(ctx context.Context, after Point) ([]Entry, error)
	// Lock runs fn while no other writer, on any replica, can commit. What fn appends becomes durable and
	// visible, all or nothing, when Lock returns nil. Any error other than ErrUnknownOutcome means that
	// nothing was written.
	//
	// If the wait for a synchronous standby is cut short, by anyone, the outcome of the commit is unknown:
	// its rows may be visible, and a failover may lose them.
	Lock(ctx context.Context, after mesh.Revision, batch BatchID, fn func(Tx) error) error
	// Changed is signalled after a commit by another handle. It is a hint: signals may be spurious, merged or
	// lost.
	Changed() <-chan struct{}
	// Watch keeps Changed working until ctx ends.
	Watch(ctx context.Context) error
	// Beat publishes this replica's report and returns the newest report of every replica with a heartbeat
	// within the last minute, by the database's clock.
	Beat(ctx context.Context, self Report) ([]Report, error)
	// Probe makes a commit that changes nothing. It returns nil only if Lock could have committed at this
	// moment: the head could be locked, every table could be written, there was enough space, and the commit
	// succeeded. It gives up within seconds.
	Probe(ctx context.Context, self ReplicaID) error
	// Clock returns the latest reading of the database's clock, by Load, Tail or Lock.
	Clock() Clock
	// Prune deletes log entries that are older than age, except those after keep, and returns their number.
	// Entries dated in the future are deleted too: the clock was set back after they were written.
	Prune(ctx context.Context, keep mesh.Revision, age time.Duration) (int64, error)
	// Close releases all resources.
	Close() error
}

// TailLimit is the maximum number of entries that Tail returns.
const TailLimit = 4096

// Tx is a locked log.
type Tx interface {
	// Missed returns the entries after the revision given to Lock. If there are more than TailLimit, it
	// returns the first of them and Append must not be called: catch up with Tail first.
	Missed() ([]Entry, error)
	// Head returns the newest revision and Last the batch that wrote it. Now returns the time of the batch
	// given to Lock, which is never before that of an earlier batch.
	Head() mesh.Revision
	Last() BatchID
	Now() mesh.Time
	// Clock returns the database's clock, read under the lock.
	Clock() Clock
	// Rewind sets Now to the database's clock even if earlier entries have a later time. Call it before
	// Append.
	Rewind()
	// Timeline returns the timeline of the PostgreSQL server, which increases when a standby is promoted. It
	// is 0 if it is unknown.
	Timeline() int64
	// Append buffers one command and returns its revision.
	Append(c Command) (mesh.Revision, error)
	// Confirm makes Lock commit even if nothing is appended. Commits become durable in order, so when Lock
	// returns nil, everything up to Head is durable, whatever the outcome of the commits that wrote it.
	Confirm()
}

// ReplicaID identifies one run of one process.
type ReplicaID string

// Report is what a replica publishes about itself with each heartbeat.
type Report struct {
	ID         ReplicaID     `json:"-"`
	Version    string        `json:"version"`
	ConfigHash string        `json:"configHash"`
	Rev        mesh.Revision `json:"rev"`
	// DigestRev is the revision of Digest. Replicas compare the digests of equal revisions.
	DigestRev mesh.Revision `json:"digestRev"`
	Digest    string        `json:"digest"`
	// DigestForm identifies what the digest is computed from, because replicas of different versions may
	// compute different ones.
	DigestForm int `json:"digestForm"`
	// Format is the newest format of events that the replica knows. Releases before formats report none.
	Format int `json:"format,omitempty"`
	// Name is the name of the replica, which it keeps across restarts. Earlier versions report none.
	Name string `json:"name,omitempty"`
	// Uptime is how long the process had been running at the heartbeat.
	Uptime time.Duration `json:"uptime,omitempty"`
	// Lag is how long the replica had been without the newest commits at the heartbeat. It is 0 if it reads the
	// log as usual.
	Lag time.Duration `json:"lag,omitempty"`
	// Database is the database server to which the replica is connected.
	Database string `json:"database,omitempty"`
	// Stopped reports that this is the last heartbeat: the process was stopped on purpose.
	Stopped bool `json:"stopped,omitempty"`
	// URL is where other replicas can reach this one, or empty if they cannot.
	URL string `json:"url,omitempty"`
	// Held is the number of nodes with a map stream on this replica.
	Held int `json:"held"`
	// Draining reports whether this replica sends its nodes to the others, before maintenance.
	Draining bool `json:"draining,omitempty"`
	// Logins lists the devices that wait for approval on this replica, the newest MaxWaitingLogins of them.
	Logins []WaitingLogin `json:"logins,omitempty"`
	// SSH lists the sessions that wait for approval on this replica, the newest hundred.
	SSH []WaitingSSH `json:"ssh,omitempty"`
	// Facts, Uses and SessionUses hold what the replica has observed about nodes, API keys and sessions but not
	// committed yet, the newest that fit into MaxSeen bytes.
	Facts       []*mesh.Facts      `json:"facts,omitempty"`
	Uses        []mesh.APIKeyUsed  `json:"uses,omitempty"`
	SessionUses []mesh.SessionUsed `json:"sessionUses,omitempty"`
	// PolicyHash is the hash of the replica's policy file, if it has one.
	PolicyHash string `json:"policyHash,omitempty"`
	// RecordsHash is the hash of the replica's file with DNS records. It is "-" if the file was never valid, and
	// empty if there is none.
	RecordsHash string `json:"recordsHash,omitempty"`
	// NoiseKey is the number of the newest Noise key that the replica has, also after a restart. Earlier versions
	// report none.
	NoiseKey int `json:"noiseKey,omitempty"`
	// Relay is the replica's embedded relay, if it has one that connects to those of other replicas.
	Relay *ReplicaRelay `json:"relay,omitempty"`
	// Age is the time since the heartbeat, by the database's clock.
	Age time.Duration `json:"-"`
}

// ReplicaRelay is the relay inside a replica.
type ReplicaRelay struct {
	Region int            `json:"region"`
	Key    key.NodePublic `json:"key"`
}

// MaxSeen limits the size of a report, however many nodes report measurements: each replica reads all reports
// with every heartbeat.
const MaxSeen = 16 << 10

// MaxWaitingLogins limits the size of a report, however many devices ask to join.
const MaxWaitingLogins = 100

// WaitingLogin is a device that asked to join without a key. It is not stored in a table, because strangers
// must not be able to write to one.
type WaitingLogin struct {
	Code       string            `json:"code"`               // the code that a person types to identify it
	LongCode   string            `json:"longCode,omitempty"` // the same code with 24 characters
	MachineKey key.MachinePublic `json:"machineKey"`
	NodeKey    key.NodePublic    `json:"nodeKey"`
	Hostname   string            `json:"hostname"`
	OS         string            `json:"os,omitempty"`
	Addr       string            `json:"addr,omitempty"`
	Tags       []string          `json:"tags,omitempty"` // tags that it asks for
	Since      mesh.Time         `json:"since"`
}

// WaitingSSH is a session that an administrator must approve. It is not stored in a table before the
// decision.
type WaitingSSH struct {
	Code  string      `json:"code"` // the code that a person types to identify it
	Src   mesh.NodeID `json:"src"`
	Dst   mesh.NodeID `json:"dst"`
	User  string      `json:"user"` // on Dst
	Since mesh.Time   `json:"since"`
}
