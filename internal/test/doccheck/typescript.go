package doccheck

import (
	"bytes"
	"path"
	"regexp"
	"strings"
)

// label matches texts that start with a capitalized word. They count even if they are a single word, such as
// "Hostname".
var label = regexp.MustCompile(`^\p{Lu}\p{Ll}+`)

// addTypeScript adds the comments of a file of the console and, if it is one of src/text, its strings.
func (t *Texts) addTypeScript(name string, src []byte) error {
	isTest := strings.HasSuffix(name, ".test.ts") || strings.HasSuffix(name, ".test.tsx")
	hasStrings := path.Dir(name) == "console/web/src/text/en" && !isTest
	for _, token := range typeScript(string(src)) {
		at := Text{name, 1 + bytes.Count(src[:token.offset], []byte("\n")), token.text}
		switch {
		case token.comment && isProse(token.text):
			t.comments = append(t.comments, at)
		case !token.comment && hasStrings && (label.MatchString(token.text) || strings.Contains(token.text, " ") && word.MatchString(token.text)):
			t.console = append(t.console, at)
		}
	}
	return nil
}

// tsToken is a comment or a string of a TypeScript file. Consecutive line comments are one token.
type tsToken struct {
	comment bool
	offset  int
	text    string
}

// typeScript returns the comments and strings of a TypeScript file. Expressions within template strings remain
// part of their text. Apostrophes in the text of JSX do not start a string, because strings end in their line.
func typeScript(src string) (tokens []tsToken) {
	for i := 0; i < len(src); {
		end := i + 1
		switch rest := src[i:]; {
		case strings.HasPrefix(rest, "//"):
			end = until(src, i, "\n")
			tokens = addLineComment(tokens, src, i, end)
		case strings.HasPrefix(rest, "/*"):
			end = min(len(src), until(src, i+2, "*/")+2)
			tokens = append(tokens, tsToken{true, i, blockText(src[i:end])})
		case rest[0] == '"' || rest[0] == '\'':
			if closing := closingQuote(src, i); closing > 0 {
				end = closing + 1
				tokens = append(tokens, tsToken{false, i, unescape(src[i+1 : closing])})
			}
		case rest[0] == '`':
			end = templateEnd(src, i)
			tokens = append(tokens, tsToken{false, i, unescape(src[i+1 : max(i+1, end-1)])})
		case rest[0] == '/' && startsExpression(src[:i]):
			if closing := regexEnd(src, i); closing > 0 {
				end = closing + 1
			}
		}
		i = end
	}
	return tokens
}

// until returns the position of mark after start, or the end of src.
func until(src string, start int, mark string) int {
	if i := strings.Index(src[start:], mark); i >= 0 {
		return start + i
	}
	return len(src)
}

// addLineComment adds src[start:end], or extends the last token if that is a comment that ends in the line before.
func addLineComment(tokens []tsToken, src string, start, end int) []tsToken {
	text := strings.TrimSpace(strings.TrimLeft(src[start:end], "/"))
	if n := len(tokens) - 1; n >= 0 && tokens[n].comment && strings.HasPrefix(src[tokens[n].offset:], "//") {
		if between := src[tokens[n].offset:start]; strings.TrimSpace(lastLine(between)) == "" && allComments(between) {
			tokens[n].text += "\n" + text
			return tokens
		}
	}
	return append(tokens, tsToken{true, start, text})
}

func lastLine(text string) string { return text[strings.LastIndexByte(text, '\n')+1:] }

// allComments reports whether every line but the last starts with a line comment.
func allComments(text string) bool {
	lines := strings.Split(text, "\n")
	for _, line := range lines[:len(lines)-1] {
		if !strings.HasPrefix(strings.TrimSpace(line), "//") {
			return false
		}
	}
	return len(lines) > 1
}

// blockText returns the text of a block comment without its delimiters.
func blockText(comment string) string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(comment, "/*"), "*/"), "\n") {
		lines = append(lines, strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "*")))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// closingQuote returns the position of the quote that ends the string at start, or 0 if its line has none.
func closingQuote(src string, start int) int {
	for i := start + 1; i < len(src) && src[i] != '\n'; i++ {
		switch src[i] {
		case '\\':
			i++
		case src[start]:
			return i
		}
	}
	return 0
}

// templateEnd returns the position after the template string at start, whose expressions may hold others.
func templateEnd(src string, start int) int {
	for i := start + 1; i < len(src); i++ {
		switch {
		case src[i] == '\\':
			i++
		case src[i] == '`':
			return i + 1
		case strings.HasPrefix(src[i:], "${"):
			i = expressionEnd(src, i+2) - 1
		}
	}
	return len(src)
}

// expressionEnd returns the position after the brace that ends the expression at start.
func expressionEnd(src string, start int) int {
	depth := 1
	for i := start; i < len(src); i++ {
		switch src[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case '`':
			i = templateEnd(src, i) - 1
		case '"', '\'':
			i = max(i, closingQuote(src, i))
		}
	}
	return len(src)
}

// startsExpression reports whether a slash after this code begins a regular expression, not a division or a tag.
func startsExpression(before string) bool {
	before = strings.TrimRight(before, " \t\n")
	return before == "" || strings.ContainsAny(before[len(before)-1:], "(,=:[!&|?{};") || strings.HasSuffix(before, "return")
}

// regexEnd returns the position of the slash that ends the regular expression at start, or 0.
func regexEnd(src string, start int) int {
	class := false
	for i := start + 1; i < len(src) && src[i] != '\n'; i++ {
		switch src[i] {
		case '\\':
			i++
		case '[':
			class = true
		case ']':
			class = false
		case '/':
			if !class {
				return i
			}
		}
	}
	return 0
}

func unescape(text string) string {
	return strings.NewReplacer(`\n`, "\n", `\"`, `"`, `\'`, "'", "\\`", "`", `\\`, `\`).Replace(text)
}
