//go:build nextrelease

package mesh

import "strings"

// Format is that of the next release, which tests build with the tag nextrelease to upgrade to
// it. Its only addition to events are notes that begin with "next:".
const Format = 2

func nextFormat(e Event) int {
	if e, ok := e.(NodePut); ok && strings.HasPrefix(e.Node.Note.Text, "next:") {
		return Format
	}
	return 0
}
