//go:build !race

package load

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"testing"
)

type point struct{ x, y float64 }

// plot draws two lines as SVG: fairlead and the reference. Both axes are logarithmic, so that a straight line is a power of the
// number of nodes.
func plot(title string, ours, reference []point) string {
	const width, height, left, right, top, bottom, gap = 480, 300, 60, 50, 40, 40, 20
	low, high := point{math.Inf(1), math.Inf(1)}, point{}
	for _, p := range append(append([]point{}, ours...), reference...) {
		p.y = max(p.y, 0.01)
		low, high = point{min(low.x, p.x), min(low.y, p.y)}, point{max(high.x, p.x), max(high.y, p.y)}
	}
	at := func(p point) (x, y float64) {
		along := func(v, low, high float64) float64 {
			if low == high {
				return 0.5
			}
			return math.Log(v/low) / math.Log(high/low)
		}
		return left + (width-left-right)*along(p.x, low.x, high.x), height - bottom - gap - (height-top-bottom-gap)*along(max(p.y, 0.01), low.y, high.y)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/><text x="%d" y="20" font-size="14">%s</text>`+"\n", width, height, left, html.EscapeString(title))
	fmt.Fprintf(&b, `<path d="M%d %dV%dH%d" fill="none" stroke="#888"/>`+"\n", left, top, height-bottom, width-right)
	for i, line := range []struct {
		name, color string
		points      []point
		anchor      string // of the labels, which are beside the points so that those of the two lines do not overlap
		dx, dy      float64
	}{{"fairlead", "#0a58ca", ours, "start", 6, 12}, {"reference", "#b45309", reference, "end", -6, -5}} {
		var path []string
		for _, p := range line.points {
			x, y := at(p)
			path = append(path, fmt.Sprintf("%.1f,%.1f", x, y))
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/><text x="%.1f" y="%.1f" fill="%s" text-anchor="%s">%.3g</text>`+"\n", x, y, line.color, x+line.dx, y+line.dy, line.color, line.anchor, p.y)
			if i == 0 {
				fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%.0f</text>`+"\n", x, height-bottom+16, p.x)
			}
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(path, " "), line.color)
		fmt.Fprintf(&b, `<text x="%d" y="20" fill="%s">%s</text>`+"\n", width-150+70*i, line.color, line.name)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">nodes</text>`+"\n</svg>\n", (width+left-right)/2, height-6)
	return b.String()
}

func TestFigurePlotHasAllPoints(t *testing.T) {
	text := plot("CPU < 1 s", []point{{500, 0}, {2000, 54}}, []point{{500, 13.5}, {2000, 54.5}})
	circles := 0
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
			circles++
		}
	}
	if circles != 4 || strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Errorf("%d points\n%s", circles, text)
	}
}
