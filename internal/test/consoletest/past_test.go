//go:build !race

package consoletest

import (
	"database/sql"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // PostgreSQL driver
	_ "modernc.org/sqlite"             // SQLite driver
)

// database is a server's database, to be changed while the server is stopped.
type database struct{ driver, source string }

const (
	past   = 30 * day
	minute = int64(time.Minute / time.Microsecond)
)

// moment is the time of a revision, in the server's microseconds.
type moment struct{ rev, at int64 }

// givePast spreads what the server did in the last minute over the last month, in the same order,
// and generates the times at which devices were online.
func (d database) givePast(t testing.TB, devices []*device) {
	t.Helper()
	db, err := sql.Open(d.driver, d.source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &rewriting{t: t, tx: tx, Rand: rand.New(rand.NewPCG(30, uint64(len(devices))))}
	p.spread()
	for _, created := range []struct{ table, column, kind string }{
		{"users", "created_at", "user"},
		{"nodes", "created_at", "node"},
		{"preauth_keys", "created_at", "preauthkey"},
		{"api_keys", "created_at", "apikey"},
		{"policies", "saved_at", "policy"},
	} {
		p.do("UPDATE "+created.table+" SET "+created.column+" = coalesce((SELECT min(at) FROM audit WHERE object_kind = $1 AND object_id = CAST("+created.table+".id AS TEXT)), "+created.column+")", created.kind)
	}
	p.presence(devices)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

type rewriting struct {
	*rand.Rand
	t       testing.TB
	tx      *sql.Tx
	moments []moment
}

func (p *rewriting) do(statement string, args ...any) {
	p.t.Helper()
	if _, err := p.tx.ExecContext(p.t.Context(), statement, args...); err != nil {
		p.t.Fatalf("%s: %v", statement, err)
	}
}

// prepared returns a function that runs one prepared statement with different arguments.
func (p *rewriting) prepared(statement string) func(args ...any) {
	p.t.Helper()
	s, err := p.tx.PrepareContext(p.t.Context(), statement)
	if err != nil {
		p.t.Fatalf("%s: %v", statement, err)
	}
	p.t.Cleanup(func() { s.Close() })
	return func(args ...any) {
		if _, err := s.ExecContext(p.t.Context(), args...); err != nil {
			p.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// spread assigns each revision a time: more of them recently, fewer at night.
func (p *rewriting) spread() {
	rows, err := p.tx.QueryContext(p.t.Context(), "SELECT DISTINCT rev FROM audit ORDER BY rev")
	if err != nil {
		p.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var m moment
		if err := rows.Scan(&m.rev); err != nil {
			p.t.Fatal(err)
		}
		p.moments = append(p.moments, m)
	}
	if err := rows.Err(); err != nil {
		p.t.Fatal(err)
	}
	times := make([]int64, len(p.moments))
	now := time.Now().Add(-time.Minute)
	for i := range times {
		at := now
		for night := true; night; night = (at.Hour() < 7 || at.Weekday() == time.Sunday) && p.Float64() < 0.9 {
			at = now.Add(-time.Duration(float64(past) * math.Pow(p.Float64(), 1.6)))
		}
		times[i] = at.UnixMicro()
	}
	slices.Sort(times)
	update := p.prepared("UPDATE audit SET at = $1 WHERE rev = $2")
	for i := range p.moments {
		p.moments[i].at = times[i]
		update(times[i], p.moments[i].rev)
	}
}

// revisionAt returns the newest revision at a time.
func (p *rewriting) revisionAt(at int64) int64 {
	i := sort.Search(len(p.moments), func(i int) bool { return p.moments[i].at > at })
	return p.moments[max(0, i-1)].rev
}

// presence generates the times at which each device was online: servers always except for an
// outage, people's devices during the day. It also sets the expiry of the keys that expire later.
func (p *rewriting) presence(devices []*device) {
	insert := p.prepared("INSERT INTO presence (node, minute, online, at, rev, idx) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING")
	seen := p.prepared("UPDATE node_net SET last_seen = $1 WHERE id = $2")
	expire := p.prepared("UPDATE nodes SET expiry = $1 WHERE id = $2")
	created := p.created()
	now, index := time.Now(), int64(1000)
	for _, d := range devices {
		id, err := strconv.ParseInt(d.id, 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		if d.expiresIn > 0 {
			expire(now.Add(d.expiresIn).UnixMicro(), id)
		}
		for _, c := range p.transitions(d, later(time.UnixMicro(created[id]), now.Add(-past+day)), now) {
			at := c.at.UnixMicro()
			index++
			insert(id, at/minute, c.online, at, p.revisionAt(at), index)
			if c.online == 0 {
				seen(at, id)
			}
		}
	}
}

// created returns when each node joined.
func (p *rewriting) created() map[int64]int64 {
	rows, err := p.tx.QueryContext(p.t.Context(), "SELECT id, created_at FROM nodes")
	if err != nil {
		p.t.Fatal(err)
	}
	defer rows.Close()
	out := map[int64]int64{}
	for rows.Next() {
		var id, at int64
		if err := rows.Scan(&id, &at); err != nil {
			p.t.Fatal(err)
		}
		out[id] = at
	}
	if err := rows.Err(); err != nil {
		p.t.Fatal(err)
	}
	return out
}

// change is a device going online or offline.
type change struct {
	at     time.Time
	online int
}

// transitions returns the changes of one device since it joined, oldest first. In the last days,
// people's devices connect in the morning and disconnect in the evening.
func (p *rewriting) transitions(d *device, began, now time.Time) (out []change) {
	come := func(at time.Time) { out = append(out, change{at, 1}) }
	leave := func(at time.Time) { out = append(out, change{at, 0}) }
	hours := func(from, to float64) time.Duration {
		return time.Duration((from + (to-from)*p.Float64()) * float64(time.Hour))
	}
	switch {
	case d.user != "" && p.Float64() < 0.7:
		today := now.Truncate(day)
		for ago := 6; ago >= 0; ago-- {
			morning, evening := today.Add(-time.Duration(ago)*day+hours(6.5, 9.5)), today.Add(-time.Duration(ago)*day+hours(16, 22))
			if evening.Before(now) && p.Float64() < 0.85 {
				leave(morning.Add(-hours(9, 12)))
				come(morning)
				if p.Float64() < 0.4 {
					lunch := morning.Add(hours(3, 4))
					leave(lunch)
					come(lunch.Add(hours(0.1, 1)))
				}
			}
		}
	case d.flaps:
		for at := now.Add(-20 * time.Hour); at.Before(now.Add(-time.Hour)); at = at.Add(hours(0.5, 2.5)) {
			leave(at)
			come(at.Add(hours(0.02, 0.3)))
		}
	case p.Float64() < 0.12:
		outage := now.Add(-hours(2, 24*20))
		leave(outage)
		come(outage.Add(hours(0.05, 1.5)))
	}
	if d.away {
		gone := now.Add(-hours(0.3, 24*25))
		if d.user == "" || p.Float64() < 0.5 {
			gone = now.Add(-hours(0.3, 20))
		}
		gone = later(gone, began.Add(time.Minute))
		out = slices.DeleteFunc(out, func(c change) bool { return !c.at.Before(gone) })
		leave(gone)
	}
	out = slices.DeleteFunc(out, func(c change) bool { return c.at.Before(began) })
	if len(out) == 0 || out[0].online == 0 {
		out = slices.Insert(out, 0, change{began, 1})
	}
	return out
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
