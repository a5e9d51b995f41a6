package sqlstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// PostgresConfig says where PostgreSQL is and how many connections may be open. Defaults: port 5432, sslmode
// prefer, ten connections.
type PostgresConfig struct {
	Host         string // a name, several separated by commas, or a socket directory; a name may be followed by :port
	Port         int    // of the hosts without one
	Name         string
	User         string
	Pass         string
	SSLMode      string
	MaxOpenConns int
	MaxIdleConns int
	MaxIdleTime  time.Duration
	// AnswerTimeout limits how long one call waits for the server; it defaults to 15s. It ends the wait for a
	// server that has silently disappeared. A live server gives up earlier: its own limits are fractions of
	// this one.
	AnswerTimeout time.Duration
	// Log gets a line when a migration has to wait. By default, nothing is logged.
	Log *slog.Logger
}

func (c PostgresConfig) log() *slog.Logger { return cmp.Or(c.Log, slog.New(slog.DiscardHandler)) }

const (
	// channel is the notification channel that replicas listen on.
	channel = "fairlead"
	// nowMicros is the database's clock in the unit of mesh.Time.
	nowMicros = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
	// futureAge is how far in the future a log entry must be dated for Prune to
	// conclude that the time was set back after it.
	futureAge = time.Minute
)

// Postgres is the engine for one replica or many.
type Postgres struct {
	historyTables
	config    *pgx.ConnConfig
	hosts     *hosts
	timelines *timelines
	pool      *pgxpool.Pool
	answer    time.Duration // AnswerTimeout
	idle      idleLimit
	self      string // distinguishes our own notifications from those of others
	changed   chan struct{}
	clock     atomic.Pointer[store.Clock]
	beatMu    sync.Mutex // held while beating is in use, because Close may be called at any time
	beating   *pgx.Conn  // used only by Beat
}

var (
	_ store.Store   = (*Postgres)(nil)
	_ history.Store = (*Postgres)(nil)
)

// OpenPostgres connects and migrates the tables. Several replicas may do so at once: one of them migrates,
// and the others wait for it.
func OpenPostgres(ctx context.Context, c PostgresConfig, reg prometheus.Registerer) (*Postgres, error) {
	config, err := c.pool()
	if err != nil {
		return nil, err
	}
	durations := newDurations()
	config.ConnConfig.Tracer = tracer{durations}
	timelines := &timelines{refusals: newRefusals()}
	config.ConnConfig.ValidateConnect = timelines.validate
	hosts := newHosts(config.ConnConfig)
	hosts.survey(ctx)
	if err := hosts.refusePooler(ctx); err != nil {
		return nil, explain(err)
	}
	if err := migratePostgres(ctx, config.ConnConfig, c.log()); err != nil {
		return nil, explain(err)
	}
	config.BeforeConnect = hosts.choose
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, explain(err)
	}
	register(reg, durations, timelines.refusals, func() poolStat {
		s := pool.Stat()
		return poolStat{open: int(s.TotalConns()), idle: int(s.IdleConns()), max: int(s.MaxConns())}
	})
	p := &Postgres{
		config: config.ConnConfig, hosts: hosts, timelines: timelines, pool: pool, answer: c.answer(), idle: idleLimit{most: cmp.Or(int32(c.MaxIdleConns), config.MaxConns)},
		self: rand.Text(), changed: make(chan struct{}, 1),
	}
	p.historyTables = historyTables{p, newSchema()}
	return p, nil
}

// Load reads all tables in one transaction, so that they are consistent.
func (p *Postgres) Load(ctx context.Context) (*mesh.Snapshot, error) {
	d := mesh.Empty().Edit()
	var h head
	err := p.use(ctx, loadTimeout, func(ctx context.Context, conn *pgx.Conn) error {
		return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
			h, err = p.load(ctx, tx, d)
			return err
		})
	})
	if err != nil {
		return nil, explain(err)
	}
	d.Restore(h.rev, h.at, h.batch, h.counters)
	return d.Freeze(), nil
}

