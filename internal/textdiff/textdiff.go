// Package textdiff compares texts line by line, as diff -u does.
package textdiff

import (
	"fmt"
	"slices"
	"strings"
)

const (
	contextLines = 3
	// maxEdits limits the work for texts that have little in common: everything between their first and last
	// difference is then replaced as a whole.
	maxEdits = 1_000
)

// Unified returns the changes from one text to another in the unified format of diff -u, or "" if they are
// equal.
func Unified(fromName, toName, from, to string) string {
	if from == to {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", fromName, toName)
	edits := editsOf(lines(from), lines(to))
	for start := 0; start < len(edits); {
		if edits[start].op == ' ' {
			start++
			continue
		}
		end, quiet := start, 0 // end is after the last difference of this hunk
		for i := start; i < len(edits) && quiet <= 2*contextLines; i++ {
			if quiet++; edits[i].op != ' ' {
				end, quiet = i+1, 0
			}
		}
		writeHunk(&b, edits, max(start-contextLines, 0), min(end+contextLines, len(edits)))
		start = end
	}
	return b.String()
}

// lines splits a text after each newline; the last line may have none.
func lines(text string) []string {
	all := strings.SplitAfter(text, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// edit keeps, removes or adds one line: ' ', '-' or '+'. The numbers are those of the line in both texts,
// counted from 0, or of the line that follows.
type edit struct {
	op       byte
	from, to int
	text     string
}

func writeHunk(b *strings.Builder, edits []edit, start, end int) {
	var removed, added int
	for _, e := range edits[start:end] {
		if e.op != '+' {
			removed++
		}
		if e.op != '-' {
			added++
		}
	}
	place := func(first, count int) string {
		if count > 0 {
			first++
		}
		if count == 1 {
			return fmt.Sprint(first)
		}
		return fmt.Sprintf("%d,%d", first, count)
	}
	fmt.Fprintf(b, "@@ -%s +%s @@\n", place(edits[start].from, removed), place(edits[start].to, added))
	for _, e := range edits[start:end] {
		b.WriteByte(e.op)
		b.WriteString(e.text)
		if !strings.HasSuffix(e.text, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// editsOf skips the lines that both texts start and end with, usually most of them, and compares the rest.
func editsOf(from, to []string) []edit {
	head := 0
	for head < len(from) && head < len(to) && from[head] == to[head] {
		head++
	}
	tail := 0
	for tail < len(from)-head && tail < len(to)-head && from[len(from)-1-tail] == to[len(to)-1-tail] {
		tail++
	}
	var out []edit
	i, j := 0, 0
	step := func(op byte) {
		e := edit{op: op, from: i, to: j}
		if op == '+' {
			e.text = to[j]
		} else {
			e.text = from[i]
		}
		if out = append(out, e); op != '+' {
			i++
		}
		if op != '-' {
			j++
		}
	}
	for range head {
		step(' ')
	}
	for _, op := range script(from[head:len(from)-tail], to[head:len(to)-tail]) {
		step(op)
	}
	for range tail {
		step(' ')
	}
	return out
}

// script returns the shortest list of edits from one list of lines to the other, with Myers' algorithm. If
// that has more than maxEdits differences, it returns one that replaces all lines.
func script(from, to []string) []byte {
	n, m := len(from), len(to)
	// reached[d][k+d] is the furthest line of from that d differences reach on
	// diagonal k, where k is the number of lines taken from from minus those from to.
	var reached [][]int32
	for d := 0; d <= min(n+m, maxEdits); d++ {
		row := make([]int32, 2*d+1)
		for k := -d; k <= d; k += 2 {
			x := 0
			if d > 0 {
				x = furthest(reached[d-1], k, d)
			}
			y := x - k
			for x >= 0 && y >= 0 && x < n && y < m && from[x] == to[y] {
				x, y = x+1, y+1
			}
			row[k+d] = int32(x)
			if x >= n && y >= m {
				return retrace(append(reached, row), n, m)
			}
		}
		reached = append(reached, row)
	}
	return append([]byte(strings.Repeat("-", n)), strings.Repeat("+", m)...)
}

// furthest returns the line of from that the d-th difference reaches on diagonal k, coming from the better
// neighbour in the previous row.
func furthest(before []int32, k, d int) int {
	if insertsAt(before, k, d) {
		return int(before[k+1+d-1])
	}
	return int(before[k-1+d-1]) + 1
}

func insertsAt(before []int32, k, d int) bool {
	return k == -d || k != d && before[k-1+d-1] < before[k+1+d-1]
}

func retrace(reached [][]int32, n, m int) []byte {
	var steps []byte // from the end
	x, y := n, m
	for d := len(reached) - 1; d > 0; d-- {
		k := x - y
		was, taken, op := k-1, 1, byte('-')
		if insertsAt(reached[d-1], k, d) {
			was, taken, op = k+1, 0, '+'
		}
		start := int(reached[d-1][was+d-1])
		for ; x > start+taken; x-- {
			steps = append(steps, ' ')
		}
		steps = append(steps, op)
		x, y = start, start-was
	}
	for range x {
		steps = append(steps, ' ')
	}
	slices.Reverse(steps)
	return steps
}
