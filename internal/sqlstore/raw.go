package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Location is where a database is: the SQLite file if one is set, else PostgreSQL.
type Location struct {
	SQLite   string
	Postgres PostgresConfig
}

// String describes the location without the password.
func (l Location) String() string {
	if l.SQLite != "" {
		return l.SQLite
	}
	hosts, ports := l.Postgres.servers()
	at := make([]string, len(hosts))
	for i, host := range hosts {
		at[i] = host + ":" + ports[i]
	}
	return fmt.Sprintf("PostgreSQL database %s at %s", l.Postgres.Name, strings.Join(at, ","))
}

// Use is the purpose for which a Raw is opened.
type Use byte

const (
	// Look reads while a server may be running.
	Look Use = iota
	// Take reads while no server runs, and keeps servers from starting.
	Take
	// Fill writes while no server runs. A missing SQLite file is created.
	Fill
)

// Raw gives access to the tables and rows of a database, for copying all of it. It creates or changes tables
// only in Rebuild and Migrate.
type Raw struct {
	db      *sql.DB
	files   *sqliteFiles // set for a SQLite database that no server may use
	dialect goose.Dialect
	where   Location
	use     Use
}

// OpenRaw opens a database for a use. It fails if the use is not possible now.
func OpenRaw(ctx context.Context, where Location, use Use) (*Raw, error) {
	open := openRawPostgres
	if where.SQLite != "" {
		open = openRawSQLite
	}
	r, err := open(ctx, where, use)
	return r, explain(err)
}

