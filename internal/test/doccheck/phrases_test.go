package doccheck

import (
	"bytes"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// phrase is a row of phrases.yaml, whose head explains the fields.
type phrase struct {
	Find       []string
	Use, Why   string
	Hits, Fine []string
	Except     []*exception

	expressions []*regexp.Regexp
}

type exception struct {
	File, Phrase, Why string

	context *regexp.Regexp // nil: anywhere in the file
	used    bool
}

// hit is a phrase that was found.
type hit struct {
	file   string
	line   int
	found  string
	phrase *phrase
}

func (h hit) String() string {
	return fmt.Sprintf("%s:%d: %q: use %s (%s)", h.file, h.line, h.found, h.phrase.Use, h.phrase.Why)
}

// shortestPrefix is how many literal characters an expression must start with. Searching for such
// expressions is as fast as searching for plain text.
const shortestPrefix = 3

// parsePhrases parses phrases.yaml.
func parsePhrases(text []byte) (rows []*phrase, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&rows); err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row.Use == "" || row.Why == "" || len(row.Hits) == 0 || len(row.Fine) == 0 {
			return nil, fmt.Errorf("%q: use, why, hits and fine are required", row.Find)
		}
		for _, find := range row.Find {
			re, err := regexp.Compile(loose(find))
			if err != nil {
				return nil, err
			}
			if prefix, _ := re.LiteralPrefix(); len(prefix) < shortestPrefix {
				return nil, fmt.Errorf("%q: start with at least %d literal characters", find, shortestPrefix)
			}
			row.expressions = append(row.expressions, re)
		}
		for _, e := range row.Except {
			if e.File == "" || e.Why == "" {
				return nil, fmt.Errorf("%q: an exception needs a file and a reason", row.Find)
			}
			if e.Phrase != "" {
				e.context = regexp.MustCompile(loose(regexp.QuoteMeta(strings.ToLower(e.Phrase))))
			}
		}
	}
	return rows, nil
}

// loose lets each space match one or more spaces, because flatten turns line breaks and indentation into
// spaces.
func loose(expression string) string { return strings.ReplaceAll(expression, " ", " +") }

// search returns the phrases in one file, except where an exception applies.
func search(file string, text []byte, rows []*phrase) (hits []hit) {
	flat := flatten(file, text)
	for _, row := range rows {
		for _, re := range row.expressions {
			for _, at := range re.FindAllIndex(flat, -1) {
				if !wholeWords(flat, at[0], at[1]) || row.excepted(file, flat, at[0], at[1]) {
					continue
				}
				found := strings.Join(strings.Fields(string(flat[at[0]:at[1]])), " ")
				hits = append(hits, hit{file, 1 + bytes.Count(text[:at[0]], []byte("\n")), found, row})
			}
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return a.line - b.line })
	return hits
}

// wholeWords reports whether text[start:end] neither starts nor ends within a word.
func wholeWords(text []byte, start, end int) bool {
	letter := func(i int) bool {
		return i >= 0 && i < len(text) && (text[i] >= 'a' && text[i] <= 'z' || text[i] >= '0' && text[i] <= '9' || text[i] == '_')
	}
	return !letter(start-1) && !letter(end) && (end == len(text) || text[end] != '-')
}

// excepted reports whether an exception covers flat[start:end] or overlaps it.
func (p *phrase) excepted(file string, flat []byte, start, end int) bool {
	const around = 200
	from, to := max(0, start-around), min(len(flat), end+around)
	for _, e := range p.Except {
		if e.File != "*" && e.File != file {
			continue
		}
		covered := e.context == nil
		if !covered {
			for _, at := range e.context.FindAllIndex(flat[from:to], -1) {
				covered = covered || from+at[0] < end && start < from+at[1]
			}
		}
		if covered {
			e.used = true
			return true
		}
	}
	return false
}

// unused returns the exceptions for single files that were never needed.
func unused(rows []*phrase) (found []string) {
	for _, row := range rows {
		for _, e := range row.Except {
			if !e.used && e.File != "*" {
				found = append(found, fmt.Sprintf("phrases.yaml: %q: the exception for %q in %s is not needed", row.Find, e.Phrase, e.File))
			}
		}
	}
	return found
}

