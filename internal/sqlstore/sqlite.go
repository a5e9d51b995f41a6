package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	_ "modernc.org/sqlite" // the driver
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

const (
	// sqliteConns is enough for one writer and a few readers of history.
	sqliteConns = 4
	sqliteIdle  = 2
	// sqliteBusy is how long a statement waits for a lock.
	sqliteBusy = 5 * time.Second
)

// SQLite is the engine for a single process: one file and no database server.
type SQLite struct {
	historyTables
	db        *sql.DB
	files     *sqliteFiles
	durations prometheus.Observer
	dirty     atomic.Bool // something was committed since the last checkpoint
	rescued   atomic.Bool // a deleted log was copied into the database file
	// pin is an extra connection. While it is open, SQLite keeps its write-ahead
	// log whatever the pool does, so a missing log means that somebody removed it.
	pin *sql.DB
}

var (
	_ store.Store   = (*SQLite)(nil)
	_ history.Store = (*SQLite)(nil)
)

// OpenSQLite opens or creates the file at path and brings its tables up to
// date. It refuses a file that another process has open.
func OpenSQLite(ctx context.Context, path string, reg prometheus.Registerer) (_ *SQLite, err error) {
	files, err := takeFiles(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = files.release() // err is more specific
		}
	}()
	db, err := openFile(path, writeOptions)
	if err != nil {
		return nil, openError(path, err)
	}
	db.SetMaxOpenConns(sqliteConns)
	db.SetMaxIdleConns(sqliteIdle)
	pin, err := openFile(path, writeOptions)
	if err != nil {
		return nil, errors.Join(openError(path, err), db.Close())
	}
	pin.SetMaxOpenConns(1)
	if err := prepareSQLite(ctx, db, pin, files); err != nil {
		return nil, errors.Join(explain(err), db.Close(), pin.Close())
	}
	durations := newDurations()
	register(reg, durations, newRefusals(), func() poolStat {
		s := db.Stats()
		return poolStat{open: s.OpenConnections, idle: s.Idle, max: s.MaxOpenConnections}
	})
	l := &SQLite{db: db, pin: pin, files: files, durations: durations}
	l.historyTables = historyTables{l, newSchema()}
	return l, nil
}

// writeOptions are the driver's options for connections that write.
const writeOptions = "_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=journal_size_limit(67108864)&_txlock=immediate"

// openFile opens a file with options of the driver.
func openFile(path, options string) (*sql.DB, error) {
	return sql.Open("sqlite", fmt.Sprintf("file:%s?_pragma=busy_timeout(%d)&%s", (&url.URL{Path: path}).EscapedPath(), sqliteBusy.Milliseconds(), options))
}

// timed runs f and observes its duration as one statement.
func (l *SQLite) timed(f func() error) error {
	start := time.Now()
	err := f()
	l.durations.Observe(time.Since(start).Seconds())
	return err
}

type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (l *SQLite) begin(ctx context.Context, opts *sql.TxOptions) (tx *sql.Tx, err error) {
	err = l.timed(func() error {
		tx, err = l.db.BeginTx(ctx, opts)
		return err
	})
	return tx, err
}

// rollback rolls back; after a commit it does nothing.
func (l *SQLite) rollback(tx *sql.Tx) {
	start := time.Now()
	if err := tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
		l.durations.Observe(time.Since(start).Seconds())
	}
}

func (l *SQLite) exec(ctx context.Context, x executor, query string, args ...any) error {
	return l.timed(func() error {
		_, err := x.ExecContext(ctx, query, args...)
		return err
	})
}

func (l *SQLite) query(ctx context.Context, x executor, read func(*sql.Rows) error, query string, args ...any) error {
	return l.timed(func() error {
		rows, err := x.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		if err := read(rows); err != nil {
			return err
		}
		return rows.Err()
	})
}

