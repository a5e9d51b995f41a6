package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// audit handles the operations on the audit log.
type audit struct {
	*core
	history *control.History
}

// ListAudit implements GET /api/v1/audit.
func (s *audit) ListAudit(w http.ResponseWriter, r *http.Request, p openapi.ListAuditParams) {
	q := history.AuditQuery{
		From: momentOf(p.From), To: momentOf(p.To), Kinds: words(p.Kind), Verbs: words(p.Verb), Object: or(p.Object), Actor: or(p.Actor),
		Limit: rowLimit(p.Limit),
	}
	var err error
	if or(p.Cursor) != "" {
		q.Before, err = position("cursor", *p.Cursor)
	}
	snap := s.ledger.World().Snapshot // read before the rows, so that they include all changes up to it
	var rows []history.AuditRow
	var next history.Position
	if err == nil {
		rows, next, err = s.history.Audit(r.Context(), q)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	out := openapi.AuditList{Entries: []openapi.Change{}}
	for _, row := range rows {
		out.Entries = append(out.Entries, changeShape(row))
	}
	if next != (history.Position{}) {
		out.Next = next.String()
	}
	reply(w, snap, out)
}

func changeShape(row history.AuditRow) openapi.Change {
	a := row.Actor
	return openapi.Change{
		ID: row.Position.String(), At: row.At.Time(), Verb: row.Verb, Kind: row.Kind, Object: row.Object, Before: kept(row.Before), After: kept(row.After),
		Actor: openapi.Actor{Kind: string(a.Kind), ID: a.ID, Name: a.Name, Address: a.Addr, RequestID: a.RequestID, Reason: a.Reason},
	}
}

// kept returns an object as recorded with a change, without decoding it.
func kept(shape []byte) any {
	if shape == nil {
		return nil
	}
	return json.RawMessage(shape)
}

func position(name, text string) (history.Position, error) {
	p, err := history.ParsePosition(text)
	if err != nil {
		return p, &badRequest{name, name + ": " + err.Error()}
	}
	return p, nil
}

// momentOf converts an optional time; nil becomes zero.
func momentOf(t *time.Time) mesh.Time {
	if t == nil {
		return 0
	}
	return mesh.TimeOf(*t)
}

// words splits a comma-separated list.
func words(text *string) []string {
	if or(text) == "" {
		return nil
	}
	return strings.Split(*text, ",")
}
