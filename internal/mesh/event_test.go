package mesh_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

// A type with a Kind that is not listed could be written to the log, but not read.
func TestEventsListsEveryEvent(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var declared, listed []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == "Kind" {
				declared = append(declared, fn.Recv.List[0].Type.(*ast.Ident).Name)
			}
		}
	}
	kinds := map[mesh.Kind]bool{}
	for _, e := range mesh.Events() {
		listed, kinds[e.Kind()] = append(listed, reflect.TypeOf(e).Name()), true
	}
	slices.Sort(declared)
	slices.Sort(listed)
	if diff := cmp.Diff(declared, listed); diff != "" {
		t.Errorf("declared (-) and listed (+):\n%s", diff)
	}
	if len(kinds) != len(listed) {
		t.Errorf("%d events have only %d kinds", len(listed), len(kinds))
	}
}

// An ID that no counter covers would be reused for another object.
func TestEveryObjectRaisesACounter(t *testing.T) {
	objects := 0
	for _, e := range mesh.Events() {
		if _, ok := e.(mesh.RecheckPut); ok || !strings.HasSuffix(string(e.Kind()), ".put") {
			continue // the ID is the user's
		}
		var c mesh.Counters
		if c.Count(meshgen.Fill(e)); c == (mesh.Counters{}) {
			t.Errorf("%s raises no counter", e.Kind())
		}
		objects++
	}
	if objects != 17 {
		t.Errorf("%d kinds of objects were tried", objects)
	}
}
