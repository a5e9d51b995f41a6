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
}

// NewAvailability begins to measure.
func NewAvailability(began time.Time) *Availability {
	return &Availability{began: began, worked: map[Service]map[int]bool{Writes: {}, Maps: {}}}
}

// Worked records that a request succeeded.
func (a *Availability) Worked(s Service, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.worked[s][a.second(at)] = true
}

func (a *Availability) second(at time.Time) int { return int(at.Sub(a.began) / time.Second) }

// Share returns the share of the whole seconds so far in which all services worked, and the longest period in
// which one of them did not.
func (a *Availability) Share(end time.Time) (share float64, longest time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	seconds := a.second(end)
	good, gap := 0, 0
	for s := range seconds {
		if a.worked[Writes][s] && a.worked[Maps][s] {
			good++
			gap = 0
			continue
		}
		gap++
		longest = max(longest, time.Duration(gap)*time.Second)
	}
	if seconds == 0 {
		return 0, 0
	}
	return float64(good) / float64(seconds), longest
}

// Text describes the availability so far, next to what is promised.
func (a *Availability) Text(end time.Time) string {
	share, longest := a.Share(end)
	return fmt.Sprintf("%.2f %% of %d seconds (promised without faults: %.1f %%), longest gap %v", 100*share, a.second(end), 100*Promised, longest)
}
