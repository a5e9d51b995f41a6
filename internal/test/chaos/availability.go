package chaos

import (
	"fmt"
	"sync"
	"time"
)

// Promised is the share of seconds in which the specification promises that writes and maps work.
const Promised = 0.999

// Service is something that a caller needs.
type Service string

// The services that are measured.
const (
	Writes Service = "write"
	Maps   Service = "map"
)

// Availability counts in which seconds each service worked for somebody.
type Availability struct {
	began time.Time

	mu     sync.Mutex
	worked map[Service]map[int]bool // guarded by mu; by second
	broken map[int]bool             // guarded by mu; seconds in which something was broken on purpose
}

// NewAvailability begins to measure.
func NewAvailability(began time.Time) *Availability {
	return &Availability{began: began, worked: map[Service]map[int]bool{Writes: {}, Maps: {}}, broken: map[int]bool{}}
}

// Worked records that a request succeeded.
func (a *Availability) Worked(s Service, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.worked[s][a.second(at)] = true
}

// Broken records that something was broken on purpose.
func (a *Availability) Broken(begin, end time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for s := a.second(begin); s <= a.second(end); s++ {
		a.broken[s] = true
	}
}

func (a *Availability) second(at time.Time) int { return int(at.Sub(a.began) / time.Second) }

// Shares describes how often all services worked.
type Shares struct {
	All     float64       // share of all whole seconds
	Calm    float64       // share of those in which nothing was broken on purpose
	Seconds [2]int        // how many there are of each
	Longest time.Duration // the longest period in which a service did not work
}

// Shares describes the whole seconds so far.
func (a *Availability) Shares(end time.Time) (s Shares) {
	a.mu.Lock()
	defer a.mu.Unlock()
	good, gap := [2]int{}, 0
	for second := range a.second(end) {
		works, calm := a.worked[Writes][second] && a.worked[Maps][second], !a.broken[second]
		for i, counts := range []bool{true, calm} {
			if counts {
				s.Seconds[i]++
			}
			if counts && works {
				good[i]++
			}
		}
		if gap++; works {
			gap = 0
		}
		s.Longest = max(s.Longest, time.Duration(gap)*time.Second)
	}
	s.All = float64(good[0]) / float64(max(1, s.Seconds[0]))
	s.Calm = float64(good[1]) / float64(max(1, s.Seconds[1]))
	return s
}

// Text describes the availability so far, next to what is promised.
func (a *Availability) Text(end time.Time) string {
	s := a.Shares(end)
	return fmt.Sprintf("%.2f %% of %d seconds, and %.2f %% of the %d seconds in which nothing was broken (promised: %.1f %%); longest gap %v",
		100*s.All, s.Seconds[0], 100*s.Calm, s.Seconds[1], 100*Promised, s.Longest)
}
