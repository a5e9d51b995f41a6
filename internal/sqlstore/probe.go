package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlead-mesh/fairlead/internal/store"
)

// A probe writes a row to the table of heartbeats and removes it. The row is large, because even a full disk
// may have room for a small one.
const (
	putProbe = `INSERT INTO replicas (id, at, report) VALUES ($1, 0, $2)
		ON CONFLICT (id) DO UPDATE SET report = excluded.report`
	dropProbe = "DELETE FROM replicas WHERE id = $1"
	probeName = "probe of "
	probeSize = 128 << 10
	touchHead = "UPDATE head SET rev = rev WHERE id = 1"
	// probeLock is how long a probe waits for each lock, and probeTimeout how long for its statements and
	// then for its commit. Together they are shorter than the time after which a replica without heartbeats
	// is considered dead.
	probeLock    = time.Second
	probeTimeout = 2 * time.Second
)

// probeText returns random text, which does not compress to less than half.
func probeText() string {
	noise := make([]byte, probeSize/2)
	_, _ = rand.Read(noise) // never fails
	return hex.EncodeToString(noise)
}

// Probe locks the tables before the head row, because other replicas may be able to use the head row while a
// table is locked.
func (p *Postgres) Probe(ctx context.Context, self store.ReplicaID) error {
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return p.use(limited, probeTimeout, func(ctx context.Context, conn *pgx.Conn) error {
		b := &pgx.Batch{}
		b.Queue("BEGIN")
		b.Queue("SELECT set_config('lock_timeout', $1, true)", probeLock.String())
		b.Queue("SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'")
		b.Queue("LOCK TABLE " + strings.Join(p.schema.tables(), ", ") + " IN ROW EXCLUSIVE MODE")
		b.Queue(putProbe, probeName+string(self), probeText())
		b.Queue(dropProbe, probeName+string(self))
		b.Queue(touchHead)
		if err := conn.SendBatch(ctx, b).Close(); err != nil {
			rollback(conn)
			return explain(err)
		}
		return explain(commit(ctx, conn, probeTimeout))
	})
}

// tables returns the tables that a commit may write.
func (s *schema) tables() []string {
	names := map[string]bool{}
	for _, r := range slices.Concat(s.records, []*record{s.log, s.audit, s.transitions, s.leaders}) {
		names[r.table] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// Probe uses two transactions: SQLite would write nothing for a row that is inserted and deleted in the same
// transaction.
func (l *SQLite) Probe(ctx context.Context, _ store.ReplicaID) error {
	if err := l.usable(ctx); err != nil {
		return err
	}
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return explain(err)
	}
	defer conn.Close()
	if err := l.busyTimeout(ctx, conn, probeLock); err != nil {
		return explain(err)
	}
	err = l.exec(ctx, conn, putProbe, probeName+"write", probeText())
	if err == nil {
		err = l.exec(ctx, conn, dropProbe, probeName+"write")
	}
	return explain(errors.Join(err, l.busyTimeout(context.WithoutCancel(ctx), conn, sqliteBusy)))
}

// busyTimeout sets how long statements on a connection wait for a lock.
func (l *SQLite) busyTimeout(ctx context.Context, conn *sql.Conn, d time.Duration) error {
	return l.exec(ctx, conn, fmt.Sprintf("PRAGMA busy_timeout = %d", d.Milliseconds()))
}
