package monitortest

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// noName matches the parts of an expression that cannot contain the name of a metric: strings, matchers,
	// ranges, lists of labels, and numbers.
	noName   = regexp.MustCompile(`"[^"]*"|\{[^}]*\}|\[[^]]*\]|\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)|\b[0-9][0-9a-zA-Z.]*`)
	word     = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*\s*\(?`)
	keywords = strings.Fields("and or unless by without on ignoring group_left group_right offset bool")
)

// names returns the metrics in an expression: all words that are neither functions nor keywords. promtool has
// validated the expression.
func names(expr string) (found []string) {
	for _, w := range word.FindAllString(noName.ReplaceAllString(expr, " "), -1) {
		if w = strings.TrimSpace(w); !strings.HasSuffix(w, "(") && !slices.Contains(keywords, w) {
			found = append(found, w)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
