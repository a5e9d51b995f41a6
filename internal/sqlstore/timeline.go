package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	// walFile is the name of the current file of the write-ahead log. It begins with the timeline, in eight
	// hexadecimal digits. pg_control_checkpoint would show the timeline of the last checkpoint, which may be
	// older than a promotion.
	walFile = "pg_walfile_name(pg_current_wal_lsn())"
	// describeServer returns whether a server rejects writes, which cluster it belongs to and its timeline.
	describeServer = "SELECT current_setting('transaction_read_only'), (SELECT system_identifier::text FROM pg_control_system()), " +
		"CASE WHEN pg_is_in_recovery() THEN '' ELSE " + walFile + " END"
	// staleShown is how long a refused server is reported. It is longer than the time between two surveys.
	staleShown = 6 * time.Minute
	// surveyWait is how long a survey waits for other servers after one has accepted a connection.
	surveyWait = time.Second
	// clusterKey and timelineKey are keys of a connection's custom data.
	clusterKey  = "fairlead-cluster"
	timelineKey = "fairlead-timeline"
)

// timelines knows the newest timeline of the PostgreSQL servers. Each promotion of a standby starts a new
// one, so a server on an older timeline is an old primary that lacks the changes made since. It must not be
// used, even if it accepts writes.
type timelines struct {
	refusals prometheus.Counter

	mu      sync.Mutex
	cluster string // guarded by mu; timelines of different clusters cannot be compared
	newest  uint64 // guarded by mu; 0 if unknown
	stale   *staleError
	at      time.Time // guarded by mu; when stale was refused
}

// staleError means that a server is an old primary.
type staleError struct {
	server      string
	its, newest uint64
}

func (e *staleError) Error() string {
	return fmt.Sprintf("the PostgreSQL server %s is an old primary: it is on timeline %d, and timeline %d exists; stop it, or make it a standby of the current primary with pg_rewind",
		e.server, e.its, e.newest)
}

var errReadOnly = errors.New("the PostgreSQL server is a standby or read-only")

// validate refuses standbys and old primaries. It is called for each new connection.
func (t *timelines) validate(ctx context.Context, conn *pgconn.PgConn) error {
	rows, err := firstRow(ctx, conn, describeServer)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && slices.Contains([]string{"42501", "42883", "0A000"}, pg.Code) {
		// Some hosted databases do not allow or offer these functions.
		if rows, err = firstRow(ctx, conn, "SHOW transaction_read_only"); err == nil {
			rows = append(rows, "", "")
		}
	}
	switch {
	case err != nil:
		return err
	case rows[0] == "on":
		return errReadOnly
	}
	conn.CustomData()[clusterKey] = rows[1]
	timeline, err := t.admit(conn, rows[2])
	conn.CustomData()[timelineKey] = timeline
	return err
}

// current reports whether no newer timeline is known than that of a connection.
func (t *timelines) current(conn *pgconn.PgConn) bool {
	timeline, _ := conn.CustomData()[timelineKey].(uint64)
	t.mu.Lock()
	defer t.mu.Unlock()
	return timeline == 0 || timeline >= t.newest || conn.CustomData()[clusterKey] != t.cluster
}

// firstRow returns the columns of the first row of a query.
func firstRow(ctx context.Context, conn *pgconn.PgConn, query string) ([]string, error) {
	results, err := conn.Exec(ctx, query).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) != 1 || len(results[0].Rows) == 0 {
		return nil, fmt.Errorf("no result of %s", query)
	}
	var out []string
	for _, column := range results[0].Rows[0] {
		out = append(out, string(column))
	}
	return out, nil
}

// admit returns the timeline of a connection, or a staleError. It remembers the newest timeline.
func (t *timelines) admit(conn *pgconn.PgConn, file string) (uint64, error) {
	if len(file) < 8 {
		return 0, nil
	}
	timeline, err := strconv.ParseUint(file[:8], 16, 32)
	if err != nil {
		return 0, nil //nolint:nilerr // not the name of a file of the log, so the timeline is unknown
	}
	cluster, _ := conn.CustomData()[clusterKey].(string)
	t.mu.Lock()
	defer t.mu.Unlock()
	if cluster == t.cluster && timeline < t.newest {
		t.stale, t.at = &staleError{conn.Conn().RemoteAddr().String(), timeline, t.newest}, time.Now()
		t.refusals.Inc()
		return 0, t.stale
	}
	t.cluster, t.newest = cluster, timeline
	return timeline, nil
}

// timelineQuery returns an expression for the argument of admit.
func (t *timelines) timelineQuery() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.newest == 0 {
		return "''"
	}
	return walFile
}

// warning describes an old primary that was refused recently, or returns "".
func (t *timelines) warning() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stale == nil || time.Since(t.at) > staleShown {
		return ""
	}
	return t.stale.Error()
}

// survey connects to all servers once, so that timelines knows the newest one even if it is not the first
// that accepts connections. It does not wait long for silent servers. An error of a server is not an error
// of the survey: whoever connects next reports it.
func (h *hosts) survey(ctx context.Context) {
	if len(h.all) == 1 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var wait sync.WaitGroup
	var once sync.Once
	for _, config := range h.all {
		wait.Go(func() {
			conn, err := pgx.ConnectConfig(ctx, config)
			if err != nil {
				return
			}
			closeConn(conn)
			once.Do(func() { time.AfterFunc(surveyWait, cancel) })
		})
	}
	wait.Wait()
}
