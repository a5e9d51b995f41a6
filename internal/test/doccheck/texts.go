package doccheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// addAPI adds the descriptions and summaries of openapi.yaml.
func (t *Texts) addAPI(name string, src []byte) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(src, &doc); err != nil {
		return err
	}
	var visit func(n *yaml.Node, properties bool)
	visit = func(n *yaml.Node, properties bool) {
		if n.Kind != yaml.MappingNode {
			for _, c := range n.Content {
				visit(c, false)
			}
			return
		}
		for i := 0; i < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			switch text := key.Value == "description" || key.Value == "summary"; {
			case text && !properties && value.Kind == yaml.ScalarNode:
				t.api = append(t.api, Text{name, key.Line, value.Value})
			case key.Value != "example":
				visit(value, key.Value == "properties") // a property may have the name description
			}
		}
	}
	visit(&doc, false)
	return nil
}

// addGo adds the comments of a Go file and, if it is part of the product, its messages.
func (t *Texts) addGo(name string, src []byte) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(file) {
		return nil
	}
	for _, group := range file.Comments {
		if text := group.Text(); isProse(text) { // without directives
			t.comments = append(t.comments, Text{name, set.Position(group.Pos()).Line, text})
		}
	}
	if !hasMessages(name) {
		return nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field: // a tag is not a message
			return n.Tag == nil
		case *ast.CallExpr:
			if message, others := logMessage(n); message != nil {
				t.logs = append(t.logs, Text{name, set.Position(message.Pos()).Line, literalText(message)})
				for _, arg := range others {
					t.addMessages(name, set, arg)
				}
				return false
			}
		case *ast.BinaryExpr, *ast.BasicLit:
			if text := literalText(n.(ast.Expr)); isMessage(text) {
				t.messages = append(t.messages, Text{name, set.Position(n.Pos()).Line, text})
				return false
			}
		}
		return true
	})
	return nil
}

func (t *Texts) addMessages(name string, set *token.FileSet, e ast.Expr) {
	ast.Inspect(e, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && isMessage(literalText(literal)) {
			t.messages = append(t.messages, Text{name, set.Position(n.Pos()).Line, literalText(literal)})
		}
		return true
	})
}

// hasMessages reports whether strings in a Go file are messages of the server, the console or the command line.
func hasMessages(name string) bool {
	if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/test/") || testSupport.MatchString(name) {
		return false
	}
	return slices.ContainsFunc([]string{"cmd/", "internal/", "console/bff/"}, func(dir string) bool { return strings.HasPrefix(name, dir) })
}

// testSupport matches packages outside internal/test that only tests use.
var testSupport = regexp.MustCompile(`/(storetest|meshgen|policytest)/`)

// logMessage returns the message of a logger call and its other arguments, or nil.
func logMessage(call *ast.CallExpr) (message ast.Expr, others []ast.Expr) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !logMethod.MatchString(method.Sel.Name) || !logger.MatchString(lastName(method.X)) {
		return nil, nil
	}
	for i, arg := range call.Args {
		if literalText(arg) != "" {
			return arg, call.Args[i+1:]
		}
	}
	return nil, nil
}

var (
	logMethod = regexp.MustCompile(`^(Debug|Info|Warn|Error|Log|LogAttrs)(Context)?$`)
	logger    = regexp.MustCompile(`(?i)log`)
)

// lastName returns the last identifier of a chain such as s.log or logger.With(…).
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		if e.Sel.Name == "With" {
			return lastName(e.X)
		}
		return e.Sel.Name
	case *ast.CallExpr:
		return lastName(e.Fun)
	}
	return ""
}

// literalText returns the text of a string literal or of a concatenation with string literals, in which an
// ellipsis stands for other operands. It is empty for all other expressions.
func literalText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value) // valid, because it was parsed
			return text
		}
	case *ast.BinaryExpr:
		left, right := literalText(e.X), literalText(e.Y)
		if e.Op == token.ADD && left+right != "" {
			return orEllipsis(left) + orEllipsis(right)
		}
	}
	return ""
}

func orEllipsis(text string) string {
	if text == "" {
		return "…"
	}
	return text
}

var (
	word   = regexp.MustCompile(`\pL{2,}`)
	spaces = regexp.MustCompile(`\pL[,.;:]? \pL`)
	// notMessage matches SQL, regular expressions, HTML, URLs and examples of commands.
	notMessage = regexp.MustCompile(`^\s*(INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH|PRAGMA|BEGIN|COMMIT|SET|ON|AND|LOCK|RETURNING)\b` +
		`|\b(SELECT|FROM|WHERE|VALUES|ORDER BY)\b|\(\?|\\[bsdw]|\[\^|</|://[^ ]*$|^  fairlead `)
)

// isProse reports whether a text has at least three words.
func isProse(text string) bool {
	return spaces.MatchString(text) && len(word.FindAllString(text, 3)) == 3
}

func isMessage(text string) bool { return isProse(text) && !notMessage.MatchString(text) }
