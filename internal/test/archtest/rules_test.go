package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// file is one Go file; name is its slash-separated path in the module.
type file struct {
	name string
	set  *token.FileSet
	ast  *ast.File
}

// row returns the name of the file's package in the table.
func (f file) row() string { return rowName(path.Dir(f.name)) }

func rowName(dir string) string {
	if below, ok := strings.CutPrefix(dir, "internal/"); ok {
		return below
	}
	return "./" + dir
}

// violations returns what in f breaks the rules, as "file:line: what". Only the size rules apply to test
// files, and only the import rules to generated files.
func (f file) violations() []string {
	var found []string
	report := func(at ast.Node, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s:%d: ", f.name, f.set.Position(at.Pos()).Line)+fmt.Sprintf(format, args...))
	}
	test, generated := strings.HasSuffix(f.name, "_test.go"), ast.IsGenerated(f.ast)
	if !test {
		f.checkImports(report)
	}
	if !test && !generated {
		f.checkVariables(report)
		f.checkBody(report)
	}
	if !generated {
		f.checkSizes(report)
	}
	return found
}

type report func(at ast.Node, format string, args ...any)

func (f file) checkImports(report report) {
	allowed, known := table[f.row()]
	if !known {
		report(f.ast.Name, "package %s has no row in the import table", f.row())
	}
	for _, spec := range f.ast.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		dir, ours := strings.CutPrefix(imported, module+"/")
		if ours && !contains(allowed.ours, rowName(dir)) {
			report(spec, "%s may not import %s", f.row(), rowName(dir))
		}
		if guard := guardOf(imported); guard != "" && !contains(allowed.guarded, guard) {
			report(spec, "%s may not import %s (%s)", f.row(), imported, guard)
		}
	}
}

func contains(words, word string) bool {
	return words == "*" || slices.Contains(strings.Fields(words), word)
}

func guardOf(imported string) string {
	for p := imported; p != "."; p = path.Dir(p) {
		if guard, ok := guards[p]; ok {
			return guard
		}
	}
	return ""
}

func (f file) checkVariables(report report) {
	for _, decl := range f.ast.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, spec := range gen.Specs {
			spec := spec.(*ast.ValueSpec)
			constant := hasComment(gen.Doc, embedLine) || hasComment(spec.Doc, embedLine) ||
				len(spec.Values) > 0 && !slices.ContainsFunc(spec.Values, isVariable)
			for _, name := range spec.Names {
				if _, listed := variables[f.name+" "+name.Name]; !constant && !listed && name.Name != "_" {
					report(name, "package-level variable %s: pass it in, or make it a constant or a function", name.Name)
				}
			}
		}
	}
}

// isVariable is false for errors and regular expressions, which are never changed.
func isVariable(e ast.Expr) bool {
	call, _ := e.(*ast.CallExpr)
	return call == nil || !constantCall.MatchString(dotted(call.Fun))
}

func (f file) checkBody(report report) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				report(n, "init function: call it where it is needed")
			}
		case *ast.GoStmt:
			if _, ok := goFiles[f.name]; !ok {
				report(n, "go statement: let the owner run it in its group, or name this file in goFiles")
			}
		case *ast.SelectorExpr:
			if pure[f.row()] && impure.MatchString(dotted(n)) {
				report(n, "%s is pure and may not use %s: take the value as an argument", f.row(), dotted(n))
			}
		}
		return true
	})
}

// dotted returns "a.b" for the expression a.b, and "" for all others.
func dotted(e ast.Expr) string {
	if sel, ok := e.(*ast.SelectorExpr); ok {
		if left, ok := sel.X.(*ast.Ident); ok {
			return left.Name + "." + sel.Sel.Name
		}
	}
	return ""
}

func (f file) checkSizes(report report) {
	if n := f.set.File(f.ast.FileStart).LineCount(); n > maxFileLines {
		report(f.ast.Name, "%d lines, at most %d: split it by topic", n, maxFileLines)
	}
	for _, decl := range f.ast.Decls {
		n := f.set.Position(decl.End()).Line - f.set.Position(decl.Pos()).Line + 1
		if fn, ok := decl.(*ast.FuncDecl); ok && n > maxFuncLines && !hasComment(fn.Doc, longLine) {
			report(fn, "function %s has %d lines, at most %d without \"// long: reason\" in its comment", fn.Name.Name, n, maxFuncLines)
		}
	}
}

func hasComment(group *ast.CommentGroup, line *regexp.Regexp) bool {
	return group != nil && slices.ContainsFunc(group.List, func(c *ast.Comment) bool { return line.MatchString(c.Text) })
}
