package stream

import "time"

// clock measures the time since it was created. Unlike the time of day, it does not jump when the clock of the machine is set.
type clock struct{ began time.Time }

func newClock() clock { return clock{time.Now()} }

// now returns nanoseconds, never zero.
func (c clock) now() int64 { return int64(time.Since(c.began)) + 1 }
