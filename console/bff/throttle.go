package bff

import (
	"net/netip"
	"sync"
	"time"
)

const (
	freeTries    = 5
	firstPause   = 12 * time.Second
	longestPause = time.Minute
	// forgiveAfter is when nothing is left of failed tries.
	forgiveAfter = 15 * time.Minute

	triesPerMinute = 30 // of all together
)

// throttle slows down those who guess keys.
type throttle struct {
	mu       sync.Mutex
	networks map[netip.Prefix]*tries // guarded by mu; at most triesPerMinute for each minute of forgiveAfter
	minute   time.Time               // guarded by mu; when the count of all began
	count    int                     // guarded by mu
}

type tries struct {
	failed int
	last   time.Time
}

// next is when another try is allowed.
func (t *tries) next() time.Time {
	if t.failed < freeTries {
		return t.last
	}
	pause := firstPause
	for i := freeTries; i < t.failed && pause < longestPause; i++ {
		pause *= 2
	}
	return t.last.Add(min(pause, longestPause))
}

// admit counts a try as failed until success takes that back, and returns for how
// long to wait when it may not be made. Tries that may not be made count nothing.
func (t *throttle) admit(from netip.Prefix, now time.Time) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.minute) >= time.Minute {
		t.minute, t.count = now, 0
	}
	known := t.networks[from]
	if known != nil && now.Sub(known.last) >= forgiveAfter {
		delete(t.networks, from)
		known = nil
	}
	if known != nil {
		wait = known.next().Sub(now)
	}
	if t.count >= triesPerMinute {
		wait = max(wait, t.minute.Add(time.Minute).Sub(now))
	}
	if wait > 0 {
		return wait
	}
	t.count++
	if known == nil {
		known = t.add(from, now)
	}
	known.failed++
	known.last = now
	return 0
}

// add begins to count a network, and forgets those that are forgiven: with the
// limit of all together that bounds how many there are.
func (t *throttle) add(from netip.Prefix, now time.Time) *tries {
	if t.networks == nil {
		t.networks = map[netip.Prefix]*tries{}
	}
	for network, tried := range t.networks {
		if now.Sub(tried.last) >= forgiveAfter {
			delete(t.networks, network)
		}
	}
	t.networks[from] = &tries{}
	return t.networks[from]
}

// success takes back what was counted against a network.
func (t *throttle) success(from netip.Prefix) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.networks, from)
}

// undo takes back one try that the service could not judge.
func (t *throttle) undo(from netip.Prefix) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.networks[from]; known != nil && known.failed > 0 {
		known.failed--
	}
}
