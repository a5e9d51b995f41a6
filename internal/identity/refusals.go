package identity

import (
	"log/slog"
	"sync"
	"time"
)

// Lines about refusals in a minute, for one address and for all. The second
// also bounds how many addresses are remembered.
const (
	refusalsOfOne = 100
	refusalsOfAll = 1000
)

// RefusalLog decides which refusals are logged, so that nobody who is let in
// nowhere can fill the disk. The rest is counted.
type RefusalLog struct {
	log *slog.Logger

	mu         sync.Mutex
	since      time.Time      // guarded by mu, as all below
	logged     map[string]int // by address
	total      int
	suppressed int
}

// NewRefusalLog returns one that tells log how many lines were left out.
func NewRefusalLog(log *slog.Logger) *RefusalLog { return &RefusalLog{log: log} }

// Admit says whether another refusal of addr is logged. The first after a minute
// tells how many were not.
func (l *RefusalLog) Admit(addr string) bool {
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
