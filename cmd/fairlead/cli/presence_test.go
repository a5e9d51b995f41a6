package cli

import (
	"testing"
	"time"
)

func TestShareOfTimeOnlineCountsFromJoining(t *testing.T) {
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	to := from.Add(4 * time.Hour)
	for _, c := range []struct {
		joined time.Time
		parts  []float64
		want   float64
	}{
		{from.Add(-time.Hour), []float64{1, 0}, 0.5},
		{from.Add(2 * time.Hour), []float64{0, 1}, 1},
		{from.Add(2 * time.Hour), []float64{0, 0.5}, 0.5},
		{from.Add(3 * time.Hour), []float64{0.5, 1}, 1}, // the clocks disagree
		{to.Add(time.Hour), []float64{0, 0}, 0},
		{from, nil, 0},
	} {
		if got := onlineShare(c.parts, from, to, c.joined); got != c.want {
			t.Errorf("%v since %s: %v, want %v", c.parts, c.joined, got, c.want)
		}
	}
}