// commentLeader matches what the scanned languages put before the text of comments and quotations.
var commentLeader = regexp.MustCompile(`^\s*(//+|#+|/\*+|\*|--|>)?\s*`)

// flatten returns the prose of a file in lower case as one line of the same length. Everything else becomes
// NUL, and so does the end of a paragraph, because no phrase extends beyond it.
func flatten(file string, text []byte) []byte {
	flat := bytes.Clone(text)
	if path.Ext(file) == ".go" {
		flat = goProse(text)
	}
	for start := 0; start < len(flat); {
		end := len(flat)
		if i := bytes.IndexByte(flat[start:], '\n'); i >= 0 {
			end = start + i
		}
		for i := range commentLeader.Find(flat[start:end]) {
			flat[start+i] = ' '
		}
		if end < len(flat) {
			flat[end] = ' '
			if len(bytes.TrimSpace(flat[start:end])) == 0 {
				flat[end] = 0
			}
		}
		start = end + 1
	}
	for i, c := range flat {
		switch {
		case c >= 'A' && c <= 'Z':
			flat[i] = c + 'a' - 'A'
		case c == '\t':
			flat[i] = ' '
		case c == '\\' && i+1 < len(flat) && (flat[i+1] == 'n' || flat[i+1] == 't'): // an escaped line break or tab
			flat[i], flat[i+1] = ' ', ' '
		}
	}
	return flat
}

// goProse returns a Go file in which everything but comments, strings and white space is NUL.
func goProse(text []byte) []byte {
	prose := make([]byte, len(text))
	for i, c := range text {
		if c == ' ' || c == '\t' || c == '\n' {
			prose[i] = c
		}
	}
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	for {
		pos, kind, literal := s.Scan()
		switch kind {
		case token.EOF:
			return prose
		case token.COMMENT, token.STRING:
			copy(prose[file.Offset(pos):], literal)
		default:
		}
	}
}

var errFewFiles = errors.New("too few files: is this the root of the repository?")

// productFiles returns the paths of all files with text for people.
func productFiles(tree fs.FS) (names []string, err error) {
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() && name != "." && base != ".ci" &&
			(strings.HasPrefix(base, ".") || slices.Contains([]string{"testdata", "dist", "node_modules"}, base)) {
			return fs.SkipDir
		}
		if d.Type().IsRegular() && hasProductText(name) {
			names = append(names, name)
		}
		return nil
	})
	if err == nil && len(names) < 1000 {
		err = errFewFiles
	}
	return names, err
}

func hasProductText(name string) bool {
	switch path.Ext(name) {
	case ".png", ".svg", ".sum", ".mod":
		return false
	case ".md", ".go", ".html":
		return true
	}
	return name == "Makefile" || name == "api/openapi.yaml" ||
		slices.ContainsFunc([]string{"console/web/src/", "deploy/", "scripts/", ".ci/"}, func(dir string) bool {
			return strings.HasPrefix(name, dir)
		})
}

// generatedCode matches the line that marks generated Go files.
var generatedCode = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func ourPhrases(t *testing.T) []*phrase {
	t.Helper()
	text, err := os.ReadFile("phrases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := parsePhrases(text)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestTextUsesPlainPhrases(t *testing.T) {
	rows, tree := ourPhrases(t), os.DirFS(root)
	names, err := productFiles(tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			t.Fatal(err)
		}
		if path.Ext(name) == ".go" && generatedCode.Match(text[:min(len(text), 1000)]) {
			continue
		}
		for _, h := range search(name, text, rows) {
			t.Error(h)
		}
	}
	for _, problem := range unused(rows) {
		t.Error(problem)
	}
}

