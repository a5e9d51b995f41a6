package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// maxMethods is how many exported methods a type may have. A type that needs more has too
// many responsibilities.
const maxMethods = 15

// wideTypes are the types that may have more, with the reason. There are none.
func wideTypes() map[string]string { return nil }

func TestTypesHaveFewExportedMethods(t *testing.T) {
	counts := exportedMethods(moduleFiles(t))
	for _, problem := range tooWide(counts, wideTypes()) {
		t.Error(problem)
	}
}

// exportedMethods counts the exported methods of each type, by package and name, in
// files that are neither tests nor generated.
func exportedMethods(files []file) map[string]int {
	counts := map[string]int{}
	for _, f := range files {
		if strings.HasSuffix(f.name, "_test.go") || ast.IsGenerated(f.ast) {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Recv != nil && fn.Name.IsExported() {
				counts[f.row()+"."+receiver(fn.Recv.List[0].Type)]++
			}
		}
	}
	return counts
}

// receiver returns the name of a receiver's type, without pointer and type parameters.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// tooWide returns the types with too many methods, and the exceptions that are no longer
// needed.
func tooWide(counts map[string]int, exceptions map[string]string) (problems []string) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if _, excepted := exceptions[name]; counts[name] > maxMethods && !excepted {
			problems = append(problems, fmt.Sprintf("%s has %d exported methods, at most %d", name, counts[name], maxMethods))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(exceptions)) {
		if counts[name] <= maxMethods {
			problems = append(problems, fmt.Sprintf("%s no longer needs its exception", name))
		}
	}
	return problems
}

func TestWideTypesAreFound(t *testing.T) {
	methods := func(receiver string, n int) string {
		var src strings.Builder
		src.WriteString("package a\n")
		for i := range n {
			fmt.Fprintf(&src, "func (x %s) M%d() {}\nfunc (x %s) m%d() {}\n", receiver, i, receiver, i)
		}
		return src.String()
	}
	for _, c := range []struct {
		name, receiver string
		methods        int
		exceptions     map[string]string
		want           string
	}{
		{"internal/a/a.go", "T", maxMethods, nil, ""},
		{"internal/a/a.go", "T", maxMethods + 1, nil, "a.T has 16 exported methods, at most 15"},
		{"internal/a/a.go", "*T", maxMethods + 1, nil, "a.T has 16 exported methods, at most 15"},
		{"internal/a/a.go", "*T[E]", maxMethods + 1, nil, "a.T has 16 exported methods, at most 15"},
		{"internal/a/a.go", "T[K, V]", maxMethods + 1, nil, "a.T has 16 exported methods, at most 15"},
		{"internal/a/a_test.go", "T", maxMethods + 1, nil, ""},
		{"internal/a/a.go", "T", maxMethods + 1, map[string]string{"a.T": "reason"}, ""},
		{"internal/a/a.go", "T", maxMethods, map[string]string{"a.T": "reason"}, "a.T no longer needs its exception"},
		{"cmd/a/a.go", "T", maxMethods + 1, nil, "./cmd/a.T has 16 exported methods, at most 15"},
	} {
		files := []file{parse(t, c.name, methods(c.receiver, c.methods))}
		if got := strings.Join(tooWide(exportedMethods(files), c.exceptions), "; "); got != c.want {
			t.Errorf("%d methods of %s in %s: %q, want %q", c.methods, c.receiver, c.name, got, c.want)
		}
	}
}

func TestMethodsInSeveralFilesAddUp(t *testing.T) {
	var files []file
	for i := range maxMethods + 1 {
		files = append(files, parse(t, fmt.Sprintf("internal/a/f%d.go", i), fmt.Sprintf("package a\nfunc (T) M%d() {}", i)))
	}
	if got := tooWide(exportedMethods(files), nil); len(got) != 1 {
		t.Errorf("%v, want one problem", got)
	}
}