func (p *Postgres) load(ctx context.Context, tx pgx.Tx, d *mesh.Draft) (head, error) {
	if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
		return head{}, err
	}
	for _, l := range p.schema.loaders() {
		rows, err := tx.Query(ctx, l.query)
		if err != nil {
			return head{}, err
		}
		err = l.read(d, rows)
		rows.Close()
		if err != nil {
			return head{}, err
		}
	}
	var now mesh.Time
	sent := time.Now()
	h, err := scanHead(tx.QueryRow(ctx, selectHead+", "+nowMicros+" FROM head WHERE id = 1"), &now)
	if err == nil {
		p.readClock(now, sent)
	}
	return h, err
}

// Clock implements store.Store.
func (p *Postgres) Clock() store.Clock {
	if c := p.clock.Load(); c != nil {
		return *c
	}
	return store.LocalClock()
}

// readClock stores a clock reading that was requested at the given moment and has just arrived. A reading
// that took long, for example because of a lock, does not replace a better one.
func (p *Postgres) readClock(now mesh.Time, sent time.Time) store.Clock {
	const quick, recent = 100 * time.Millisecond, 10 * time.Second
	got := time.Now()
	c := store.ReadClock(now, sent, got)
	if last := p.clock.Load(); last == nil || got.Sub(sent) < quick || got.Sub(last.Read) > recent {
		p.clock.Store(&c)
	}
	return c
}

// rowsReader is what both drivers offer for reading several rows.
type rowsReader interface {
	scanner
	Next() bool
	Err() error
}

// Tail reads head and log as one statement each; the log is read second, so it reaches at least as far as the
// head.
//
// After a failover the pool is full of broken connections. When one is found, all are replaced and the log is
// read again, so that reading from the new primary does not have to wait for one of the next polls.
func (p *Postgres) Tail(ctx context.Context, after store.Point) ([]store.Entry, error) {
	var h head
	var rows []logRow
	broken := false
	read := func(ctx context.Context, conn *pgx.Conn) (err error) {
		h, rows, err = p.tail(ctx, conn, after.Rev, p.readHead(), "")
		broken = err != nil && ctx.Err() == nil && conn.IsClosed()
		return err
	}
	err := p.use(ctx, p.answer, read)
	if broken {
		p.pool.Reset()
		err = p.use(ctx, p.answer, read)
	}
	if err != nil {
		return nil, explain(err)
	}
	return entries(rows, after, store.Point{Rev: h.rev, Batch: h.batch})
}

// tail sends an optional first statement, the head query and the log query in
// one round trip.
func (p *Postgres) tail(ctx context.Context, conn *pgx.Conn, after mesh.Revision, headQuery, first string) (h head, missed []logRow, err error) {
	b := &pgx.Batch{}
	if first != "" {
		b.Queue(first)
	}
	b.Queue(headQuery)
	b.Queue(p.schema.log.selectAll()+logAfter, int64(after), store.TailLimit)
	sent := time.Now()
	res := conn.SendBatch(ctx, b)
	defer func() {
		if cerr := res.Close(); err == nil {
			err = cerr
		}
	}()
	if first != "" {
		if _, err := res.Exec(); err != nil {
			return h, nil, err
		}
	}
	var now mesh.Time
	var durability, walFile string
	if h, err = scanHead(res.QueryRow(), &now, &durability, &walFile); err != nil {
		return h, nil, err
	}
	if h.timeline, err = p.timelines.admit(conn.PgConn(), walFile); err != nil {
		closeConn(conn)
		return h, nil, err
	}
	h.clock = p.readClock(now, sent)
	h.now, h.lazy = max(h.at, now), durability == "off"
	rows, err := res.Query()
	if err != nil {
		return h, nil, err
	}
	defer rows.Close()
	missed, err = p.schema.readLog(rows)
	return h, missed, err
}

// readHead also reads the database's clock, the synchronous_commit setting and the timeline. A pooler between
// this replica and PostgreSQL may switch to another server at any time, so the timeline is read every time.
func (p *Postgres) readHead() string {
	return selectHead + ", " + nowMicros + ", current_setting('synchronous_commit'), " + p.timelines.timelineQuery() + " FROM head WHERE id = 1"
}

