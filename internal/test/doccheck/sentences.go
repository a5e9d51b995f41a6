package doccheck

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// isDocument reports whether sentences are drawn from a file: README.md, and every document below docs that is
// not generated. docs/cli.md repeats the messages of the command line, which Sample draws from, and
// docs/spec-coverage.md repeats the rows of the specification.
func isDocument(name string) bool {
	switch name {
	case "README.md":
		return true
	case "docs/cli.md", "docs/roles.md", "docs/spec-coverage.md":
		return false
	}
	return strings.HasPrefix(name, "docs/") && path.Ext(name) == ".md"
}

// SampleDocuments draws 100 sentences at random from README.md and docs, or only from the documents in only.
func (t *Texts) SampleDocuments(seed string, only []string) []Section {
	from := slices.DeleteFunc(slices.Clone(t.sentences), func(s Text) bool { return len(only) > 0 && !slices.Contains(only, s.File) })
	return []Section{draw("Sentences of the documentation", from, 100, seed)}
}

var (
	fenceLine = regexp.MustCompile("^[ >]*(```|~~~)")
	notProse  = regexp.MustCompile(`^ *(#+ |<[a-zA-Z/]|[-=*_ |:]+$)`) // headings, HTML, rules and the line below a table's head
	listItem  = regexp.MustCompile(`^ *([-*+]|\d+[.)])( +\[[ x]\])? +`)
	quotation = regexp.MustCompile(`^( *> ?)+(\[![A-Z]+\] *$)?`)
	tableRow  = regexp.MustCompile(`^ *\|`)
	cellEnd   = regexp.MustCompile(`(^|[^\\])\|`)
	codeSpan  = regexp.MustCompile("`[^`]+`")
	// onlyLink matches an entry of a table of contents.
	onlyLink = regexp.MustCompile(`^\[[^\]]*\]\([^)]*\)$`)
	// sentenceEnd matches the end of a sentence and the start of the next one.
	sentenceEnd = regexp.MustCompile(`[.!?…]["')\]*_]*(\s+)["'(\[*_` + "`" + `\p{Lu}\p{N}]`)
	// notAnEnd matches text whose last period does not end a sentence.
	notAnEnd = regexp.MustCompile(`(^|[\s(])(e\.g|i\.e|vs|cf|approx)\.$`)
)

// addDocument adds the sentences of a Markdown file: those of paragraphs, list items and table cells.
// Code blocks, headings and comments have none.
func (t *Texts) addDocument(name string, src []byte) error {
	var paragraph []string
	start := 0
	end := func() {
		t.addSentences(name, start, strings.Join(paragraph, "\n"))
		paragraph = nil
	}
	inCode, inComment := false, false
	for i, line := range strings.Split(string(src), "\n") {
		code := fenceLine.MatchString(line)
		inComment = inComment || !inCode && strings.HasPrefix(strings.TrimSpace(line), "<!--")
		switch {
		case inComment:
			end()
			inComment = !strings.Contains(line, "-->")
			continue
		case code:
			inCode = !inCode
			end()
			continue
		case inCode:
			continue
		}
		line = quotation.ReplaceAllString(line, "")
		switch {
		case strings.TrimSpace(line) == "" || notProse.MatchString(line):
			end()
			continue
		case tableRow.MatchString(line):
			end()
			for cell := range strings.SplitSeq(cellEnd.ReplaceAllString(line, "$1\n"), "\n") {
				t.addSentences(name, i+1, cell)
			}
			continue
		case listItem.MatchString(line):
			end()
			line = listItem.ReplaceAllString(line, "")
		}
		if len(paragraph) == 0 {
			start = i + 1
		}
		paragraph = append(paragraph, line)
	}
	end()
	return nil
}

// addSentences adds the sentences of a paragraph that starts at a line. Fragments of fewer than three words
// and links alone are not sentences; words in code do not count.
func (t *Texts) addSentences(name string, line int, paragraph string) {
	// The same text with X for code, because a period in code does not end a sentence.
	plain := codeSpan.ReplaceAllStringFunc(paragraph, func(code string) string {
		return "`" + strings.Repeat("X", len(code)-2) + "`"
	})
	add := func(from, to int) {
		if text := strings.Join(strings.Fields(paragraph[from:to]), " "); !onlyLink.MatchString(text) && isProse(codeSpan.ReplaceAllString(text, "`1`")) {
			t.sentences = append(t.sentences, Text{name, line + strings.Count(paragraph[:from], "\n"), text})
		}
	}
	from := 0
	for at := 0; at < len(plain); {
		m := sentenceEnd.FindStringSubmatchIndex(plain[at:])
		if m == nil {
			break
		}
		stop, next := at+m[2], at+m[3]
		at = next
		if !notAnEnd.MatchString(plain[from:stop]) {
			add(from, stop)
			from = next
		}
	}
	add(from, len(plain))
}
