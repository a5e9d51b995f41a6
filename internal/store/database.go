package store

import "time"

// Database describes the database of the replicas.
type Database struct {
	Engine  string // sqlite or postgres
	Version string
	// Host is the server to which this replica is connected, or the file.
	Host string
	// Standby reports whether this is a standby, which accepts no changes.
	Standby bool
	// Timeline increases when a standby is promoted. It is 0 if it is unknown.
	Timeline uint64
	// SyncCommit and SyncNames are synchronous_commit and synchronous_standby_names.
	SyncCommit, SyncNames string
	Standbys              []Standby
	// Hidden says why the standbys are unknown or incomplete, and what to do. It is empty if they are known.
	Hidden string
}

// Standby is a connection of a standby to the primary. A pg_basebackup that is running counts as one, too.
type Standby struct {
	Name  string // application_name
	Addr  string // empty for a local socket
	State string // streaming, catchup, backup or startup
	Sync  string // sync, quorum, potential or async
	// LagBytes is how much of the log it has not replayed. Lag is how long a commit takes until it is replayed
	// there, as far as that was measured recently.
	LagBytes int64
	Lag      time.Duration
}
