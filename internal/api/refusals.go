package api

import (
	"log/slog"
	"sync"
	"time"
)

// Lines about refused keys in a minute, from one address and from all. The
// second also bounds how many addresses are remembered.
const (
	refusalsOfOne = 100
	refusalsOfAll = 1000
)

// refusals decides which refused keys are logged, so that nobody who has none
// can fill the disk. The rest is counted; mesh_http_requests_total has them all.
type refusals struct {
	log *slog.Logger

	mu         sync.Mutex
	since      time.Time      // guarded by mu, as all below
	logged     map[string]int // by address
	total      int
	suppressed int
}

// admit says whether another one from addr is logged. The first after a minute
// tells how many were not.
func (l *refusals) admit(addr string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.since) >= time.Minute {
		if l.suppressed > 0 {
			l.log.Warn("refused keys were not all logged", "since", l.since, "suppressed", l.suppressed)
		}
		l.since, l.logged, l.total, l.suppressed = now, map[string]int{}, 0, 0
	}
	if l.total == refusalsOfAll || l.logged[addr] == refusalsOfOne {
		l.suppressed++
		return false
	}
	l.total++
	l.logged[addr]++
	return true
}
