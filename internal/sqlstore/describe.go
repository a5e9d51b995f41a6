package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fairlead-mesh/fairlead/internal/store"
)

const (
	// maxRuns and maxStandbys limit what Describe returns.
	maxRuns, maxStandbys = 100, 50
	// recentRuns reads the reports of the last hour, without what replicas exchange in them.
	recentRuns = "SELECT id, " + nowMicros + " - at, (report::jsonb - 'facts' - 'uses' - 'sessionUses' - 'logins' - 'ssh')::text FROM replicas ORDER BY at DESC LIMIT $1"
	// describePrimary needs no privileges.
	describePrimary = "SELECT current_setting('server_version'), pg_is_in_recovery(), current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), " +
		"pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'), (SELECT count(*) FROM pg_stat_replication)"
	describeStandbys = "SELECT coalesce(application_name, ''), coalesce(host(client_addr), ''), coalesce(state, ''), coalesce(sync_state, ''), " +
		"coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn), 0)::bigint, coalesce(extract(epoch FROM replay_lag) * 1000000, 0)::bigint " +
		"FROM pg_stat_replication ORDER BY 1, 2 LIMIT $1"
)

// Host returns the server to which this replica is connected.
func (p *Postgres) Host() string {
	one := p.hosts.all[p.hosts.last.Load()]
	if len(one.Host) > 0 && one.Host[0] == '/' { // a socket directory
		return one.Host
	}
	return net.JoinHostPort(one.Host, strconv.Itoa(int(one.Port)))
}

// Describe describes the server to which this replica is connected, and returns the last report of every run of a replica
// that has reported within the last hour.
func (p *Postgres) Describe(ctx context.Context) (store.Database, []store.Report, error) {
	d := store.Database{Engine: "postgres", Host: p.Host(), Timeline: p.timelines.known()}
	var allowed bool
	var senders int
	err := p.read(ctx, func(rows rowsReader) error {
		for rows.Next() {
			if err := rows.Scan(&d.Version, &d.Standby, &d.SyncCommit, &d.SyncNames, &allowed, &senders); err != nil {
				return err
			}
		}
		return rows.Err()
	}, describePrimary)
	if err != nil {
		return d, nil, explain(err)
	}
	switch {
	case allowed && senders > 0:
		err = p.standbys(ctx, &d)
	case senders > 0:
		d.Hidden = "the database user may not see the standbys; to show them, run in PostgreSQL: GRANT pg_monitor TO " + pgx.Identifier{p.config.User}.Sanitize()
	}
	if err != nil {
		return d, nil, explain(err)
	}
	runs, err := p.runs(ctx)
	return d, runs, explain(err)
}

// standbys reads the standbys of the server.
func (p *Postgres) standbys(ctx context.Context, d *store.Database) error {
	err := p.read(ctx, func(rows rowsReader) error {
		for rows.Next() {
			var s store.Standby
			var lag int64
			if err := rows.Scan(&s.Name, &s.Addr, &s.State, &s.Sync, &s.LagBytes, &lag); err != nil {
				return err
			}
			s.Lag = time.Duration(lag) * time.Microsecond
			d.Standbys = append(d.Standbys, s)
		}
		return rows.Err()
	}, describeStandbys, maxStandbys)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "42501" || pg.Code == "42883" || pg.Code == "0A000") {
		// Some hosted databases do not allow or offer these functions.
		d.Standbys, d.Hidden, err = nil, "this PostgreSQL server does not show its standbys: "+pg.Message, nil
	}
	return err
}

// runs reads the reports of the last hour.
func (p *Postgres) runs(ctx context.Context) (out []store.Report, err error) {
	err = p.read(ctx, func(rows rowsReader) error {
		for rows.Next() {
			var r store.Report
			var id, text string
			var age int64
			if err := rows.Scan(&id, &age, &text); err != nil {
				return err
			}
			if err := json.Unmarshal([]byte(text), &r); err != nil {
				return err
			}
			r.ID, r.Age = store.ReplicaID(id), time.Duration(age)*time.Microsecond
			out = append(out, r)
		}
		return rows.Err()
	}, recentRuns, maxRuns)
	return out, err
}

// known returns the newest timeline, or 0.
func (t *timelines) known() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.newest
}

// Host returns the database file.
func (l *SQLite) Host() string { return l.files.path }

// Describe describes the database. There is only one replica, so it returns no reports.
func (l *SQLite) Describe(ctx context.Context) (store.Database, []store.Report, error) {
	d := store.Database{Engine: "sqlite", Host: l.files.path}
	err := l.read(ctx, func(rows rowsReader) error {
		for rows.Next() {
			if err := rows.Scan(&d.Version); err != nil {
				return err
			}
		}
		return rows.Err()
	}, "SELECT sqlite_version()")
	return d, nil, explain(err)
}
