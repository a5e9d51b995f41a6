package sqlstore

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

// Each column created by the migrations holds exactly one field, and each field has a
// column. The tables named here are excluded: they have hand-written statements.
func TestEveryColumnHoldsOneField(t *testing.T) {
	newest, err := NewestSchema()
	if err != nil {
		t.Fatal(err)
	}
	tables, err := allTables(t.Context(), newest)
	if err != nil {
		t.Fatal(err)
	}
	made, bound := map[string]string{}, map[string]string{}
	for _, table := range tables {
		if slices.Contains([]string{"forgotten", "head", "replicas"}, table.Name) {
			continue
		}
		for _, c := range table.Columns {
			made[table.Name+"."+c.Name] = c.Type
		}
	}
	s := newSchema()
	for _, r := range slices.Concat(s.records, []*record{s.log, s.audit, s.transitions, s.leaders}) {
		for i, c := range r.columns {
			name := r.table + "." + c.name
			if _, twice := bound[name]; twice && (i > 0 || c.name != "id") {
				t.Errorf("%s holds two fields", name)
			}
			bound[name] = map[columnType]string{integer: "integer", text: "text", blob: "blob"}[c.typ]
		}
	}
	if diff := cmp.Diff(made, bound); diff != "" {
		t.Errorf("made by migrations (-) and used (+):\n%s", diff)
	}
}

// An event that no table stores would be lost when the log is pruned.
func TestEveryEventIsKept(t *testing.T) {
	s := newSchema()
	for _, e := range mesh.Events() {
		if err := newChanges(s).add(meshgen.Fill(e)); err != nil {
			t.Error(err)
		}
	}
	removed := slices.Concat(slices.Collect(maps.Values(s.byGone))...)
	for _, r := range s.records {
		if !slices.Contains(removed, r.table) && r != of[mesh.PolicyPut](s) {
			t.Errorf("nothing removes a row of %s", r.table)
		}
	}
}

func TestUnknownTypesAreNotStored(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a column was bound to a number that integers cannot hold")
		}
	}()
	bind("x", struct{ Share float64 }{})
}

// In rows older than a migration, a new column holds the migration's default, the empty
// string.
func TestUnsetStructsAreStoredAsEmptyText(t *testing.T) {
	type remark struct {
		Text string `json:"text"`
	}
	type row struct {
		Remark remark `json:"remark" column:"remark"`
	}
	r := bind("x", row{})
	for text, want := range map[string]row{"": {}, `{"text":"a"}`: {remark{"a"}}} {
		if got := r.values(want); !cmp.Equal(got, []any{text}) {
			t.Errorf("%+v is stored as %q, want %q", want, got, text)
		}
		got := row{remark{"before"}}
		if err := r.into(reflect.ValueOf(&got).Elem())[0].(parser)([]byte(text)); err != nil || got != want {
			t.Errorf("%q is loaded as %+v (%v), want %+v", text, got, err, want)
		}
	}
}

// A migration outside the engines' folders is applied by both engines, in order of its
// number among those of each.
func TestMigrationsOfBothEnginesAreWrittenOnce(t *testing.T) {
	all := fstest.MapFS{
		"migrations/0002_both.sql":         {Data: []byte("ADD a INTEGER; ADD b BLOB;\n-- +goose Down\nDROP a;")},
		"migrations/sqlite/0001_own.sql":   {Data: []byte("sqlite 1")},
		"migrations/sqlite/0003_own.sql":   {Data: []byte("sqlite 3")},
		"migrations/postgres/0001_own.sql": {Data: []byte("postgres 1")},
		"migrations/postgres/0003_own.sql": {Data: []byte("postgres 3")},
	}
	for dialect, want := range map[goose.Dialect][]string{
		goose.DialectSQLite3:  {"sqlite 1", "ADD a INTEGER; ADD b BLOB;\n", "sqlite 3"},
		goose.DialectPostgres: {"postgres 1", "ADD a BIGINT; ADD b BYTEA;\n", "postgres 3"},
	} {
		files, err := readMigrations(all, "migrations", dialect)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, f := range files {
			texts = append(texts, f.up)
		}
		if diff := cmp.Diff(want, texts); diff != "" {
			t.Errorf("%s:\n%s", dialect, diff)
		}
	}
}
