package bff

import (
	"sync"
	"time"
)

const (
	freeTries    = 5
	firstPause   = 12 * time.Second
	longestPause = time.Minute
	// forgiveAfter is how long after the last failed attempt a source starts from zero again.
	forgiveAfter = 15 * time.Minute
	// maxSources bounds the memory of a throttle.
	maxSources = 4096
)

// source is what failed logins count against: a network, or a browser in which
// somebody signed in before.
type source string

// throttle limits failed logins per source, to protect the server from load. It has
// no limit across sources, because strangers could exhaust it and lock
// administrators out. More attempts do not help an attacker: a key has 256 bits.
type throttle struct {
	mu      sync.Mutex
	sources map[source]*tries // guarded by mu; at most maxSources
}

type tries struct {
	failed int
	last   time.Time
}

// next returns when another attempt is allowed.
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

// admit counts an attempt as failed until success resets the count, or returns how long to wait if the
// attempt is not allowed. Attempts that are not allowed are not counted.
func (t *throttle) admit(from source, now time.Time) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.sources[from]
	if known != nil && now.Sub(known.last) >= forgiveAfter {
		delete(t.sources, from)
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

// add starts to count a source. It drops sources that are no longer limited and, if there are still too many,
// the one whose last attempt is the oldest. An attacker with that many networks then starts from zero again,
// but never delays anyone else.
func (t *throttle) add(from source, now time.Time) *tries {
	if t.sources == nil {
		t.sources = map[source]*tries{}
	}
	if len(t.sources) >= maxSources {
		oldest, last := source(""), now
		for each, tried := range t.sources {
			if now.Sub(tried.last) >= forgiveAfter {
				delete(t.sources, each)
			} else if !tried.last.After(last) {
				oldest, last = each, tried.last
			}
		}
		if len(t.sources) >= maxSources {
			delete(t.sources, oldest)
		}
	}
	t.sources[from] = &tries{}
	return t.sources[from]
}

// success resets the count of a source.
func (t *throttle) success(from source) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.sources, from)
}

// undo removes one attempt whose key the server could not check.
func (t *throttle) undo(from source) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.sources[from]; known != nil && known.failed > 0 {
		known.failed--
	}
}