// Lock takes three round trips, whatever the size of the batch: begin, head and tail; all rows; commit.
func (p *Postgres) Lock(ctx context.Context, after mesh.Revision, batch store.BatchID, fn func(store.Tx) error) error {
	return p.use(ctx, p.answer, func(ctx context.Context, conn *pgx.Conn) error {
		lockHead := p.readHead()
		if !faultSkipHeadLock() {
			lockHead += " FOR UPDATE"
		}
		h, raws, err := p.tail(ctx, conn, after, lockHead, "BEGIN")
		if err != nil {
			return explain(err)
		}
		tx := newTx(p.schema, h, raws, after, batch)
		if err := fn(tx); err != nil || tx.empty() {
			rollback(conn)
			return err
		}
		b, err := p.commitBatch(tx)
		if err != nil {
			rollback(conn)
			return err
		}
		if err = conn.SendBatch(ctx, b).Close(); err == nil {
			err = commit(ctx, conn, p.answer)
		}
		return explain(err)
	})
}

// rollback rolls back the transaction, which releases the head row at once. If it fails, the pool closes the
// connection, which also releases it.
func rollback(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = conn.Exec(ctx, "ROLLBACK")
}

func (p *Postgres) commitBatch(tx *tx) (*pgx.Batch, error) {
	b := &pgx.Batch{}
	if tx.head.lazy {
		defer b.Queue("SET LOCAL synchronous_commit = on")
	}
	if tx.bare() {
		b.Queue(touchHead)
		return b, nil
	}
	for _, table := range slices.Sorted(maps.Keys(tx.changes.gone)) {
		b.Queue("DELETE FROM "+table+" WHERE id = ANY($1)", slices.Collect(maps.Keys(tx.changes.gone[table])))
	}
	for r, rows := range tx.changes.all() {
		b.Queue(r.unnest(), r.arrays(rows)...)
	}
	counters, err := tx.head.countersText()
	if err != nil {
		return nil, err
	}
	b.Queue("UPDATE head SET rev = $1, at = $2, batch = $3, counters = $4 WHERE id = 1", int64(tx.head.rev), int64(tx.head.now), tx.batch[:], counters)
	b.Queue("SELECT pg_notify('"+channel+"', $1)", p.self)
	return b, nil
}

// unnest returns a statement with one array per column: the same text, and so the same plan, for any number
// of rows.
func (in *insert) unnest() string {
	args := make([]string, len(in.columns))
	for i, c := range in.columns {
		args[i] = fmt.Sprintf("$%d::%s[]", i+1, map[columnType]string{integer: "bigint", text: "text", blob: "bytea"}[c.typ])
	}
	return "INSERT INTO " + in.table + " (" + in.names() + ") SELECT * FROM unnest(" + strings.Join(args, ", ") + ")" + in.onConflict()
}

// arrays turns rows into one array per column.
func (in *insert) arrays(rows [][]any) []any {
	out := make([]any, len(in.columns))
	for i, c := range in.columns {
		switch c.typ {
		case integer:
			out[i] = columnOf[int64](rows, i)
		case text:
			out[i] = columnOf[string](rows, i)
		case blob:
			out[i] = columnOf[[]byte](rows, i)
		}
	}
	return out
}

func columnOf[T any](rows [][]any, i int) []T {
	col := make([]T, len(rows))
	for j, row := range rows {
		col[j] = row[i].(T)
	}
	return col
}

// Changed implements store.Store.
func (p *Postgres) Changed() <-chan struct{} { return p.changed }

func (p *Postgres) hint() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// Watch listens on a connection of its own and reconnects when it is lost. A new connection is itself a
// reason to read the log.
func (p *Postgres) Watch(ctx context.Context) error {
	const shortest, longest = 100 * time.Millisecond, 2 * time.Second
	wait := shortest
	for ctx.Err() == nil {
		started := time.Now()
		_ = p.listen(ctx) // polling continues, and Beat reports the outage
		if time.Since(started) > longest {
			wait = shortest
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, longest)
	}
	return nil
}

func (p *Postgres) listen(ctx context.Context) error {
	conn, err := p.hosts.connect(ctx)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	p.hint()
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if n.Payload != p.self {
			p.hint()
		}
	}
}

