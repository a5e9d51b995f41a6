package api

import (
	"context"
	"fmt"
	"runtime"
	"sync"
)

// maxKeyDrafts is how many drafts of one caller are looked at or wait for it.
const maxKeyDrafts = 16

// turns lets callers look at drafts of a policy in turn. A large draft takes
// seconds of a processor, which devices need too: together they take at most half
// of the processors, and one caller takes one.
type turns struct {
	all chan struct{}

	mu      sync.Mutex
	callers map[string]*caller // guarded by mu; none that waits for nothing
}

type caller struct {
	own  chan struct{}
	here int // guarded by the mu of turns; those that look or wait
}

func newTurns() *turns {
	return &turns{all: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), callers: map[string]*caller{}}
}

// take waits for a turn until ctx ends; done gives it back. It says why not when a
// caller has too many.
func (t *turns) take(ctx context.Context, id string) (done func(), refusal string) {
	t.mu.Lock()
	c := t.callers[id]
	if c == nil {
		c = &caller{own: make(chan struct{}, 1)}
		t.callers[id] = c
	}
	if c.here >= maxKeyDrafts {
		t.mu.Unlock()
		return nil, fmt.Sprintf("this key asks about %d drafts of the policy here already, which is all that a key may; wait for an answer", maxKeyDrafts)
	}
	c.here++
	t.mu.Unlock()
	taken := 0
	done = func() {
		if taken == 2 {
			<-t.all
		}
		if taken >= 1 {
			<-c.own
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if c.here--; c.here == 0 {
			delete(t.callers, id)
		}
	}
	for _, turn := range []chan struct{}{c.own, t.all} {
		select {
		case turn <- struct{}{}:
			taken++
		case <-ctx.Done():
			done()
			return nil, "the request ended while it waited for its turn"
		}
	}
	return done, ""
}
