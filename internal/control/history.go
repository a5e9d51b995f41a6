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

// maxFilter is longer than any kind, verb, id or name that is stored.
const maxFilter = 300

// The number of rows in one response that lists past changes.
const (
	defaultRows = 100
	maxRows     = 1000
	maxVersions = 100 // maximum number of policy versions
)

// rowLimit checks a limit that a caller asked for; zero means the default.
func rowLimit(asked, most int) (int, error) {
	if asked < 0 || asked > most {
		return 0, refuse(Invalid, "limit", "limit must be from 1 to %d", most)
	}
	return cmp.Or(asked, defaultRows), nil
}

// History implements the use cases for the audit log.
type History struct{ *core }

// Audit returns the newest rows that match q, and the position from which to continue,
// which is zero if there are no more. A limit of zero means the default.
func (s *History) Audit(ctx context.Context, q history.AuditQuery) (rows []history.AuditRow, next history.Position, err error) {
	for _, f := range []struct {
		path  string
		texts []string
		among []string // nil means any
	}{{"kind", q.Kinds, append(eventKinds(), KindHistory)}, {"verb", q.Verbs, changeVerbs()}, {"object", []string{q.Object}, nil}, {"actor", []string{q.Actor}, nil}} {
		for _, text := range f.texts {
			if err := checkText(f.path, text, maxFilter); err != nil {
				return nil, next, err
			}
			if f.among != nil && !slices.Contains(f.among, text) {
				return nil, next, refuse(Invalid, f.path, "unknown %s %.50q: use one of %s", f.path, text, strings.Join(f.among, ", "))
			}
		}
	}
	wanted, err := rowLimit(q.Limit, maxRows)
	if err != nil {
		return nil, next, err
	}
	q.Newest = true
	q.Limit = wanted + 1 // one more row shows whether there is another page
	if rows, err = s.history.Audit(ctx, q); err != nil || len(rows) <= wanted {
		return rows, next, err
	}
	rows = rows[:wanted]
	return rows, rows[wanted-1].Position, nil
}

// Changes returns what happened after a position, up to the end of a revision that this
// replica has seen, oldest first. These are the rows of the audit log and, in the same
// form, the nodes that went online and offline. It fails with history.ErrForgotten if some
// of that may have been deleted.
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

// Presence returns when nodes were online within a period; see history.Reader.
func (s *History) Presence(ctx context.Context, nodes []mesh.NodeID, from, to mesh.Time) ([]history.Presence, error) {
	return s.history.Presence(ctx, nodes, from, to)
}

// PresencePeriod checks a period and fills in its defaults. to is limited to now, and from
// defaults to a day before to.
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
