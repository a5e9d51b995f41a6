package store

import (
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Clock is a reading of the database's clock.
type Clock struct {
	// Now is the time that it showed.
	Now mesh.Time
	// Ahead is the minimum by which it is ahead of this machine's clock. A difference within the uncertainty
	// of the round trip counts as zero. Negative means behind.
	Ahead time.Duration
	// Read is when it was read. It is zero if the database has no clock of its
	// own and Now is this machine's time.
	Read time.Time
}

// LocalClock returns the clock of a database that has none of its own.
func LocalClock() Clock { return Clock{Now: mesh.TimeOf(time.Now())} }

// ReadClock returns a clock that showed now at some time between sent and got.
func ReadClock(now mesh.Time, sent, got time.Time) Clock {
	c := Clock{Now: now, Read: sent.Add(got.Sub(sent) / 2)}
	if early := now.Sub(mesh.TimeOf(got)); early > 0 {
		c.Ahead = early
	}
	if late := now.Sub(mesh.TimeOf(sent)); late < 0 {
		c.Ahead = late
	}
	return c
}

// At returns the database's time at a later moment. It extrapolates the reading
// with this machine's monotonic clock, so setting this machine's time has no
// effect.
func (c Clock) At(t time.Time) mesh.Time {
	if c.Read.IsZero() {
		return mesh.TimeOf(t)
	}
	return c.Now.Add(max(0, t.Sub(c.Read)))
}
