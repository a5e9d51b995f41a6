package api

import (
	"context"
	"fmt"
	"runtime"
	"sync"
)

// maxKeyDrafts is how many drafts one caller may have, including those that wait.
const maxKeyDrafts = 16

// turns limits how many drafts of a policy are evaluated at once. A large draft takes seconds
// of CPU time, which devices need too: all drafts together use at most half of the CPUs, and
// those of one caller use one.
type turns struct {
	all chan struct{}

	mu      sync.Mutex
	callers map[string]*caller // guarded by mu; only callers with drafts
}

type caller struct {
	own  chan struct{}
	here int // guarded by turns.mu; drafts being evaluated or waiting
}

func newTurns() *turns {
	return &turns{all: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), callers: map[string]*caller{}}
}

// take waits for a turn until ctx ends; done ends the turn. If the caller has too many drafts
// or ctx ends, it returns the reason instead.
func (t *turns) take(ctx context.Context, id string) (done func(), refusal string) {
	t.mu.Lock()
	c := t.callers[id]
	if c == nil {
		c = &caller{own: make(chan struct{}, 1)}
		t.callers[id] = c
	}
	if c.here >= maxKeyDrafts {
		t.mu.Unlock()
		return nil, fmt.Sprintf("this API key already has %d policy evaluations in progress on this replica, the maximum per key; wait for one to finish", maxKeyDrafts)
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
			return nil, "the request was cancelled while it was waiting"
		}
	}
	return done, ""
}