func openRawSQLite(ctx context.Context, where Location, use Use) (*Raw, error) {
	r := &Raw{dialect: goose.DialectSQLite3, where: where, use: use}
	if _, err := os.Stat(where.SQLite); use != Fill && err != nil {
		return nil, openError(where.SQLite, err)
	}
	options := "mode=ro"
	if use != Look {
		files, err := takeFiles(ctx, where.SQLite)
		if err != nil {
			return nil, err
		}
		r.files = files
	}
	if use == Fill {
		options = writeOptions
	}
	db, err := openFile(where.SQLite, options)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.db = db
	if use == Take {
		if err := r.files.complete(ctx, db); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

func openRawPostgres(ctx context.Context, where Location, use Use) (*Raw, error) {
	pool, err := where.Postgres.pool()
	if err != nil {
		return nil, err
	}
	config := patient(pool.ConnConfig)
	// The consumer of the rows may be slow, which must not end the transaction.
	for _, k := range []string{"idle_in_transaction_session_timeout", "statement_timeout", "tcp_user_timeout"} {
		config.RuntimeParams[k] = "0"
	}
	r := &Raw{dialect: goose.DialectPostgres, where: where, use: use, db: openDB(config)}
	ping, cancel := context.WithTimeout(ctx, 2*connectTimeout)
	defer cancel()
	if err := r.db.PingContext(ping); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if use != Look {
		if err := r.mustBeUnused(ctx); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

// patient returns a configuration without time limits.
func patient(config *pgx.ConnConfig) *pgx.ConnConfig {
	config = config.Copy()
	config.Tracer = nil
	for _, k := range []string{"idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout"} {
		delete(config.RuntimeParams, k)
	}
	return config
}

const (
	// fresh is the maximum age of the last heartbeat of a replica that may be running; beatsAgain is how long
	// to wait for its next heartbeat.
	fresh      = 10 * time.Second
	beatsAgain = 5 * time.Second
)

// mustBeUnused fails while a replica sends heartbeats. A replica with a recent heartbeat may have stopped
// since, so this waits for the next one.
func (r *Raw) mustBeUnused(ctx context.Context) error {
	exists := false
	if err := r.db.QueryRowContext(ctx, "SELECT to_regclass('replicas') IS NOT NULL").Scan(&exists); err != nil || !exists {
		return err
	}
	var id string
	var last, now int64
	newest := func() error {
		const ask = "SELECT coalesce((SELECT id FROM replicas ORDER BY at DESC LIMIT 1), ''), coalesce(max(at), 0), " + nowMicros + " FROM replicas"
		return r.db.QueryRowContext(ctx, ask).Scan(&id, &last, &now)
	}
	if err := newest(); err != nil || now-last >= fresh.Microseconds() {
		return err
	}
	for first, until := last, time.Now().Add(beatsAgain); time.Now().Before(until); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
		if err := newest(); err != nil {
			return err
		}
		if last != first {
			return fmt.Errorf("%s is in use by the server %s: stop all servers that use it first", r.where, id)
		}
	}
	return nil
}

// Engine returns sqlite or postgres.
func (r *Raw) Engine() string { return folder(r.dialect) }

// Close releases the database and its lock.
func (r *Raw) Close() error {
	var err error
	if r.db != nil {
		err = r.db.Close()
	}
	if r.files != nil {
		err = errors.Join(err, r.files.release())
	}
	return err
}

// View runs fn on a consistent view of the database.
func (r *Raw) View(ctx context.Context, fn func(*View) error) error {
	opts := &sql.TxOptions{ReadOnly: true}
	if r.dialect == goose.DialectPostgres {
		opts.Isolation = sql.LevelRepeatableRead
	}
	tx, err := r.db.BeginTx(ctx, opts)
	if err != nil {
		return explain(err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := r.keepOut(ctx, tx); err != nil {
		return explain(err)
	}
	v, err := r.view(ctx, tx)
	if err != nil {
		return explain(err)
	}
	return fn(v)
}

// keepOut makes servers that start wait until tx ends, unless the use allows running servers. With SQLite,
// the lock file does that.
func (r *Raw) keepOut(ctx context.Context, tx *sql.Tx) error {
	if r.dialect != goose.DialectPostgres || r.use == Look {
		return nil
	}
	var alone bool
	err := tx.QueryRowContext(ctx, "SELECT pg_try_advisory_xact_lock($1)", lock.DefaultLockID).Scan(&alone)
	if err == nil && !alone {
		err = fmt.Errorf("%s is in use by a server that is starting, or by another fairlead command: stop it first", r.where)
	}
	return err
}

func (r *Raw) view(ctx context.Context, tx *sql.Tx) (*View, error) {
	v := &View{tx: tx, dialect: r.dialect}
	version, err := r.version(ctx, tx)
	if err != nil || version == 0 {
		return v, err
	}
	newest, err := NewestSchema()
	if err != nil {
		return v, err
	}
	if version > newest {
		return v, fmt.Errorf("%s has schema version %d, but this binary supports only versions up to %d: use the version of fairlead that used it last", r.where, version, newest)
	}
	v.Schema = version
	if v.Tables, err = Tables(ctx, version); err != nil {
		return v, err
	}
	h, err := scanHead(tx.QueryRowContext(ctx, selectHead+" FROM head WHERE id = 1"))
	v.Rev = h.rev
	return v, err
}

// version returns the schema version, or zero for a database without our tables.
func (r *Raw) version(ctx context.Context, tx *sql.Tx) (version int64, err error) {
	ask := "SELECT count(*) FROM sqlite_schema WHERE name = 'goose_db_version'"
	if r.dialect == goose.DialectPostgres {
		ask = "SELECT count(to_regclass('goose_db_version'))"
	}
	var found int
	if err := tx.QueryRowContext(ctx, ask).Scan(&found); err != nil || found == 0 {
		return 0, err
	}
	err = tx.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version").Scan(&version)
	return version, err
}

// View is a consistent view of a database.
type View struct {
	Schema int64         // the schema version; zero if the database has no tables of ours
	Tables []Table       // those that the function Tables returns
	Rev    mesh.Revision // the newest revision

	tx      *sql.Tx
	dialect goose.Dialect
}

// Count returns the number of rows in a table.
func (v *View) Count(ctx context.Context, table string) (n int64, err error) {
	err = v.tx.QueryRowContext(ctx, "SELECT count(*) FROM "+table).Scan(&n)
	return n, explain(err)
}

// Rows yields all rows of a table in the order of its key. The values are int64, string and []byte. A row is
// valid until the next one. The batch in the head row is omitted, because it identifies the history of this
// database only.
func (v *View) Rows(ctx context.Context, t Table) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		rows, err := v.tx.QueryContext(ctx, v.selectOrdered(t))
		if err != nil {
			yield(nil, explain(err))
			return
		}
		defer rows.Close()
		row, into := make([]any, len(t.Columns)), make([]any, len(t.Columns))
		for i := range row {
			into[i] = &row[i]
		}
		for rows.Next() {
			err := rows.Scan(into...)
			if err == nil {
				err = v.check(t, row)
			}
			if err != nil {
				yield(nil, fmt.Errorf("reading %s: %w", t.Name, explain(err)))
				return
			}
			if !yield(row, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, fmt.Errorf("reading %s: %w", t.Name, explain(err)))
		}
	}
}

// selectOrdered returns a query for all rows of a table, in the order of its key. Text is sorted by its
// bytes, whatever the collation of the database.
func (v *View) selectOrdered(t Table) string {
	names := make([]string, len(t.Columns))
	types := map[string]string{}
	for i, c := range t.Columns {
		names[i], types[c.Name] = c.Name, c.Type
	}
	order := make([]string, len(t.Key))
	for i, name := range t.Key {
		order[i] = name
		if types[name] == "text" && v.dialect == goose.DialectPostgres {
			order[i] += ` COLLATE "C"`
		}
	}
	return "SELECT " + strings.Join(names, ", ") + " FROM " + t.Name + " ORDER BY " + strings.Join(order, ", ")
}

// check verifies that the values of a row have the types of its columns, which SQLite itself does not
// enforce. It also omits the batch in the head row; see Rows.
func (v *View) check(t Table, row []any) error {
	for i, c := range t.Columns {
		ok := false
		switch c.Type {
		case "integer":
			_, ok = row[i].(int64)
		case "text":
			_, ok = row[i].(string)
		case "blob":
			var b []byte
			b, ok = row[i].([]byte)
			if b == nil { // one of the drivers returns an empty value as nil
				row[i] = []byte{}
			}
		}
		if !ok {
			return fmt.Errorf("unexpected %T in the column %s of type %s", row[i], c.Name, c.Type)
		}
		if t.Name == "head" && c.Name == "batch" {
			row[i] = []byte{}
		}
	}
	return nil
}

// Rebuild drops all our tables, creates those of a schema version, and calls fn to fill them. If it returns
// an error, the database is unchanged. Replicas that followed the previous history notice the change.
// Revisions, ids and addresses that were assigned before are not assigned again.
func (r *Raw) Rebuild(ctx context.Context, version int64, fn func(*Rebuilding) error) error {
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return explain(err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := r.keepOut(ctx, tx); err != nil {
		return explain(err)
	}
	before, err := r.clear(ctx, tx)
	if err != nil {
		return explain(err)
	}
	if err := r.create(ctx, tx, version); err != nil {
		return explain(err)
	}
	v, err := r.view(ctx, tx)
	if err != nil {
		return explain(err)
	}
	for _, t := range v.Tables {
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+t.Name); err != nil { // rows that the migrations inserted
			return explain(err)
		}
	}
	if err := fn(&Rebuilding{View: v}); err != nil {
		return err
	}
	if err := begin(ctx, tx, before); err != nil {
		return explain(err)
	}
	if err := tx.Commit(); err != nil {
		return explain(err)
	}
	if r.files != nil {
		return r.files.forget()
	}
	return nil
}

// begin starts a new history from the inserted rows. If the previous history was longer, the new one
// continues at its end.
func begin(ctx context.Context, tx *sql.Tx, before head) error {
	h, err := scanHead(tx.QueryRowContext(ctx, selectHead+" FROM head WHERE id = 1"))
	if errors.Is(err, sql.ErrNoRows) {
		return errors.New("the table head is empty: the database is incomplete")
	}
	if err != nil {
		return err
	}
	_, _ = rand.Read(h.batch[:]) // never fails
	if _, err := tx.ExecContext(ctx, "UPDATE head SET batch = $1 WHERE id = 1", h.batch[:]); err != nil || before.rev == 0 {
		return err
	}
	h.counters = h.counters.AtLeast(before.counters)
	if before.rev > h.rev {
		h.rev, h.counters.V4, h.counters.V6 = before.rev, before.counters.V4, before.counters.V6
	}
	counters, err := h.countersText()
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "UPDATE head SET rev = $1, counters = $2 WHERE id = 1", int64(h.rev), counters)
	return err
}

// clear drops all our tables and returns their head row.
func (r *Raw) clear(ctx context.Context, tx *sql.Tx) (head, error) {
	version, err := r.version(ctx, tx)
	if err != nil || version == 0 {
		return head{}, err
	}
	before, err := scanHead(tx.QueryRowContext(ctx, selectHead+" FROM head WHERE id = 1"))
	if err != nil {
		return before, err
	}
	tables, err := allTables(ctx, version)
	if err != nil {
		return before, err
	}
	for _, t := range append(tables, Table{Name: goose.DefaultTablename}) {
		if _, err := tx.ExecContext(ctx, "DROP TABLE "+t.Name); err != nil {
			return before, err
		}
	}
	return before, nil
}

// create runs the migrations up to a version in one transaction. Unlike this, migrate uses one transaction
// for each.
func (r *Raw) create(ctx context.Context, tx *sql.Tx, version int64) error {
	files, err := migrationFiles(r.dialect)
	if err != nil {
		return err
	}
	versions, err := database.NewStore(r.dialect, goose.DefaultTablename)
	if err != nil {
		return err
	}
	if err := versions.CreateVersionTable(ctx, tx); err != nil {
		return err
	}
	if err := versions.Insert(ctx, tx, database.InsertRequest{Version: 0}); err != nil {
		return err
	}
	for _, f := range files {
		if f.version > version {
			break
		}
		if _, err := tx.ExecContext(ctx, f.up); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if err := versions.Insert(ctx, tx, database.InsertRequest{Version: f.version}); err != nil {
			return err
		}
	}
	return nil
}

// Migrate migrates the tables, as opening the store does.
func (r *Raw) Migrate(ctx context.Context) error {
	if r.dialect == goose.DialectSQLite3 {
		return explain(migrate(ctx, r.dialect, r.db))
	}
	pool, err := r.where.Postgres.pool()
	if err != nil {
		return err
	}
	return explain(migratePostgres(ctx, pool.ConnConfig, r.where.Postgres.log()))
}

// Rebuilding is a database with empty tables to be filled. Its View shows what was inserted.
type Rebuilding struct {
	*View
	statement string // the text of the prepared statement
	prepared  *sql.Stmt
}

// Insert adds rows in the form in which Rows yields them. SQLite gets them one by one, which is cheap there,
// while its driver is slow at binding many values. PostgreSQL gets many at once, because each statement is a
// round trip.
func (b *Rebuilding) Insert(ctx context.Context, t Table, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	atOnce := 1
	if b.dialect == goose.DialectPostgres {
		atOnce = maxArguments / len(names)
	}
	into := "INSERT INTO " + t.Name + " (" + strings.Join(names, ", ") + ") VALUES "
	for part := range slices.Chunk(rows, atOnce) {
		if err := b.exec(ctx, into+marks(len(part), len(names)), slices.Concat(part...)); err != nil {
			return fmt.Errorf("writing %s: %w", t.Name, explain(err))
		}
	}
	return nil
}

// maxArguments is below the maximum number of arguments of one statement.
const maxArguments = 32000

// exec executes a statement. It keeps the prepared statement as long as the text stays the same.
func (b *Rebuilding) exec(ctx context.Context, statement string, args []any) error {
	if b.prepared == nil || b.statement != statement {
		if b.prepared != nil {
			b.prepared.Close()
		}
		var err error
		if b.prepared, err = b.tx.PrepareContext(ctx, statement); err != nil {
			return err
		}
		b.statement = statement
	}
	_, err := b.prepared.ExecContext(ctx, args...)
	return err
}

// marks returns the placeholders for the values of some rows.
func marks(rows, columns int) string {
	var all strings.Builder
	for i := range rows * columns {
		switch {
		case i == 0:
			all.WriteString("(")
		case i%columns == 0:
			all.WriteString("), (")
		default:
			all.WriteString(", ")
		}
		fmt.Fprintf(&all, "$%d", i+1)
	}
	return all.String() + ")"
}
