package identity

import (
	"log/slog"
	"sync"
	"time"
)

// Logged refusals per minute, for one address and for all. The second also limits how many addresses are
// remembered.
const (
	refusalsOfOne = 100
	refusalsOfAll = 1000
)

// RefusalLog decides which refusals are logged, so that strangers cannot fill the disk. It counts the rest.
type RefusalLog struct {
	log *slog.Logger

	mu         sync.Mutex
	since      time.Time      // guarded by mu, like all fields below
	logged     map[string]int // by address
	total      int
	suppressed int
}

// NewRefusalLog returns a RefusalLog that reports to log how many lines were omitted.
func NewRefusalLog(log *slog.Logger) *RefusalLog { return &RefusalLog{log: log} }

// Admit reports whether another refusal of addr should be logged. The first call after a minute logs how many
// were omitted.
func (l *RefusalLog) Admit(addr string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.since) >= time.Minute {
		if l.suppressed > 0 {
			l.log.Warn("suppressed log lines about rejected keys", "since", l.since, "suppressed", l.suppressed)
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
