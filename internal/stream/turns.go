package stream

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// turns lets only a few of the streams that a change woke send their update at a time, in the order in which it woke them. If all
// of them ran at once, everything else would have to wait for thousands of goroutines.
type turns struct {
	clock clock
	busy  atomic.Bool // whether a stream has a turn that counts

	mu      sync.Mutex
	waiting []*session  // guarded by mu; a queue, which may contain streams that have ended
	taken   []*session  // guarded by mu; the streams whose turn counts, at most maxUpdates
	now     int         // guarded by mu; the number of ticks
	ticker  *time.Timer // guarded by mu; nil until a stream first had a turn
	ticking bool        // guarded by mu
}

// maxTicks is after how many ticks a stream is overtaken even if it does not wait for its client. On a busy machine, it may only wait
// for a CPU.
const maxTicks = 20

// turn is a stream's position in turns. It changes only while turns.mu is held.
type turn = int32

const (
	noTurn    turn = iota
	queued         // it waits
	granted        // it may send an update, and counts toward the limit
	overtaken      // the same, but it does not count
	ended          // the stream is over
)

// request gets a stream a turn, unless it waits for one already. A stream that has a turn gets another one after it.
func (t *turns) request(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.turn.Load() == noTurn {
		t.add(s)
		t.grant()
	}
}

// add adds a stream to the queue. t.mu must be held.
func (t *turns) add(s *session) {
	s.turn.Store(queued)
	t.waiting = append(t.waiting, s)
}

// grant grants turns to waiting streams, up to the limit, and wakes them. t.mu must be held.
func (t *turns) grant() {
	for len(t.taken) < maxUpdates && len(t.waiting) > 0 {
		s := t.waiting[0]
		t.waiting[0] = nil
		if t.waiting = t.waiting[1:]; len(t.waiting) == 0 {
			t.waiting = nil
		}
		if s.turn.Load() != queued {
			continue
		}
		s.turn.Store(granted)
		s.turnSince = t.now
		t.taken = append(t.taken, s)
		s.wake()
	}
	t.busy.Store(len(t.taken) > 0)
	if len(t.taken) > 0 && !t.ticking {
		t.ticking = true
		if t.ticker == nil {
			t.ticker = time.AfterFunc(updateLimit, t.tick)
		} else {
			t.ticker.Reset(updateLimit)
		}
	}
}

// hasTurn reports whether a stream may send an update.
func (s *session) hasTurn() bool {
	turn := s.turn.Load()
	return turn == granted || turn == overtaken
}

// giveBack ends the turn of a stream, if it has one. If the stream has fallen behind meanwhile, it waits for another one.
func (t *turns) giveBack(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !s.hasTurn() {
		return
	}
	t.release(s)
	s.turn.Store(noTurn)
	if s.behind.Load() != nil {
		t.add(s)
	}
	t.grant()
}

// letPass lets others go first, although the stream keeps its turn.
func (t *turns) letPass(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.hasTurn() {
		t.release(s)
		s.turn.Store(overtaken)
		t.grant()
	}
}

// leave removes a stream for good.
func (t *turns) leave(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.release(s)
	s.turn.Store(ended)
	t.grant()
}

// release makes a stream not count toward the limit any more. t.mu must be held.
func (t *turns) release(s *session) {
	if i := slices.Index(t.taken, s); i >= 0 {
		last := len(t.taken) - 1
		t.taken[i] = t.taken[last]
		t.taken[last] = nil
		t.taken = t.taken[:last]
	}
}

// tick lets others overtake streams that wait for their clients, or have had their turn for very long.
func (t *turns) tick() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now++
	late := t.clock.now() - int64(updateLimit) // writes that began earlier
	t.taken = slices.DeleteFunc(t.taken, func(s *session) bool {
		blocked := s.blocked.Load()
		overdue := blocked != 0 && blocked < late || t.now-s.turnSince > maxTicks
		if overdue {
			s.turn.Store(overtaken)
		}
		return overdue
	})
	t.ticking = false
	t.grant()
}
