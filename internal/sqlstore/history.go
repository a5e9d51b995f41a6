package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// historyTables implements history.Store for both engines.
type historyTables struct {
	engine engine
	schema *schema
}

// engine is the part of historyTables that differs between the engines.
type engine interface {
	// read runs a query; affect runs a statement and returns the number of affected rows.
	read(ctx context.Context, into func(rowsReader) error, query string, args ...any) error
	affect(ctx context.Context, statement string, args ...any) (int64, error)
	// nodeList returns a table expression for the ids that are passed as the fifth argument.
	nodeList(ids []mesh.NodeID) (table string, arg any)
	// cutoff returns an expression for the current time minus age; arg is its first argument.
	cutoff(age time.Duration) (moment string, arg any)
}

// conditions collects the conditions of a query and their arguments, in the order of their placeholders, so
// that the placeholder numbers mean the same to both engines.
type conditions struct {
	list []string
	args []any
}

func (c *conditions) mark(arg any) string {
	c.args = append(c.args, arg)
	return fmt.Sprintf("$%d", len(c.args))
}

// between selects the rows after one position and before another; a zero position sets no bound.
func (c *conditions) between(after, before history.Position) {
	if after != (history.Position{}) {
		c.list = append(c.list, "(rev, idx) > ("+c.mark(int64(after.Rev))+", "+c.mark(int64(after.Index))+")")
	}
	if before != (history.Position{}) {
		c.list = append(c.list, "(rev, idx) < ("+c.mark(int64(before.Rev))+", "+c.mark(int64(before.Index))+")")
	}
}

// since compares the revision with the first revision at or after a time. Times never decrease with
// revisions, so a time range is a revision range and needs no sorting.
func (c *conditions) since(operator string, t mesh.Time) {
	if t != 0 {
		c.list = append(c.list, fmt.Sprintf("rev %s coalesce((SELECT rev FROM audit WHERE at >= %s ORDER BY at, rev LIMIT 1), %d)", operator, c.mark(int64(t)), math.MaxInt64))
	}
}

func (c *conditions) oneOf(column string, values []string) {
	if len(values) == 0 {
		return
	}
	marks := make([]string, len(values))
	for i, v := range values {
		marks[i] = c.mark(v)
	}
	c.list = append(c.list, column+" IN ("+strings.Join(marks, ", ")+")")
}

func (c *conditions) actor(actor string) {
	if actor == "" {
		return
	}
	kind, who, one := strings.Cut(actor, ":")
	c.list = append(c.list, "actor_kind = "+c.mark(kind))
	if one {
		c.list = append(c.list, "(actor_id = "+c.mark(who)+" OR actor_name = "+c.mark(who)+")")
	}
}

func (c *conditions) String() string {
	if len(c.list) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.list, " AND ")
}

// Audit implements history.Store.
func (h historyTables) Audit(ctx context.Context, q history.AuditQuery) (out []history.AuditRow, err error) {
	var c conditions
	c.between(q.After, q.Before)
	c.since(">=", q.From)
	c.since("<", q.To)
	c.oneOf("object_kind", q.Kinds)
	c.oneOf("verb", q.Verbs)
	if q.Object != "" {
		c.oneOf("object_id", []string{q.Object})
	}
	c.actor(q.Actor)
	order := "rev, idx"
	if q.Newest {
		order = "rev DESC, idx DESC"
	}
	query := h.schema.audit.selectAll() + c.String() + " ORDER BY " + order + " LIMIT " + c.mark(q.Limit)
	out, err = readAll(ctx, h.engine, h.scanAudit, query, c.args...)
	if err == nil {
		err = h.reaches(ctx, "audit", q.After)
	}
	return out, explain(err)
}

func (h historyTables) scanAudit(from scanner) (a history.AuditRow, err error) {
	var r auditRow
	if err := h.schema.audit.scan(from, &r); err != nil {
		return a, err
	}
	a = history.AuditRow{
		Position: history.Position{Rev: r.Rev, Index: r.Idx}, At: r.At, Verb: r.Verb, Kind: r.ObjectKind, Object: r.ObjectID,
		Before: orNil(r.Before), After: orNil(r.After),
	}
	return a, json.Unmarshal([]byte(r.Actor), &a.Actor)
}

// readAll reads the rows of a query.
func readAll[T any](ctx context.Context, e engine, scan func(scanner) (T, error), query string, args ...any) (out []T, err error) {
	err = e.read(ctx, func(rows rowsReader) error {
		for rows.Next() {
			v, err := scan(rows)
			if err != nil {
				return err
			}
			out = append(out, v)
		}
		return rows.Err()
	}, query, args...)
	return out, err
}

