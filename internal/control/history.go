package control

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// maxFilter is longer than any kind, verb, id or name that is kept.
const maxFilter = 300

// How many rows one answer of a list of past changes has.
const (
	defaultRows = 100
	maxRows     = 1000
	maxVersions = 100 // of the policy
)

// rowLimit returns how many rows to read for a caller that asks for a number of them; zero
// stands for the default.
func rowLimit(asked, most int) (int, error) {
	if asked < 0 || asked > most {
		return 0, refuse(Invalid, "limit", "limit must be from 1 to %d", most)
	}
	return cmp.Or(asked, defaultRows), nil
}

// History reads what happened: the audit log.
type History struct{ *core }

// Audit returns the newest rows that q asks for, and the position to ask before
// for those that follow; it is zero when there are none. A limit of zero means
// the default.
func (s *History) Audit(ctx context.Context, q history.AuditQuery) (rows []history.AuditRow, next history.Position, err error) {
	for _, f := range []struct {
		path  string
		texts []string
		among []string // nil for any
	}{{"kind", q.Kinds, eventKinds()}, {"verb", q.Verbs, changeVerbs()}, {"object", []string{q.Object}, nil}, {"actor", []string{q.Actor}, nil}} {
		for _, text := range f.texts {
			if err := checkText(f.path, text, maxFilter); err != nil {
				return nil, next, err
			}
			if f.among != nil && !slices.Contains(f.among, text) {
				return nil, next, refuse(Invalid, f.path, "%.50q is no %s: give one of %s", text, f.path, strings.Join(f.among, ", "))
			}
		}
	}
	wanted, err := rowLimit(q.Limit, maxRows)
	if err != nil {
		return nil, next, err
	}
	q.Newest = true
	q.Limit = wanted + 1 // one more tells whether any follow
	if rows, err = s.history.Audit(ctx, q); err != nil || len(rows) <= wanted {
		return rows, next, err
	}
	rows = rows[:wanted]
	return rows, rows[wanted-1].Position, nil
}

// Changes returns what happened after a position, up to the end of a revision
// that this replica has seen, oldest first: the rows of the audit, and in the
// same form the nodes that came and went. It fails with history.ErrForgotten when
// some of it may be gone.
func (s *History) Changes(ctx context.Context, after history.Position, upTo mesh.Revision, limit int) ([]history.AuditRow, error) {
	before := history.EndOf(upTo)
	rows, err := s.history.Audit(ctx, history.AuditQuery{After: after, Before: before, Limit: limit})
	if err != nil {
		return nil, err
	}
	moves, err := s.history.Transitions(ctx, after, before, limit)
	if err != nil {
		return nil, err
	}
	for _, m := range moves {
		verb := "offline"
		if m.Online {
			verb = "online"
		}
		id := m.Node.String()
		rows = append(rows, history.AuditRow{
			Position: m.Position, At: m.At, Actor: mesh.Actor{Kind: mesh.ActorNode, ID: id}, Verb: verb, Kind: "node", Object: id,
		})
	}
	slices.SortFunc(rows, func(a, b history.AuditRow) int { return a.Position.Compare(b.Position) })
	return rows[:min(limit, len(rows))], nil
}

const (
	defaultPresence = 24 * time.Hour
	maxPresence     = 31 * 24 * time.Hour
)

// Presence returns when nodes were online within a time; see history.Reader.
func (s *History) Presence(ctx context.Context, nodes []mesh.NodeID, from, to mesh.Time) ([]history.Presence, error) {
	return s.history.Presence(ctx, nodes, from, to)
}

// PresencePeriod is the time that presence is asked for: up to now and from a day
// earlier, where nothing else is given, and never later than now.
func PresencePeriod(from, to, now mesh.Time) (mesh.Time, mesh.Time, error) {
	if to == 0 || to > now {
		to = now
	}
	if from == 0 {
		from = to.Add(-defaultPresence)
	}
	if from >= to {
		return 0, 0, refuse(Invalid, "from", "from must be before to, and in the past")
	}
	if to > from.Add(maxPresence) {
		return 0, 0, refuse(Invalid, "from", "from and to must be at most 31 days apart")
	}
	return from, to, nil
}
