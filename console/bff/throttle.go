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
	// maxNetworks bounds the memory of a throttle.
	maxNetworks = 4096
)

// throttle limits failed logins per source network, to spare the server. It has
// no limit across networks: strangers could exhaust that and lock administrators
// out, and a key has 256 bits, so more tries guess nothing.
type throttle struct {
	mu       sync.Mutex
	networks map[netip.Prefix]*tries // guarded by mu; at most maxNetworks
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
	known := t.networks[from]
	if known != nil && now.Sub(known.last) >= forgiveAfter {
		delete(t.networks, from)
		known = nil
	}
	if known != nil {
		if wait := known.next().Sub(now); wait > 0 {
			return wait
		}
	} else {
		known = t.add(from, now)
	}
	known.failed++
	known.last = now
	return 0
}

// add begins to count a network. It drops those that are forgiven, and if too
// many are left, the one that tried longest ago. Someone with that many networks
// is then counted from the start again, but never delays anyone else.
func (t *throttle) add(from netip.Prefix, now time.Time) *tries {
	if t.networks == nil {
		t.networks = map[netip.Prefix]*tries{}
	}
	if len(t.networks) >= maxNetworks {
		oldest, last := netip.Prefix{}, now
		for network, tried := range t.networks {
			if now.Sub(tried.last) >= forgiveAfter {
				delete(t.networks, network)
			} else if !tried.last.After(last) {
				oldest, last = network, tried.last
			}
		}
		if len(t.networks) >= maxNetworks {
			delete(t.networks, oldest)
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