func (l *SQLite) head(ctx context.Context, x executor) (h head, err error) {
	err = l.timed(func() error {
		h, err = scanHead(x.QueryRowContext(ctx, selectHead+" FROM head WHERE id = 1"))
		return err
	})
	h.clock = l.Clock()
	h.now = max(h.at, h.clock.Now)
	return h, err
}

// Load implements store.Store.
func (l *SQLite) Load(ctx context.Context) (*mesh.Snapshot, error) {
	s, err := l.load(ctx)
	if sqliteCode(err) == sqlite3.SQLITE_CORRUPT {
		// A connection caches the damaged page. New connections see a repaired file.
		l.db.SetMaxIdleConns(-1)
		l.db.SetMaxIdleConns(sqliteIdle)
	}
	return s, explain(err)
}

func (l *SQLite) load(ctx context.Context) (*mesh.Snapshot, error) {
	tx, err := l.begin(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer l.rollback(tx)
	h, err := l.head(ctx, tx)
	if err != nil {
		return nil, err
	}
	d := mesh.Empty().Edit()
	for _, t := range l.schema.loaders() {
		if err := l.query(ctx, tx, func(rows *sql.Rows) error { return t.read(d, rows) }, t.query); err != nil {
			return nil, err
		}
	}
	d.Restore(h.rev, h.at, h.batch, h.counters)
	return d.Freeze(), nil
}

// Tail implements store.Store.
func (l *SQLite) Tail(ctx context.Context, after store.Point) ([]store.Entry, error) {
	h, err := l.head(ctx, l.db)
	if err != nil {
		return nil, explain(err)
	}
	rows, err := l.tail(ctx, l.db, after.Rev)
	if err != nil {
		return nil, explain(err)
	}
	return entries(rows, after, store.Point{Rev: h.rev, Batch: h.batch})
}

func (l *SQLite) tail(ctx context.Context, x executor, after mesh.Revision) (missed []logRow, err error) {
	err = l.query(ctx, x, func(rows *sql.Rows) error {
		missed, err = l.schema.readLog(rows)
		return err
	}, l.schema.log.selectAll()+logAfter, int64(after), store.TailLimit)
	return missed, err
}

// Lock begins an immediate transaction: SQLite then allows no other writer.
func (l *SQLite) Lock(ctx context.Context, after mesh.Revision, batch store.BatchID, fn func(store.Tx) error) error {
	if err := l.usable(ctx); err != nil {
		return err
	}
	t, err := l.begin(ctx, nil)
	if err != nil {
		return explain(err)
	}
	defer l.rollback(t)
	h, err := l.head(ctx, t)
	if err != nil {
		return explain(err)
	}
	missed, err := l.tail(ctx, t, after)
	if err != nil {
		return explain(err)
	}
	tx := newTx(l.schema, h, missed, after, batch)
	if err := fn(tx); err != nil {
		return err
	}
	if tx.empty() {
		return nil
	}
	if err := l.files.present(); err != nil {
		return err
	}
	if err := l.write(ctx, t, tx); err != nil {
		return explain(err)
	}
	if err := l.timed(t.Commit); err != nil {
		if sqliteCode(err) == sqlite3.SQLITE_FULL {
			return explain(err) // the page that makes the others valid is written last, so nothing was committed
		}
		return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, explain(err)) // reading the file again shows whether it was committed
	}
	l.dirty.Store(true)
	l.files.note(tx.head.rev)
	return nil
}

func (l *SQLite) write(ctx context.Context, t *sql.Tx, tx *tx) error {
	if tx.bare() {
		// Without a change of the row, SQLite would have nothing to sync.
		return errors.Join(l.exec(ctx, t, putProbe, probeName+"commit", ""), l.exec(ctx, t, dropProbe, probeName+"commit"))
	}
	for _, table := range slices.Sorted(maps.Keys(tx.changes.gone)) {
		for id := range tx.changes.gone[table] {
			if err := l.exec(ctx, t, "DELETE FROM "+table+" WHERE id = ?", id); err != nil {
				return err
			}
		}
	}
	for r, rows := range tx.changes.all() {
		if err := l.insert(ctx, t, &r.insert, rows); err != nil {
			return err
		}
	}
	counters, err := tx.head.countersText()
	if err != nil {
		return err
	}
	return l.exec(ctx, t, "UPDATE head SET rev = ?, at = ?, batch = ?, counters = ? WHERE id = 1", int64(tx.head.rev), int64(tx.head.now), tx.batch[:], counters)
}

