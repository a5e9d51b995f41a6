package history_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

func FuzzPositionHasOneText(f *testing.F) {
	for _, text := range []string{"0-0", "42-0", "9223372036854775807-2147483647", "", "-", "1", "1-", "-1-0", "1--1", "+1-0", "01-0", "1-00", " 1-0", "1-0-0", "1-2147483648", "9223372036854775808-0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := history.ParsePosition(text)
		if err != nil {
			if p != (history.Position{}) {
				t.Fatalf("%q is refused and read as %v", text, p)
			}
			return
		}
		if p.String() != text || p.Rev < 0 || p.Index < 0 {
			t.Fatalf("%q is read as %v", text, p)
		}
	})
}

func TestPositionIsReadBack(t *testing.T) {
	for _, p := range []history.Position{{}, {Rev: 1}, {Rev: 42, Index: 7}, {Rev: math.MaxInt64}, history.EndOf(3)} {
		if got, err := history.ParsePosition(p.String()); err != nil || got != p {
			t.Errorf("%v is read back as %v (%v)", p, got, err)
		}
	}
	for _, text := range []string{"", "7", "7-", "-7-0", "07-0", "7-0x", "7-0-0", "7-4294967296"} {
		if p, err := history.ParsePosition(text); err == nil {
			t.Errorf("%q is read as %v", text, p)
		}
	}
}

func TestPositionsHaveTheOrderOfRows(t *testing.T) {
	order := []history.Position{{}, {Rev: 1}, {Rev: 1, Index: 1}, {Rev: 1, Index: 10}, history.EndOf(1), {Rev: 2}, {Rev: 10}}
	for i, p := range order {
		for j, q := range order {
			if got, want := p.Compare(q), min(max(i-j, -1), 1); got != want {
				t.Errorf("%v compared with %v is %d, want %d", p, q, got, want)
			}
		}
	}
}

func TestBucketsShareTheTimeOnline(t *testing.T) {
	const from, to = mesh.Time(1000), mesh.Time(1400)
	up := func(at mesh.Time) history.Transition { return history.Transition{At: at, Online: true} }
	down := func(at mesh.Time) history.Transition { return history.Transition{At: at} }
	for name, c := range map[string]struct {
		before bool
		list   []history.Transition
		want   []float64
	}{
		"never":                  {false, nil, []float64{0, 0, 0, 0}},
		"always":                 {true, nil, []float64{1, 1, 1, 1}},
		"left":                   {true, []history.Transition{down(1150)}, []float64{1, 0.5, 0, 0}},
		"came":                   {false, []history.Transition{up(1325)}, []float64{0, 0, 0, 0.75}},
		"at an edge":             {true, []history.Transition{down(1100), up(1200)}, []float64{1, 0, 1, 1}},
		"at the start":           {true, []history.Transition{down(1000)}, []float64{0, 0, 0, 0}},
		"a notch":                {true, []history.Transition{down(1210), up(1220)}, []float64{1, 1, 0.9, 1}},
		"across an edge":         {true, []history.Transition{down(1080), up(1120)}, []float64{0.8, 0.8, 1, 1}},
		"twice the same":         {true, []history.Transition{up(1040), down(1050), down(1075), up(1100)}, []float64{0.5, 1, 1, 1}},
		"before the time began":  {false, []history.Transition{up(900)}, []float64{1, 1, 1, 1}},
		"in an order unexpected": {true, []history.Transition{down(1250), up(1240), down(1300)}, []float64{1, 1, 1, 0}},
		"after the end":          {true, []history.Transition{down(1400)}, []float64{1, 1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []float64
			for _, b := range (history.Presence{Before: c.before, Transitions: c.list}).Buckets(from, to, 4) {
				got = append(got, b.Online)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStateThatIsToldTwiceChangesOnce(t *testing.T) {
	up, down := history.Transition{Online: true}, history.Transition{}
	for _, c := range []struct {
		before bool
		list   []history.Transition
		want   int
	}{
		{true, nil, 0},
		{true, []history.Transition{up}, 0},
		{false, []history.Transition{up}, 1},
		{true, []history.Transition{down, up, down, up}, 4},
		{true, []history.Transition{down, down, up, up, down}, 3},
	} {
		if got := (history.Presence{Before: c.before, Transitions: c.list}).Changes(); got != c.want {
			t.Errorf("online before: %t, %v: %d changes, want %d", c.before, c.list, got, c.want)
		}
	}
}

func TestBucketsCoverOddTimes(t *testing.T) {
	always := history.Presence{Before: true}
	for _, c := range []struct {
		from, to mesh.Time
		n, want  int
	}{{0, 10, 0, 0}, {0, 10, -1, 0}, {10, 10, 5, 0}, {10, 9, 5, 0}, {0, 10, 3, 3}, {0, 2, 5, 5}, {1, 253402300799_999999, 1000, 1000}} {
		list := always.Buckets(c.from, c.to, c.n)
		if len(list) != c.want {
			t.Errorf("%d buckets from %d to %d, want %d", len(list), c.from, c.to, c.want)
		}
		for _, b := range list {
			if b.Online != 1 {
				t.Errorf("%v online from %d to %d", b.Online, c.from, c.to)
			}
		}
	}
}