// Beat uses a connection of its own, so that a busy pool cannot make this
// replica look dead.
func (p *Postgres) Beat(ctx context.Context, self store.Report) ([]store.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, acquireTimeout)
	defer cancel()
	p.beatMu.Lock()
	defer p.beatMu.Unlock()
	if p.beating != nil && !p.timelines.current(p.beating.PgConn()) {
		closeConn(p.beating)
	}
	if p.beating == nil || p.beating.IsClosed() {
		// A heartbeat is valid for seconds only. It waits neither for the disk nor for
		// a standby: a stalled standby must not make all replicas look dead.
		config := p.config.Copy()
		config.RuntimeParams["synchronous_commit"] = "off"
		if err := p.hosts.choose(ctx, config); err != nil {
			return nil, explain(err)
		}
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return nil, explain(err)
		}
		p.beating = conn
	}
	reports, err := beat(ctx, p.beating, self)
	if err != nil {
		closeConn(p.beating)
		return nil, explain(err)
	}
	return reports, nil
}

func beat(ctx context.Context, conn *pgx.Conn, self store.Report) ([]store.Report, error) {
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // escaping would turn one byte into six
	if err := enc.Encode(self); err != nil {
		return nil, err
	}
	b := &pgx.Batch{}
	b.Queue("INSERT INTO replicas (id, at, report) VALUES ($1, "+nowMicros+", $2) ON CONFLICT (id) DO UPDATE SET at = excluded.at, report = excluded.report",
		string(self.ID), text.String())
	b.Queue("DELETE FROM replicas WHERE at < " + nowMicros + " - 3600000000")
	b.Queue("SELECT id, " + nowMicros + " - at, report FROM replicas WHERE abs(" + nowMicros + " - at) < 60000000 ORDER BY id")
	res := conn.SendBatch(ctx, b)
	defer res.Close()
	for range 2 {
		if _, err := res.Exec(); err != nil {
			return nil, err
		}
	}
	rows, err := res.Query()
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (store.Report, error) {
		var r store.Report
		var age int64
		var text string
		if err := row.Scan(&r.ID, &age, &text); err != nil {
			return r, err
		}
		r.Age = time.Duration(age) * time.Microsecond
		return r, json.Unmarshal([]byte(text), &r)
	})
}

// Prune deletes in chunks, so that no statement holds locks for long, and looks only at the oldest rows:
// revisions are in the order of time.
func (p *Postgres) Prune(ctx context.Context, keep mesh.Revision, age time.Duration) (total int64, err error) {
	const statement = "DELETE FROM log WHERE rev IN (SELECT rev FROM (SELECT rev, at FROM log ORDER BY rev LIMIT 5000) oldest WHERE rev <= $2 AND (at < " + nowMicros + " - $1 OR at > " + nowMicros + " + $3))"
	for {
		n, err := p.affect(ctx, statement, age.Microseconds(), int64(keep), futureAge.Microseconds())
		total += n
		if err != nil || n == 0 {
			return total, explain(err)
		}
	}
}

// affect deletes or marks old rows. Nobody waits for the result, so it does not wait for a standby, which may
// not respond.
func (p *Postgres) affect(ctx context.Context, statement string, args ...any) (n int64, err error) {
	err = p.use(ctx, p.answer, func(ctx context.Context, conn *pgx.Conn) (err error) {
		b := &pgx.Batch{}
		b.Queue("SELECT set_config('synchronous_commit', 'off', true)")
		b.Queue(statement, args...)
		res := conn.SendBatch(ctx, b)
		defer func() { err = errors.Join(err, res.Close()) }()
		if _, err := res.Exec(); err != nil {
			return err
		}
		tag, err := res.Exec()
		n = tag.RowsAffected()
		return err
	})
	return n, err
}

func (p *Postgres) read(ctx context.Context, into func(rowsReader) error, query string, args ...any) error {
	return p.use(ctx, p.answer, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		return into(rows)
	})
}

func (p *Postgres) nodeList(ids []mesh.NodeID) (table string, arg any) {
	list := make([]int64, len(ids))
	for i, id := range ids {
		list[i] = int64(id)
	}
	return "(SELECT DISTINCT id FROM unnest($5::bigint[]) AS id)", list
}

func (p *Postgres) cutoff(age time.Duration) (moment string, arg any) {
	return nowMicros + " - $1", age.Microseconds()
}

// Close implements store.Store.
func (p *Postgres) Close() error {
	p.beatMu.Lock()
	defer p.beatMu.Unlock()
	if p.beating != nil {
		closeConn(p.beating)
	}
	p.pool.Close()
	return nil
}
