package control

import (
	"context"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
)

const (
	maxAudit     = 1000
	defaultAudit = 100
	// maxFilter is longer than any kind, verb, id or name that is kept.
	maxFilter = 300
)

// Audit returns the newest rows that q asks for, and the position to ask before
// for those that follow; it is zero when there are none. A limit of zero means
// what suits a page.
func (s *Service) Audit(ctx context.Context, q ledger.AuditQuery) (rows []ledger.AuditRow, next ledger.Position, err error) {
	for _, f := range []struct {
		path  string
		texts []string
	}{{"kind", q.Kinds}, {"verb", q.Verbs}, {"object", []string{q.Object}}, {"actor", []string{q.Actor}}} {
		for _, text := range f.texts {
			if err := checkText(f.path, text, maxFilter); err != nil {
				return nil, next, err
			}
		}
	}
	if q.Limit < 0 || q.Limit > maxAudit {
		return nil, next, refuse(Invalid, "limit", "limit must be from 1 to %d", maxAudit)
	}
	if q.Limit == 0 {
		q.Limit = defaultAudit
	}
	q.Newest = true
	wanted := q.Limit
	q.Limit++ // one more tells whether any follow
	if rows, err = s.ledger.Audit(ctx, q); err != nil || len(rows) <= wanted {
		return rows, next, err
	}
	rows = rows[:wanted]
	return rows, rows[wanted-1].Position, nil
}
