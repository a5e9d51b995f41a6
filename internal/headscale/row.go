package headscale

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Row is a row of a table, by column name. Its values have the types that database drivers return.
type Row map[string]any

// Tables are the tables of a Headscale database, by name.
type Tables map[string][]Row

// TableNames returns the tables that Map reads.
func TableNames() []string {
	return []string{"users", "nodes", "machines", "routes", "pre_auth_keys", "pre_auth_key_acl_tags", "api_keys", "policies", "database_versions", "migrations"}
}

func (r Row) text(column string) string {
	switch v := r[column].(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case nil:
		return ""
	default:
		return fmt.Sprint(v)
	}
}

func (r Row) number(column string) int64 {
	switch v := r[column].(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	}
	n, err := strconv.ParseInt(r.text(column), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (r Row) flag(column string) bool {
	switch v := r[column].(type) {
	case bool:
		return v
	case int64:
		return v != 0
	}
	return r.text(column) == "true" || r.text(column) == "1"
}

// firstYear is the first year of a time that was set. Older versions wrote the zero time for one that was not.
const firstYear = 1900

// moment returns a time, and whether the column has a zero time instead of none.
func (r Row) moment(column string) (at mesh.Time, zero bool) {
	t, ok := r[column].(time.Time)
	if text := r.text(column); !ok && text != "" {
		t, ok = parseTime(text)
	}
	if !ok {
		return 0, false
	}
	if t.Year() < firstYear {
		return 0, true
	}
	return mesh.TimeOf(t), false
}

func (r Row) time(column string) mesh.Time {
	at, _ := r.moment(column)
	return at
}

// parseTime reads a time as SQLite has it. Go may have appended the reading of its monotonic clock.
func parseTime(text string) (time.Time, bool) {
	text, _, _ = strings.Cut(text, " m=")
	for _, layout := range []string{
		"2006-01-02 15:04:05.999999999-07:00", time.RFC3339Nano, "2006-01-02 15:04:05.999999999 -0700 MST", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999",
	} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// list reads a JSON list of texts. Anything else counts as empty.
func (r Row) list(column string) (list []string) {
	_ = json.Unmarshal([]byte(r.text(column)), &list) // stays empty on an error
	return list
}

func (r Row) has(column string) bool {
	_, ok := r[column]
	return ok
}

// deleted reports whether the row was deleted, but kept.
func (r Row) deleted() bool { return r.time("deleted_at") != 0 }

func prefixes(texts []string) (all []netip.Prefix) {
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			all = append(all, p.Masked())
		}
	}
	return all
}
