package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

func TestRepositoryFollowsItsRules(t *testing.T) {
	documented := map[string]bool{} // by directory
	for _, f := range moduleFiles(t) {
		for _, v := range f.violations() {
			t.Error(v)
		}
		dir := path.Dir(f.name)
		documented[dir] = documented[dir] || strings.HasPrefix(f.ast.Doc.Text(), "Package ") || strings.HasPrefix(f.ast.Doc.Text(), "Command ")
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s: no package comment; write doc.go", dir)
		}
	}
}

func moduleFiles(t *testing.T) []file {
	var files []file
	tree := os.DirFS(root)
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() && name != "." && (strings.HasPrefix(base, ".") || slices.Contains([]string{"testdata", "dist", "node_modules"}, base)) {
			return fs.SkipDir
		}
		if d.IsDir() || path.Ext(name) != ".go" {
			return nil
		}
		src, err := fs.ReadFile(tree, name)
		if err == nil {
			files = append(files, parse(t, name, string(src)))
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("reading %d files of the module: %v", len(files), err)
	}
	return files
}

func parse(t *testing.T, name, src string) file {
	f := file{name: name, set: token.NewFileSet()}
	var err error
	if f.ast, err = parser.ParseFile(f.set, name, src, parser.ParseComments|parser.SkipObjectResolution); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestTableNamesOnlyItsOwnRows(t *testing.T) {
	for name, r := range table {
		for _, imported := range strings.Fields(r.ours) {
			if _, ok := table[imported]; !ok && imported != "*" {
				t.Errorf("row %s allows %s, which has no row", name, imported)
			}
		}
	}
}

// consoleHeading is where the npm packages start in docs/dependencies.md.
const consoleHeading = "\n## The pages of the console\n"

func TestEveryDirectDependencyIsExplained(t *testing.T) {
	names := func(name, line string) []string {
		text, err := os.ReadFile(path.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		modules, _, _ := strings.Cut(string(text), consoleHeading)
		var found []string
		for _, m := range regexp.MustCompile(line).FindAllStringSubmatch(modules, -1) {
			found = append(found, m[1])
		}
		return found
	}
	explained := names("docs/dependencies.md", "(?m)^\\| `([^`]+)` \\|")
	for _, m := range names("go.mod", `(?m)^(?:\t|require )([^\s)]+) v\S+$`) {
		if !slices.Contains(explained, m) {
			t.Errorf("docs/dependencies.md: no line for %s", m)
		}
	}
	required := names("go.mod", `(?m)^(?:\t|require )([^\s)]+) v`)
	for _, m := range explained {
		if !slices.Contains(required, m) {
			t.Errorf("docs/dependencies.md: %s is no longer in go.mod", m)
		}
	}
}

// Each rule is broken once by a small source file, to prove that every rule works.
func TestRulesFindWhatTheyForbid(t *testing.T) {
	long := func(n int) string { return strings.Repeat("\n", n) }
	for _, c := range []struct{ name, src, want string }{
		{"internal/mesh/a.go", `import "tailscale.com/types/key"`, ""},
		{"internal/mesh/a.go", `import "tailscale.com/tailcfg"`, "mesh may not import tailscale.com/tailcfg (tailcfg)"},
		{"internal/mesh/a.go", `import "log/slog"`, "mesh may not import log/slog (slog)"},
		{"internal/ledger/a.go", `import "` + module + `/internal/store"`, ""},
		{"internal/ledger/a.go", `import "` + module + `/internal/control"`, "ledger may not import control"},
		{"internal/ledger/a_test.go", `import "` + module + `/internal/control"`, ""},
		{"internal/api/a.go", `import "github.com/jackc/pgx/v5/pgxpool"`, "api may not import github.com/jackc/pgx/v5/pgxpool (sql)"},
		{"internal/control/a.go", `import "net/http/httptest"`, "control may not import net/http/httptest (http)"},
		{"internal/control/a.go", `import "testing"`, "control may not import testing (testing)"},
		{"internal/store/storetest/a.go", `import "testing"`, ""},
		{"internal/helpers/a.go", ``, "package helpers has no row in the import table"},
		{"internal/control/a.go", `var ErrGone = errors.New("gone")`, ""},
		{"internal/control/a.go", `var _ I = (*T)(nil)`, ""},
		{"internal/control/a.go", "//go:embed x\nvar x string", ""},
		{"internal/control/a.go", "var (\n//go:embed x\nx string\n)", ""},
		{"internal/control/a.go", `var cache = map[string]int{}`, "package-level variable cache"},
		{"internal/control/a.go", `var mu sync.Mutex`, "package-level variable mu"},
		{"internal/control/a.go", `var a, b = errors.New(""), 1`, "package-level variable a"},
		{"cmd/fairlead/main.go", `var version = "dev"`, ""},
		{"internal/control/a.go", `func init() {}`, "init function"},
		{"internal/control/a.go", `func (t T) init() {}`, ""},
		{"internal/control/a.go", `func f() { go f() }`, "go statement"},
		{"internal/control/a.go", `func f() time.Time { return time.Now() }`, ""},
		{"internal/policy/a.go", `func f() time.Time { return time.Now() }`, "policy is pure and may not use time.Now"},
		{"internal/policy/a.go", `func f() int { return rand.IntN(6) }`, "policy is pure and may not use rand.IntN"},
		{"internal/policy/a.go", `func f() string { return os.Getenv("HOME") }`, "policy is pure and may not use os.Getenv"},
		{"internal/policy/a.go", `func f(d time.Duration) {}`, ""},
		{"internal/control/a.go", long(599), ""},
		{"internal/control/a.go", long(600), "601 lines, at most 600"},
		{"internal/control/a_test.go", long(600), "601 lines, at most 600"},
		{"internal/control/a.go", "func f() {" + long(79) + "}", ""},
		{"internal/control/a.go", "func f() {" + long(80) + "}", "function f has 81 lines"},
		{"internal/control/a.go", "// f walks.\n// long:\nfunc f() {" + long(80) + "}", "function f has 81 lines"},
		{"internal/control/a.go", "// f walks.\n// long: one case per kind\nfunc f() {" + long(80) + "}", ""},
		{"internal/api/openapi/a.go", "// Code generated by x. DO NOT EDIT.\nvar x int\nfunc f() {" + long(600) + "}", ""},
	} {
		src := "package a\n" + c.src
		if strings.HasPrefix(c.src, "// Code") {
			src = strings.Replace(c.src, "\n", "\npackage a\n", 1)
		}
		got := strings.Join(parse(t, c.name, src).violations(), "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %.80q\n got %q\nwant %q", c.name, c.src, got, c.want)
		}
	}
}