// reaches fails if rows after a position had already been deleted when they were read. Call it after the
// read: deletions are recorded in the table forgotten before they happen.
func (h historyTables) reaches(ctx context.Context, table string, after history.Position) error {
	if after == (history.Position{}) {
		return nil
	}
	var gone, head mesh.Revision
	_, err := readAll(ctx, h.engine, func(r scanner) (struct{}, error) {
		return struct{}{}, r.Scan((*int64)(&gone), (*int64)(&head))
	}, "SELECT forgotten.rev, head.rev FROM forgotten, head WHERE forgotten.id = $1 AND head.id = 1", table)
	if err != nil {
		return err
	}
	if after.Compare(history.EndOf(gone)) < 0 || after.Rev > head {
		return fmt.Errorf("%w: requested what follows %v, but only revisions after %d up to %d are stored", history.ErrForgotten, after, gone, head)
	}
	return nil
}

// presenceMinute is the unit in which transitions are merged.
const presenceMinute = 60_000_000

func minuteOf(t mesh.Time) int64 { return int64(t) / presenceMinute }

// Transitions implements history.Store.
func (h historyTables) Transitions(ctx context.Context, after, before history.Position, limit int) ([]history.Transition, error) {
	var c conditions
	c.between(after, before)
	query := "SELECT node, at, online, rev, idx FROM presence" + c.String() + " ORDER BY rev, idx LIMIT " + c.mark(limit)
	out, err := readAll(ctx, h.engine, scanTransition, query, c.args...)
	if err == nil {
		err = h.reaches(ctx, "presence", after)
	}
	return out, explain(err)
}

func scanTransition(r scanner) (t history.Transition, err error) {
	var online int64
	err = r.Scan((*int64)(&t.Node), (*int64)(&t.At), &online, (*int64)(&t.Position.Rev), &t.Position.Index)
	t.Online = online != 0
	return t, err
}

// presenceQuery reads, for each node of a list, its transitions and a row without a position that holds the
// state before them. That state comes from the newest older transition, else from the first later one, else
// from the current state of the node.
func presenceQuery(nodes string) string {
	return `
		SELECT n.id AS node, 0 AS at, coalesce(
			(SELECT online FROM presence p WHERE p.node = n.id AND p.minute <= $1 AND p.at < $2 ORDER BY p.minute DESC, p.rev DESC, p.idx DESC LIMIT 1),
			1 - (SELECT online FROM presence p WHERE p.node = n.id AND p.minute >= $1 AND p.at >= $2 ORDER BY p.minute, p.rev, p.idx LIMIT 1),
			(SELECT online FROM node_net WHERE node_net.id = n.id),
			0) AS online, 0 AS rev, 0 AS idx
		FROM ` + nodes + ` AS n
		UNION ALL
		SELECT p.node, p.at, p.online, p.rev, p.idx
		FROM ` + nodes + ` AS n JOIN presence p ON p.node = n.id AND p.minute >= $1 AND p.at >= $2 AND p.minute <= $3 AND p.at < $4
		ORDER BY node, rev, idx`
}

// Presence implements history.Store.
func (h historyTables) Presence(ctx context.Context, nodes []mesh.NodeID, from, to mesh.Time) ([]history.Presence, error) {
	table, args := "(SELECT id FROM nodes)", []any{minuteOf(from), int64(from), minuteOf(to), int64(to)}
	if nodes != nil {
		list, arg := h.engine.nodeList(nodes)
		table, args = list, append(args, arg)
	}
	rows, err := readAll(ctx, h.engine, scanTransition, presenceQuery(table), args...)
	var out []history.Presence
	for _, t := range rows {
		if t.Position == (history.Position{}) {
			out = append(out, history.Presence{Node: t.Node, Before: t.Online})
			continue
		}
		last := &out[len(out)-1]
		last.Transitions = append(last.Transitions, t)
	}
	return out, explain(err)
}

// Forget implements history.Store.
func (h historyTables) Forget(ctx context.Context, audit, transitions time.Duration) (int64, error) {
	rows, err := h.forget(ctx, "audit", audit)
	if err != nil {
		return rows, err
	}
	more, err := h.forget(ctx, "presence", transitions)
	rows += more
	if err != nil {
		return rows, err
	}
	if more, err = h.forgetLeaders(ctx, audit); err != nil {
		return rows + more, err
	}
	rows += more
	more, err = h.forgetLetters(ctx)
	return rows + more, err
}