func (l *SQLite) insert(ctx context.Context, t *sql.Tx, in *insert, rows [][]any) error {
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(in.columns)), ", ")
	stmt, err := t.PrepareContext(ctx, "INSERT INTO "+in.table+" ("+in.names()+") VALUES ("+marks+")"+in.onConflict())
	if err != nil {
		return err
	}
	defer stmt.Close()
	for _, row := range rows {
		start := time.Now()
		_, err := stmt.ExecContext(ctx, row...)
		l.durations.Observe(time.Since(start).Seconds())
		if err != nil {
			return err
		}
	}
	return nil
}

// usable fails if the database or its write-ahead log was removed or replaced. A
// deleted log is still open, so acknowledged changes that exist only there are
// moved into the database file before this process ends.
func (l *SQLite) usable(ctx context.Context) error {
	err := l.files.present()
	if err != nil && !l.rescued.Load() {
		all, _ := checkpoint(ctx, l.pin) // err is more specific
		l.rescued.Store(all)
	}
	return err
}

// Changed is never signalled, because there is no other replica.
func (l *SQLite) Changed() <-chan struct{} { return nil }

// Watch has nothing to do.
func (l *SQLite) Watch(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Beat only reads the file: this is the only replica, and an idle server should not write to the disk.
func (l *SQLite) Beat(ctx context.Context, self store.Report) ([]store.Report, error) {
	if err := l.usable(ctx); err != nil {
		return nil, err
	}
	if _, err := l.head(ctx, l.db); err != nil {
		return nil, explain(err)
	}
	return []store.Report{self}, nil
}

// Clock implements store.Store: a file has no clock of its own.
func (l *SQLite) Clock() store.Clock { return store.LocalClock() }

// Prune deletes in chunks, so that writers get a turn in between.
func (l *SQLite) Prune(ctx context.Context, keep mesh.Revision, age time.Duration) (total int64, err error) {
	if l.dirty.Swap(false) { // limits how old a copy of the database file alone can be
		if _, err := l.db.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
			l.dirty.Store(true)
			return 0, explain(err)
		}
	}
	_, before := l.cutoff(age)
	_, future := l.cutoff(-futureAge)
	for {
		n, err := l.affect(ctx, "DELETE FROM log WHERE rev IN (SELECT rev FROM (SELECT rev, at FROM log ORDER BY rev LIMIT 5000) WHERE rev <= ? AND (at < ? OR at > ?))", int64(keep), before, future)
		total += n
		if err != nil || n == 0 {
			return total, explain(err)
		}
	}
}

func (l *SQLite) affect(ctx context.Context, statement string, args ...any) (n int64, err error) {
	err = l.timed(func() error {
		res, err := l.db.ExecContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	return n, err
}

func (l *SQLite) read(ctx context.Context, into func(rowsReader) error, query string, args ...any) error {
	return l.query(ctx, l.db, func(rows *sql.Rows) error { return into(rows) }, query, args...)
}

func (l *SQLite) nodeList(ids []mesh.NodeID) (table string, arg any) {
	list, _ := json.Marshal(ids) // cannot fail
	return "(SELECT DISTINCT value AS id FROM json_each($5))", string(list)
}

func (l *SQLite) cutoff(age time.Duration) (moment string, arg any) {
	return "$1", int64(mesh.TimeOf(time.Now().Add(-age)))
}

// Close implements store.Store.
func (l *SQLite) Close() error {
	return errors.Join(l.db.Close(), l.pin.Close(), l.files.release())
}