func TestEveryPhraseIsFound(t *testing.T) {
	rows := ourPhrases(t)
	for _, row := range rows {
		for i, re := range row.expressions {
			if !slices.ContainsFunc(row.Hits, func(sentence string) bool { return re.MatchString(strings.ToLower(sentence)) }) {
				t.Errorf("no sentence in hits proves %q", row.Find[i])
			}
		}
		for _, sentence := range row.Hits {
			// The same sentence as text, in two lines of a comment, and as a string.
			broken := strings.Replace(sentence, " ", "\n\t// ", 1)
			for name, text := range map[string]string{
				"docs/a.md": "Title\n\n" + sentence, "console/web/src/a.tsx": "{\n/* */ <p>" + sentence + "</p>", "deploy/a.conf": "x y;\n# " + sentence,
				"internal/a.go": "package a\n\n\t// " + broken + "\n", "cmd/a.go": "package a\n\nconst s = \"\\n" + strings.ReplaceAll(sentence, `"`, `\"`) + "\"\n",
			} {
				hits := search(name, []byte(text), []*phrase{row})
				if len(hits) == 0 {
					t.Errorf("%q is not found in %s", sentence, name)
				}
				for _, h := range hits {
					if line := h.line; line < 2 || line > 4 || !strings.HasPrefix(h.String(), fmt.Sprintf("%s:%d: %q: use %s (", name, line, h.found, row.Use)) {
						t.Errorf("%q in %s is reported as %s", sentence, name, h)
					}
				}
			}
		}
	}
	for _, row := range rows {
		for _, sentence := range row.Fine {
			for _, h := range search("docs/a.md", []byte(sentence), rows) {
				t.Errorf("%q is reported as %s", sentence, h)
			}
		}
	}
}

func TestPhrasesAreFoundInProseAlone(t *testing.T) {
	rows, err := parsePhrases([]byte(`[{find: [blue moon], use: by default, why: x, hits: [blue moon], fine: [x]},
{find: [zonk], use: again, why: x, hits: [zonk], fine: [x], except: [{file: docs/old.md, why: x}, {file: docs/log.md, phrase: read zonk once, why: x}, {file: docs/none.md, why: x}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file, text string
		want       []string
	}{
		{"a.go", "package a\n\nvar zonk = 1", nil},
		{"a.go", "package a\n\nvar s = \"blue\" // moon", nil},
		{"a.go", "package a\n\nvar s = `Zonk\nand zonk` // ZONK", []string{"a.go:3", "a.go:4", "a.go:4"}},
		{"a.go", "package a\n\n// f is all blue\n// moon.\n//\n// Blue\n//\n// moon.\nfunc f() {}", []string{"a.go:3"}},
		{"a.md", "all blue\n  moon\n\nblue\n\nmoon", []string{"a.md:1"}},
		{"a.sh", "# blue\n# moon", []string{"a.sh:1"}},
		{"a.md", "czonk zonkt zonk_x zonk-x", nil},
		{"docs/old.md", "zonk", nil},
		{"docs/log.md", "it is read\nzonk once, and zonk", []string{"docs/log.md:2"}},
	} {
		var got []string
		for _, h := range search(c.file, []byte(c.text), rows) {
			got = append(got, fmt.Sprintf("%s:%d", h.file, h.line))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q in %s (-want +got):\n%s", c.text, c.file, diff)
		}
	}
	want := []string{`phrases.yaml: ["zonk"]: the exception for "" in docs/none.md is not needed`}
	if diff := cmp.Diff(want, unused(rows)); diff != "" {
		t.Errorf("exceptions that are not needed (-want +got):\n%s", diff)
	}
	for row, want := range map[string]string{
		`[{find: [zonk], why: x, hits: [zonk], fine: [x]}]`:                           "required",
		`[{find: [zonk], use: x, why: x, hits: [zonk], fine: [x], typo: x}]`:          "typo",
		`[{find: ['(a|b) word'], use: x, why: x, hits: [a word], fine: [x]}]`:         "literal characters",
		`[{find: ['zonk('], use: x, why: x, hits: [zonk], fine: [x]}]`:                "missing closing",
		`[{find: [zonk], use: x, why: x, hits: [x], fine: [x], except: [{file: a}]}]`: "a reason",
	} {
		if _, err := parsePhrases([]byte(row)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", row, err, want)
		}
	}
}

func TestProductTextIsComplete(t *testing.T) {
	names, err := productFiles(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/api.md", "api/openapi.yaml", "cmd/fairlead/main.go", "internal/apidocs/page.html",
		"console/web/src/text/en/nodes.ts", "scripts/setup.sh", "deploy/fairlead.service", "deploy/docker/Dockerfile", ".ci/run", "Makefile",
	} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not searched", name)
		}
	}
	for _, name := range []string{"api/released.yaml", "go.sum", "console/web/package-lock.json"} {
		if slices.Contains(names, name) {
			t.Errorf("%s is searched", name)
		}
	}
}
