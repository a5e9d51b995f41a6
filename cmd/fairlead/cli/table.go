package cli

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	columnGap = 2
	// narrowest is the minimum width of a column; below it, a column is left out.
	narrowest = 8
)

// columns describes the columns of a list. Names are comma-separated.
type columns struct {
	names string // all of them, from left to right
	wide  string // those that only --output wide shows
	spare string // those that are left out first, in this order, if the terminal is too narrow
	aged  string // a column whose cells run from old to new, so it is cut at the start instead of the end
}

func split(names string) []string {
	if names == "" {
		return nil
	}
	return strings.Split(names, ", ")
}

// showList prints items in the API's format, or as a table that fits the terminal. In files and pipes the
// table has its full width.
func showList[T any](t *tool, c columns, items []T, cells func(T) []string) error {
	return showTable(t, items, c, items, cells)
}

// showTable is showList for items that are part of a value.
func showTable[T any](t *tool, value any, c columns, items []T, cells func(T) []string) error {
	if !t.forPeople() {
		return t.show(value, "")
	}
	g := gridOf(c.names, items, cells)
	g.aged = c.aged
	width, _ := t.screen()
	if t.format == formatTable {
		g.leaveOut(split(c.wide)...)
	} else {
		width = 0
	}
	left := g.fit(split(c.spare), width)
	if err := t.write(g.text(t.colour())); err != nil {
		return err
	}
	if len(left) > 0 {
		t.note("The terminal is too narrow. Hidden columns, shown with --output wide: %s", strings.Join(append(left, split(c.wide)...), ", "))
	}
	if i := slices.Index(g.rows[0], c.aged); i >= 0 && g.cuts(i) {
		t.note("The terminal is too narrow; the oldest part of %s is cut off", c.aged)
	}
	return nil
}

// table formats items as columns, one line each below the header.
func table[T any](header string, items []T, cells func(T) []string) string {
	return gridOf(header, items, cells).text(false)
}

// grid is a table before it is written: the first row is the header.
type grid struct {
	rows   [][]string
	widths []int
	whole  []bool // columns that must not be cut: a truncated time looks like a different one
	aged   string // the column whose cells are cut at the start
}

func gridOf[T any](header string, items []T, cells func(T) []string) *grid {
	g := &grid{rows: [][]string{strings.Split(header, ", ")}}
	for _, item := range items {
		row := cells(item)
		for i, text := range row {
			row[i] = cell(text)
		}
		g.rows = append(g.rows, row)
	}
	g.measure()
	return g
}

// measure sets the width of every column to that of its longest cell.
func (g *grid) measure() {
	g.widths = make([]int, len(slices.MaxFunc(g.rows, func(a, b []string) int { return len(a) - len(b) })))
	g.whole = make([]bool, len(g.widths))
	for _, row := range g.rows {
		for i, text := range row {
			g.widths[i] = max(g.widths[i], displayWidth(text))
			_, err := time.Parse(time.RFC3339, text)
			g.whole[i] = g.whole[i] || err == nil
		}
	}
}

func (g *grid) width() int {
	sum := columnGap * (len(g.widths) - 1)
	for _, w := range g.widths {
		sum += w
	}
	return sum
}

// cuts reports whether a column is narrower than one of its cells.
func (g *grid) cuts(column int) bool {
	return slices.ContainsFunc(g.rows, func(row []string) bool { return displayWidth(row[column]) > g.widths[column] })
}

// leaveOut removes columns, but never the last one.
func (g *grid) leaveOut(names ...string) {
	for _, name := range names {
		i := slices.Index(g.rows[0], name)
		if i < 0 || len(g.widths) == 1 {
			continue
		}
		for r, row := range g.rows {
			g.rows[r] = slices.Delete(row, i, i+1)
		}
		g.measure()
	}
}

// fit reduces the width of the grid to limit, unless that is 0, and returns the columns that were left out.
// Spare columns are cut or left out first. Then the other columns are cut, starting with the widest, and left
// out from the right only if nothing else helps. Times are never cut.
func (g *grid) fit(spare []string, limit int) (left []string) {
	if limit == 0 {
		return nil
	}
	for _, name := range spare {
		i := slices.Index(g.rows[0], name)
		over := g.width() - limit
		if i < 0 || over <= 0 {
			continue
		}
		if least := max(narrowest, displayWidth(name)); g.widths[i]-over >= least && !g.whole[i] {
			g.widths[i] -= over
			return left
		}
		g.leaveOut(name)
		left = append(left, name)
	}
	for g.width() > limit {
		widest := -1
		for i, w := range g.widths {
			if w > narrowest && (widest < 0 || w > g.widths[widest]) && !g.whole[i] {
				widest = i
			}
		}
		switch last := len(g.widths) - 1; {
		case widest >= 0:
			g.widths[widest]--
		case last > 0:
			left = append(left, g.rows[0][last])
			g.leaveOut(g.rows[0][last])
		default:
			g.widths[0] = limit
		}
	}
	return left
}

func (g *grid) text(colour bool) string {
	var b strings.Builder
	aged := slices.Index(g.rows[0], g.aged)
	for r, row := range g.rows {
		for i, text := range row {
			if i == aged && r > 0 && g.aged != "" {
				text = cutBeginning(text, g.widths[i])
			}
			text = cut(text, g.widths[i])
			pad := strings.Repeat(" ", g.widths[i]-displayWidth(text)+columnGap)
			if colour {
				text = paint(r == 0, g.rows[0][i], text)
			}
			b.WriteString(text)
			if i < len(row)-1 {
				b.WriteString(pad)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// paint colours states, so that they can be recognised at a glance.
func paint(header bool, column, text string) string {
	const bold, red, green, faint = "1", "31", "32", "2"
	code := ""
	switch {
	case header:
		code = bold
	case column != "STATE" && column != "STATUS":
	case slices.Contains([]string{"online", "enabled", "ok"}, text):
		code = green
	case slices.Contains([]string{"expired", "failing"}, text):
		code = red
	default:
		code = faint
	}
	if code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// cut shortens text to a width, with a mark at the cut.
func cut(text string, width int) string {
	if displayWidth(text) <= width {
		return text
	}
	used := 1 // one cell for the mark
	for i, r := range text {
		if used += runeWidth(r); used > width {
			return text[:i] + "…"
		}
	}
	return text
}

// cutBeginning is cut for texts whose end matters.
func cutBeginning(text string, width int) string {
	if displayWidth(text) <= width {
		return text
	}
	for displayWidth(text) > width-1 {
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
	}
	return "…" + text
}

func displayWidth(text string) int {
	sum := 0
	for _, r := range text {
		sum += runeWidth(r)
	}
	return sum
}

// runeWidth returns how many cells of a terminal a character takes. The ranges are the scripts and symbols
// that are two cells wide. If a rare one is missing here, the rest of its line is shifted by one cell.
func runeWidth(r rune) int {
	between := func(first, last rune) bool { return first <= r && r <= last }
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case between(0x1100, 0x115f), between(0x231a, 0x231b), between(0x2e80, 0x303e), between(0x3041, 0xa4cf), between(0xa960, 0xa97c),
		between(0xac00, 0xd7a3), between(0xf900, 0xfaff), between(0xfe30, 0xfe6f), between(0xff01, 0xff60), between(0xffe0, 0xffe6),
		between(0x1f300, 0x1f64f), between(0x1f680, 0x1f6ff), between(0x1f7e0, 0x1f7eb), between(0x1f900, 0x1faff), between(0x20000, 0x3fffd):
		return 2
	}
	return 1
}
