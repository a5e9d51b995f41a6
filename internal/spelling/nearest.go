package spelling

import "strings"

// Nearest returns the known name with the smallest edit distance to name, ignoring case, or "" if all distances
// are greater than most.
func Nearest(name string, known []string, most int) string {
	name = strings.ToLower(name)
	best := ""
	for _, k := range known {
		if max(len(k)-len(name), len(name)-len(k)) > most {
			continue
		}
		if d := edits(name, strings.ToLower(k)); d <= most {
			best, most = k, d-1
		}
	}
	return best
}

// edits returns the Levenshtein distance between a and b, in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
