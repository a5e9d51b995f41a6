package sqlstore

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// loader reads one table into a draft. With fifty thousand rows, allocations per row dominate the time: all
// rows are scanned into the same variables, and parsed text is never converted to a string. A loader is used
// for one Load.
type loader struct {
	table string
	query string
	row   []any             // scan destinations of a row, its id first
	put   func(*mesh.Draft) // copies the scanned row
}

func (l loader) read(d *mesh.Draft, rows rowsReader) error {
	for rows.Next() {
		if err := rows.Scan(l.row...); err != nil {
			return fmt.Errorf("loading %s: %w", l.table, err)
		}
		if id := *l.row[0].(*int64); id <= 0 || id > mesh.MaxID {
			return fmt.Errorf("loading %s: invalid row id %d; restore a backup", l.table, id)
		}
		l.put(d)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("loading %s: %w", l.table, err)
	}
	return nil
}

// loaders returns the loaders in the order of the records.
func (s *schema) loaders() (all []loader) {
	for rest := s.records; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].table == rest[0].table {
			n++
		}
		if !rest[0].unloaded {
			all = append(all, newLoader(rest[:n]))
		}
		rest = rest[n:]
	}
	return all
}

// newLoader returns a loader for the records that share a table.
func newLoader(records []*record) loader {
	l := loader{table: records[0].table}
	var names []string
	var scanned []reflect.Value
	for i, r := range records {
		row := reflect.New(r.typ).Elem()
		if noun := row.Field(0); noun.Kind() == reflect.Pointer {
			noun.Set(reflect.New(noun.Type().Elem()))
		}
		into, columns := r.into(row), r.columns
		if i > 0 {
			into, columns = into[1:], columns[1:] // they share the id
		}
		for _, c := range columns {
			names = append(names, c.name)
		}
		l.row, scanned = append(l.row, into...), append(scanned, row)
	}
	l.query = "SELECT " + strings.Join(names, ", ") + " FROM " + l.table + records[0].clause
	l.put = func(d *mesh.Draft) {
		for i, row := range scanned {
			if i > 0 {
				row.Field(0).SetInt(*l.row[0].(*int64))
			}
			d.Load(eventOf(copyOf(row)))
		}
	}
	return l
}

// copyOf returns a copy of a row, because the row itself is reused for the next scan.
func copyOf(row reflect.Value) any {
	noun := row.Field(0)
	if noun.Kind() != reflect.Pointer {
		return row.Interface()
	}
	scanned := reflect.ValueOf(noun.Interface()) // pointer to noun itself, which is then set to the copy
	own := reflect.New(noun.Type().Elem())
	own.Elem().Set(scanned.Elem())
	noun.Set(own)
	defer noun.Set(scanned)
	return row.Interface()
}
