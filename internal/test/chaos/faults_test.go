//go:build !race

package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/test/disktest"
	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

// fault is something that breaks for a while. Both functions are called by the test's own goroutine.
type fault struct {
	name       string
	lasting    time.Duration
	begin, end func()
}

// kind creates a fault for a fleet, with a random target.
type kind struct {
	name string
	// database faults do not happen at the same time.
	database bool
	make     func(*breaker) fault
}

// breaker chooses faults.
type breaker struct {
	*fleet
	random *rand.Rand
	short  bool // faults are shorter, so that one of each kind fits into a minute
	broken func(begin, end time.Time)
}

// lasting returns a random duration, and a shorter one in a short run.
func (b *breaker) lasting(least, most time.Duration) time.Duration {
	d := least + time.Duration(b.random.Int64N(int64(most-least)))
	if b.short {
		d = min(d/4, 5*time.Second)
	}
	return d
}

func (b *breaker) member() (int, *member) {
	i := b.random.IntN(len(b.members))
	return i, b.members[i]
}

func kinds() []kind {
	return []kind{
		{"replica killed", false, func(b *breaker) fault {
			i, m := b.member()
			return fault{fmt.Sprintf("replica %d killed", i), b.lasting(time.Second, 10*time.Second), m.Kill, func() { meshtest.Supervise(m.Server) }}
		}},
		{"replica stopped", false, func(b *breaker) fault {
			i, m := b.member()
			return fault{fmt.Sprintf("replica %d stopped", i), b.lasting(time.Second, 10*time.Second), m.Stop, func() { meshtest.Supervise(m.Server) }}
		}},
		{"replica frozen", false, func(b *breaker) fault {
			i, m := b.member()
			return fault{
				fmt.Sprintf("replica %d frozen", i), b.lasting(20*time.Second, 20*time.Second+1),
				func() { m.Signal(syscall.SIGSTOP) }, func() { m.Signal(syscall.SIGCONT) },
			}
		}},
		{"nodes cut off from a replica", false, func(b *breaker) fault {
			i, m := b.member()
			return fault{fmt.Sprintf("nodes cut off from replica %d", i), b.lasting(5*time.Second, 25*time.Second), m.front.Freeze, m.front.Thaw}
		}},
		{"replicas cut off from a replica", false, func(b *breaker) fault {
			i, m := b.member()
			return fault{fmt.Sprintf("replicas cut off from replica %d", i), b.lasting(5*time.Second, 25*time.Second), m.peers.Freeze, m.peers.Thaw}
		}},
		{"balancer restarted", false, func(b *breaker) fault {
			return fault{"balancer restarted", time.Second, b.balancer.Stop, func() { b.balancer.Resume(b.t) }}
		}},
		{"relay killed", false, func(b *breaker) fault {
			return fault{"relay killed", b.lasting(2*time.Second, 15*time.Second), b.relay.Stop, func() { b.relay.Resume(b.t) }}
		}},
		{"replica cut off from the database", true, func(b *breaker) fault {
			i, m := b.member()
			return fault{
				fmt.Sprintf("replica %d cut off from the database, silently", i), b.lasting(5*time.Second, 30*time.Second),
				func() { m.database[0].Freeze(); m.database[1].Freeze() }, func() { m.database[0].Thaw(); m.database[1].Thaw() },
			}
		}},
		{"replica refused by the database", true, func(b *breaker) fault {
			i, m := b.member()
			return fault{
				fmt.Sprintf("replica %d refused by the database", i), b.lasting(3*time.Second, 20*time.Second),
				func() { m.database[0].Stop(); m.database[1].Stop() }, func() { m.database[0].Resume(b.t); m.database[1].Resume(b.t) },
			}
		}},
		{"standby cut off from the primary", true, func(b *breaker) fault {
			link := b.db.links[b.db.primary.Load()]
			return fault{"standby cut off from the primary", b.lasting(4*time.Second, 15*time.Second), link.Freeze, link.Thaw}
		}},
		{"primary killed, standby promoted", true, func(b *breaker) fault {
			return fault{"primary killed, standby promoted", b.lasting(2*time.Second, 8*time.Second), b.db.failOver, b.db.rebuild}
		}},
		{"disk of the primary full", true, func(b *breaker) fault {
			var filler string
			return fault{
				"disk of the primary full", b.lasting(4*time.Second, 15*time.Second),
				func() { filler = disktest.Fill(b.t, b.db.disks[b.db.primary.Load()]) },
				func() { b.must(os.Remove(filler)); b.db.revive() },
			}
		}},
		{"clock of the database moved", true, func(b *breaker) fault {
			by := time.Hour
			if b.random.IntN(2) == 0 {
				by = -by
			}
			return fault{
				fmt.Sprintf("clock of the database moved by %v", by), b.lasting(4*time.Second, 15*time.Second),
				func() { b.db.moveClock(by) }, func() { b.db.moveClock(0); b.db.revive() },
			}
		}},
	}
}

// deck returns all kinds in random order.
func (b *breaker) deck() []kind {
	all := kinds()
	b.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// wreak breaks one thing after the other, and sometimes two at once, until the time is over and every kind of
// fault has happened. It returns how often each happened, and when the last one was repaired.
func (b *breaker) wreak(lasting time.Duration, log func(format string, args ...any)) (counts map[string]int, healed time.Time) {
	counts = map[string]int{}
	deadline := time.Now().Add(lasting)
	for len(counts) < len(kinds()) || time.Now().Before(deadline) {
		deck := b.deck()
		for len(deck) > 0 && (len(counts) < len(kinds()) || time.Now().Before(deadline)) {
			chosen := deck[:1]
			deck = deck[1:]
			if len(deck) > 0 && !chosen[0].database && deck[0].database && b.random.IntN(2) == 0 {
				chosen, deck = []kind{chosen[0], deck[0]}, deck[1:]
			}
			b.breakAll(chosen, counts, log)
			healed = time.Now()
			<-time.After(b.lasting(3*time.Second, 8*time.Second))
		}
	}
	return counts, healed
}

// breakAll lets faults begin in order and end in the opposite order.
func (b *breaker) breakAll(chosen []kind, counts map[string]int, log func(format string, args ...any)) {
	longest, began := time.Duration(0), time.Now()
	var faults []fault
	for _, k := range chosen {
		counts[k.name]++
		f := k.make(b)
		faults = append(faults, f)
		longest = max(longest, f.lasting)
		log("%s, for %v", f.name, f.lasting.Round(100*time.Millisecond))
		f.begin()
	}
	<-time.After(longest)
	for i := range faults {
		faults[len(faults)-1-i].end()
	}
	b.broken(began, time.Now())
	log("repaired")
}
