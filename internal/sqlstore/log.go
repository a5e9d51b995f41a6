package sqlstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// scanner is a row of either driver.
type scanner interface{ Scan(dest ...any) error }

const logAfter = " WHERE rev > $1 ORDER BY rev LIMIT $2"

func (s *schema) readLog(from rowsReader) (rows []logRow, err error) {
	var row logRow
	into := s.log.into(reflect.ValueOf(&row).Elem())
	for from.Next() {
		if err := from.Scan(into...); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, from.Err()
}

// entries decodes rows, which must follow after without a gap. head was read before them.
func entries(rows []logRow, after store.Point, head store.Point) ([]store.Entry, error) {
	next := head
	if len(rows) > 0 {
		first, _ := mesh.DecodeEvents(rows[0].Events) // an error is returned below
		if rows[0].Rev == mesh.Next(after.Rev, first) {
			next = store.Point{Rev: after.Rev, Batch: rows[0].Prev}
		}
		for _, e := range first {
			if e, ok := e.(mesh.HistoryReset); ok && e.Epoch.Skips(after.Rev) {
				return nil, fmt.Errorf("%w: its history does not contain revision %d", store.ErrRewound, after.Rev)
			}
		}
	}
	switch anyBatch := after.Batch == (store.BatchID{}); {
	case head.Rev < after.Rev, next.Rev == after.Rev && next.Batch != after.Batch && !anyBatch:
		return nil, fmt.Errorf("%w: its newest revision is %d, and revision %d is missing or has changed", store.ErrRewound, head.Rev, after.Rev)
	case len(rows) == 0 && after.Rev != head.Rev:
		return nil, fmt.Errorf("%w: the log ends at %d, but entries after %d were requested", store.ErrPruned, head.Rev, after.Rev)
	}
	out := make([]store.Entry, len(rows))
	rev := after.Rev
	for i, row := range rows {
		evs, err := mesh.DecodeEvents(row.Events)
		if row.Rev != mesh.Next(rev, evs) {
			return nil, fmt.Errorf("%w: found revision %d, want the one after %d", store.ErrPruned, row.Rev, rev)
		}
		if err != nil {
			return nil, fmt.Errorf("revision %d: %w", row.Rev, err)
		}
		rev = row.Rev
		out[i] = store.Entry{Rev: row.Rev, Batch: row.Batch, Prev: row.Prev, At: row.At, Events: evs}
		if err := json.Unmarshal([]byte(row.Actor), &out[i].Actor); err != nil {
			return nil, fmt.Errorf("revision %d: actor: %w", row.Rev, err)
		}
	}
	return out, nil
}

// head is the row that writers lock.
type head struct {
	rev      mesh.Revision
	at       mesh.Time // time of the newest entry
	batch    store.BatchID
	counters mesh.Counters
	// members holds all counters of the row, including those of newer versions, which are kept.
	members map[string]json.RawMessage
	clock   store.Clock
	now     mesh.Time // the later of clock and at
	lazy    bool      // PostgreSQL would acknowledge a commit before it is on disk
	// timeline is that of the PostgreSQL server, or 0 if unknown.
	timeline uint64
}

// countersText returns the counters in the form in which the row stores them.
func (h *head) countersText() (string, error) {
	known, err := json.Marshal(h.counters)
	if err != nil {
		return "", err
	}
	if h.members == nil {
		return string(known), nil
	}
	if err := json.Unmarshal(known, &h.members); err != nil {
		return "", err
	}
	all, err := json.Marshal(h.members)
	return string(all), err
}

const selectHead = "SELECT rev, at, batch, counters"

func scanHead(r scanner, more ...any) (head, error) {
	var h head
	var counters string
	var batch []byte
	if err := r.Scan(append([]any{&h.rev, &h.at, &batch, &counters}, more...)...); err != nil {
		return h, err
	}
	copy(h.batch[:], batch)
	if counters == "" {
		return h, nil
	}
	if err := errors.Join(json.Unmarshal([]byte(counters), &h.counters), json.Unmarshal([]byte(counters), &h.members)); err != nil {
		return h, fmt.Errorf("counters of the head row: %w", err)
	}
	if f := h.counters.Format; f > mesh.Format {
		return h, fmt.Errorf("%w: it contains data in format %d, and this version knows formats up to %d; install the newer version, or restore a backup from before its features were used", store.ErrTooOld, f, mesh.Format)
	}
	return h, nil
}
