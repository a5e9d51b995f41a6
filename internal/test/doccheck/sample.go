package doccheck

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

// Text is a text for people and its location.
type Text struct {
	File string
	Line int
	Text string
}

// Section holds the texts of one kind that were drawn.
type Section struct {
	Title string
	Texts []Text
	Of    int // how many there are to draw from
}

// Sample draws texts of each kind at random. The same texts and seed give the same sample.
func (t *Texts) Sample(seed string, withComments bool) []Section {
	sections := []Section{
		draw("Console strings", t.console, 40, seed),
		draw("CLI and server messages", t.messages, 30, seed),
		draw("Log messages", t.logs, 15, seed),
		draw("API descriptions", t.api, 15, seed),
	}
	if withComments {
		sections = append(sections, draw("Code comments", t.comments, 50, seed))
	}
	return sections
}

// draw takes n texts at random and returns them in the order of files and lines. Each section has its own
// random sequence, so that a change in one does not change the others.
func draw(title string, texts []Text, n int, seed string) Section {
	byPlace := func(a, b Text) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	}
	slices.SortFunc(texts, byPlace)
	random := rand.New(rand.NewChaCha8(sha256.Sum256([]byte(title + "\n" + seed))))
	drawn := make([]Text, 0, n)
	for _, i := range random.Perm(len(texts))[:min(n, len(texts))] {
		drawn = append(drawn, texts[i])
	}
	slices.SortFunc(drawn, byPlace)
	return Section{Title: title, Texts: drawn, Of: len(texts)}
}

// Markdown returns the sections as a document.
func Markdown(seed string, sections []Section) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Text sample\n\nSeed: `%s`\n", seed)
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s (%d of %d)\n", s.Title, len(s.Texts), s.Of)
		for i, t := range s.Texts {
			fmt.Fprintf(&b, "\n%d. `%s:%d`\n\n", i+1, t.File, t.Line)
			for line := range strings.SplitSeq(strings.TrimSpace(t.Text), "\n") {
				b.WriteString(strings.TrimRight("       "+line, " ") + "\n")
			}
		}
	}
	return b.String()
}

// Texts holds all texts to draw from.
type Texts struct {
	console, messages, logs, api, comments, sentences []Text
}

// Collect returns the texts of a repository.
func Collect(tree fs.FS) (*Texts, error) {
	all := &Texts{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() && name != "." &&
			(strings.HasPrefix(base, ".") || slices.Contains([]string{"testdata", "dist", "node_modules"}, base)) {
			return fs.SkipDir
		}
		read := all.reader(name)
		if !d.Type().IsRegular() || read == nil {
			return nil
		}
		src, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		return read(name, src)
	})
	return all, err
}

// reader returns the function that adds the texts of a file, or nil if it has none.
func (t *Texts) reader(name string) func(string, []byte) error {
	switch ext := path.Ext(name); {
	case name == "api/openapi.yaml":
		return t.addAPI
	case ext == ".go":
		return t.addGo
	case (ext == ".ts" || ext == ".tsx") && strings.HasPrefix(name, "console/web/src/"):
		return t.addTypeScript
	case isDocument(name):
		return t.addDocument
	}
	return nil
}