// forgetLeaders deletes old leaders. It keeps the leader at the start of the kept period: a row is deleted
// only if a later one for its prefix is too old as well.
func (h historyTables) forgetLeaders(ctx context.Context, age time.Duration) (int64, error) {
	moment, arg := h.engine.cutoff(age)
	n, err := h.engine.affect(ctx, "DELETE FROM route_leaders WHERE EXISTS (SELECT 1 FROM route_leaders AS later WHERE later.prefix = route_leaders.prefix"+
		" AND later.rev > route_leaders.rev AND later.at < "+moment+")", arg)
	return n, explain(err)
}

// Leaders implements history.Store.
func (h historyTables) Leaders(ctx context.Context, prefix netip.Prefix, limit int) ([]history.Leader, error) {
	found, err := readAll(ctx, h.engine, func(from scanner) (history.Leader, error) {
		var r leaderRow
		err := h.schema.leaders.scan(from, &r)
		return history.Leader{Prefix: r.Prefix, Rev: r.Rev, At: r.At, Node: r.Node, Name: r.Name}, err
	}, h.schema.leaders.selectAll()+" WHERE prefix = $1 ORDER BY rev DESC LIMIT $2", prefix.String(), limit)
	return found, explain(err)
}

// forgetLetters deletes dead letters that are too old, exceed the limit of their webhook or belong to a
// deleted webhook. It needs only one statement, because their number is bounded.
func (h historyTables) forgetLetters(ctx context.Context) (int64, error) {
	moment, arg := h.engine.cutoff(history.DeadLetterAge)
	n, err := h.engine.affect(ctx, fmt.Sprintf("DELETE FROM dead_letters WHERE at < %s OR webhook NOT IN (SELECT id FROM webhooks) OR id <= "+
		"(SELECT newer.id FROM dead_letters AS newer WHERE newer.webhook = dead_letters.webhook ORDER BY newer.id DESC LIMIT 1 OFFSET %d)", moment, history.DeadLetters), arg)
	return n, explain(err)
}

// DeadLetters implements history.Store.
func (h historyTables) DeadLetters(ctx context.Context, w mesh.WebhookID, before mesh.DeadLetterID, limit int) ([]mesh.DeadLetter, error) {
	if before == 0 {
		before = mesh.MaxID + 1
	}
	letters := of[mesh.DeadLetterPut](h.schema)
	found, err := readAll(ctx, h.engine, func(from scanner) (l mesh.DeadLetter, err error) {
		err = letters.scan(from, &mesh.DeadLetterPut{Letter: &l})
		return l, err
	}, letters.selectAll()+" WHERE webhook = $1 AND id < $2 ORDER BY id DESC LIMIT $3", int64(w), int64(before), limit)
	return found, explain(err)
}

// forget deletes old rows in chunks, so that no statement holds locks for long. The first statement records
// how far it will delete, the second deletes.
func (h historyTables) forget(ctx context.Context, table string, age time.Duration) (total int64, err error) {
	moment, arg := h.engine.cutoff(age)
	mark := "UPDATE forgotten SET rev = oldest.rev FROM (SELECT max(rev) AS rev FROM (SELECT rev, at FROM " + table + " ORDER BY rev LIMIT 5000) AS chunk WHERE at < " + moment +
		") AS oldest WHERE forgotten.id = '" + table + "' AND oldest.rev > forgotten.rev"
	drop := "DELETE FROM " + table + " WHERE rev <= (SELECT rev FROM forgotten WHERE id = '" + table + "')"
	for {
		if _, err := h.engine.affect(ctx, mark, arg); err != nil {
			return total, explain(err)
		}
		n, err := h.engine.affect(ctx, drop)
		total += n
		if err != nil || n == 0 {
			return total, explain(err)
		}
	}
}

// Policies implements history.Store.
func (h historyTables) Policies(ctx context.Context, before mesh.PolicyVersion, limit int) ([]mesh.Policy, error) {
	if before == 0 {
		before = mesh.MaxID + 1
	}
	return h.policies(ctx, before-1, 1, limit)
}

// Policy implements history.Store.
func (h historyTables) Policy(ctx context.Context, v mesh.PolicyVersion) (*mesh.Policy, error) {
	found, err := h.policies(ctx, v, v, 1)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: %v", history.ErrNoPolicy, v)
	}
	return &found[0], nil
}

// policies reads versions from one down to another, newest first.
func (h historyTables) policies(ctx context.Context, from, downTo mesh.PolicyVersion, limit int) ([]mesh.Policy, error) {
	versions := of[mesh.PolicyPut](h.schema)
	found, err := readAll(ctx, h.engine, func(row scanner) (p mesh.Policy, err error) {
		err = versions.scan(row, &mesh.PolicyPut{Policy: &p})
		return p, err
	}, versions.selectAll()+" WHERE id <= $1 AND id >= $2 ORDER BY id DESC LIMIT $3", int64(from), int64(downTo), limit)
	return found, explain(err)
}
