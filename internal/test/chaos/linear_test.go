package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/chaos"
)

// goodHistory is what callers see of registers that work: operations overlap, and each takes effect at some
// moment between its request and its response.
func goodHistory(seed uint64) (history []chaos.Operation) {
	random := rand.New(rand.NewPCG(seed, 0))
	values, revision := map[string]string{}, int64(0)
	for i := range int64(400) {
		moment := 100 * (i + 1)
		o := chaos.Operation{
			Client: int(i), Register: fmt.Sprint("node ", random.IntN(4)), Write: random.IntN(2) == 0,
			Call: moment - random.Int64N(500), Return: moment + 1 + random.Int64N(500),
		}
		if o.Write {
			revision++
			values[o.Register] = fmt.Sprint("value ", i)
		}
		o.Value, o.Revision = values[o.Register], revision
		if o.Write && random.IntN(20) == 0 { // the response was lost
			o.Return, o.Revision = 0, 0
		}
		history = append(history, o)
	}
	return history
}

func judge(history []chaos.Operation) []chaos.Finding {
	return append(chaos.Linearizable(history, time.Minute), chaos.Revisions(history)...)
}

func TestGoodHistoryIsAccepted(t *testing.T) {
	for seed := range uint64(20) {
		if found := judge(goodHistory(seed)); len(found) > 0 {
			t.Errorf("seed %d: %v", seed, found)
		}
	}
}

// last returns the last operation that meets a condition, which must exist.
func last(t *testing.T, history []chaos.Operation, wanted func(chaos.Operation) bool) *chaos.Operation {
	t.Helper()
	for i := range slices.Backward(history) {
		if wanted(history[i]) {
			return &history[i]
		}
	}
	t.Fatal("no operation meets the condition")
	return nil
}

func TestDoctoredHistoryIsFound(t *testing.T) {
	acknowledged := func(o chaos.Operation) bool { return o.Write && o.Return != 0 }
	read := func(o chaos.Operation) bool { return !o.Write && o.Value != "" }
	for name, doctor := range map[string]func(*testing.T, []chaos.Operation) []chaos.Operation{
		"an acknowledged write is lost": func(t *testing.T, h []chaos.Operation) []chaos.Operation {
			w := last(t, h, acknowledged)
			before := last(t, h, func(o chaos.Operation) bool {
				return acknowledged(o) && o.Register == w.Register && o.Return < w.Call
			})
			return append(h, chaos.Operation{Register: w.Register, Value: before.Value, Call: 1e6, Return: 1e6 + 1, Revision: 1e6})
		},
		"a write is acknowledged early": func(t *testing.T, h []chaos.Operation) []chaos.Operation {
			h = append(h, chaos.Operation{Register: "node 0", Write: true, Value: "early", Call: 1e6, Return: 1e6 + 1, Revision: 1e6})
			return append(h, chaos.Operation{Register: "node 0", Value: "stale", Call: 1e6 + 2, Return: 1e6 + 3, Revision: 1e6})
		},
		"a write is executed twice": func(t *testing.T, h []chaos.Operation) []chaos.Operation {
			for i, value := range []string{"once", "newer", "once"} {
				at := int64(1e6 + 10*i)
				if i < 2 {
					h = append(h, chaos.Operation{Register: "node 0", Write: true, Value: value, Call: at, Return: at + 1, Revision: at})
				}
				h = append(h, chaos.Operation{Register: "node 0", Value: value, Call: at + 2, Return: at + 3, Revision: at})
			}
			return h
		},
		"a read returns what nobody wrote": func(t *testing.T, h []chaos.Operation) []chaos.Operation {
			last(t, h, read).Value = "never written"
			return h
		},
		"a read ignores its revision": func(t *testing.T, h []chaos.Operation) []chaos.Operation {
			last(t, h, read).Revision = 1
			return h
		},
		"a revision is issued again": func(t *testing.T, h []chaos.Operation) []chaos.Operation {
			w := last(t, h, acknowledged)
			return append(h, chaos.Operation{Register: w.Register, Write: true, Value: "again", Call: 1e6, Return: 1e6 + 1, Revision: w.Revision})
		},
	} {
		t.Run(name, func(t *testing.T) {
			if found := judge(doctor(t, goodHistory(7))); len(found) == 0 {
				t.Error("nothing was found")
			}
		})
	}
}

func TestLostAndDoubledObjectsAreFound(t *testing.T) {
	created := []chaos.Issue{{Name: "ada", ID: "1"}, {Name: "bob", ID: "2"}, {Name: "eve", ID: "3"}}
	deleted := map[string]bool{"eve": true}
	for name, final := range map[string][]chaos.Issue{
		"":                      {{Name: "ada", ID: "1"}, {Name: "bob", ID: "2"}},
		"lost":                  {{Name: "ada", ID: "1"}},
		"created again":         {{Name: "ada", ID: "1"}, {Name: "bob", ID: "4"}},
		"ID given to another":   {{Name: "ada", ID: "1"}, {Name: "bob", ID: "2"}, {Name: "dan", ID: "3"}},
		"two of the same thing": {{Name: "ada", ID: "1"}, {Name: "bob", ID: "2"}, {Name: "bob", ID: "2"}},
	} {
		if found := chaos.Kept(created, deleted, final); (len(found) > 0) != (name != "") {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestAvailabilityCountsOnlySecondsInWhichEverythingWorks(t *testing.T) {
	began := time.Unix(1000, 0)
	a := chaos.NewAvailability(began)
	for s := range 10 {
		if s != 3 && s != 4 {
			a.Worked(chaos.Writes, began.Add(time.Duration(s)*time.Second))
		}
		if s != 4 && s != 8 {
			a.Worked(chaos.Maps, began.Add(time.Duration(s)*time.Second+999*time.Millisecond))
		}
	}
	a.Broken(began.Add(3500*time.Millisecond), began.Add(5*time.Second))
	got := a.Shares(began.Add(10*time.Second + 500*time.Millisecond))
	want := chaos.Shares{All: 0.7, Calm: 6.0 / 7, Seconds: [2]int{10, 7}, Longest: 2 * time.Second}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
