package stream

import (
	"sync/atomic"
	"time"
)

// burst counts full maps. While many of them are sent, memory grows to several times of what idle streams need. The
// garbage collector alone would keep it for minutes.
type burst struct {
	fulls atomic.Int64 // sent since memory was last returned
	last  atomic.Int64 // when, by the clock of the hub
}

const (
	// manyFulls is how many full maps make a burst, and burstPause for how long none was sent when it is over.
	manyFulls  = 64
	burstPause = 5 * time.Second
)

func (b *burst) add(now int64) {
	b.last.Store(now)
	b.fulls.Add(1)
}

// isOver reports once that a burst is over.
func (b *burst) isOver(now int64) bool {
	if b.fulls.Load() < manyFulls || now-b.last.Load() < int64(burstPause) {
		return false
	}
	b.fulls.Store(0)
	return true
}
