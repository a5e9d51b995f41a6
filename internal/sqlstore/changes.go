package sqlstore

import (
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// changes collects the rows of a commit. If a row is changed more than once, only the last value is written;
// deletions are written first.
type changes struct {
	schema *schema
	gone   map[string]map[int64]bool // deleted ids, by table
	rows   map[*record]map[int64][]any
	log    [][]any
	audit  [][]any
	// transitions holds one row per node, minute and state.
	transitions map[[3]int64][]any
	leaders     [][]any
}

func newChanges(s *schema) *changes {
	return &changes{schema: s, gone: map[string]map[int64]bool{}, rows: map[*record]map[int64][]any{}, transitions: map[[3]int64][]any{}}
}

// add collects the rows that an event changes.
func (c *changes) add(e mesh.Event) error {
	if tables, ok := c.schema.byGone[reflect.TypeOf(e)]; ok {
		c.drop(reflect.ValueOf(e).Field(0).Int(), tables)
		return nil
	}
	row := rowOf(e)
	r, known := c.schema.byRow[reflect.TypeOf(row)]
	switch {
	case !known:
		return fmt.Errorf("no table stores %s", e.Kind())
	case r != nil:
		c.put(r, r.values(row))
	}
	return nil
}

func (c *changes) put(r *record, row []any) {
	if c.rows[r] == nil {
		c.rows[r] = map[int64][]any{}
	}
	c.rows[r][row[0].(int64)] = row
}

func (c *changes) drop(id int64, tables []string) {
	for _, table := range tables {
		if c.gone[table] == nil {
			c.gone[table] = map[int64]bool{}
		}
		c.gone[table][id] = true
		for r, rows := range c.rows {
			if r.table == table {
				delete(rows, id)
			}
		}
	}
}

// all yields the rows of each statement, in the order in which they are written.
func (c *changes) all() iter.Seq2[*record, [][]any] {
	return func(yield func(*record, [][]any) bool) {
		for _, r := range c.schema.records {
			if rows := c.rows[r]; len(rows) > 0 && !yield(r, slices.Collect(maps.Values(rows))) {
				return
			}
		}
		for _, grown := range []struct {
			r    *record
			rows [][]any
		}{
			{c.schema.log, c.log},
			{c.schema.audit, c.audit},
			{c.schema.transitions, slices.Collect(maps.Values(c.transitions))},
			{c.schema.leaders, c.leaders},
		} {
			if len(grown.rows) > 0 && !yield(grown.r, grown.rows) {
				return
			}
		}
	}
}
