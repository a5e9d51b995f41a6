package apidocs

import (
	"fmt"
	"html/template"
	"regexp"
	"strings"
)

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	linkSpan = regexp.MustCompile(`\[([^\]]+)\]\(#/components/schemas/(\w+)\)`)
)

// markdown renders the subset of Markdown that the API's document uses: paragraphs, headings, lists, tables,
// code and links to schemas.
func markdown(text string) template.HTML {
	var b strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		lines := strings.Split(block, "\n")
		switch {
		case strings.HasPrefix(block, "#"):
			marks, title, _ := strings.Cut(block, " ")
			fmt.Fprintf(&b, "<h%d id=%q>%s</h%[1]d>\n", len(marks), anchor(title), inline(title))
		case strings.HasPrefix(block, "- "):
			b.WriteString("<ul>")
			for item := range strings.SplitSeq(block[len("- "):], "\n- ") {
				fmt.Fprintf(&b, "<li>%s</li>", inline(item))
			}
			b.WriteString("</ul>\n")
		case strings.HasPrefix(block, "|") && len(lines) > 2:
			b.WriteString(table(lines))
		default:
			fmt.Fprintf(&b, "<p>%s</p>\n", inline(block))
		}
	}
	return template.HTML(b.String()) // inline escapes
}

// table renders a table with a heading; its second line is only a separator.
func table(lines []string) string {
	var b strings.Builder
	b.WriteString(`<div class="wide"><table>`)
	for i, line := range lines {
		if i == 1 {
			continue
		}
		tag := "td"
		if i == 0 {
			tag = "th"
		}
		b.WriteString("<tr>")
		for cell := range strings.SplitSeq(strings.Trim(line, "| "), "|") {
			fmt.Fprintf(&b, "<%s>%s</%s>", tag, inline(strings.TrimSpace(cell)), tag)
		}
		b.WriteString("</tr>")
	}
	b.WriteString("</table></div>\n")
	return b.String()
}

// inline renders code and links within a line.
func inline(text string) template.HTML {
	text = template.HTMLEscapeString(strings.Join(strings.Fields(text), " "))
	text = codeSpan.ReplaceAllString(text, "<code>$1</code>")
	text = linkSpan.ReplaceAllString(text, `<a href="#$2">$1</a>`)
	return template.HTML(text) // escaped above
}
