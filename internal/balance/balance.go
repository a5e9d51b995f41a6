// Package balance decides how many clients a replica sends to the other replicas: all of them while it is drained for
// maintenance, or some if it has many more than the others, as after the restart of another replica. It does not close
// connections and does not choose who leaves: the caller does, with what Next returns. Which replica a client connects to is up to
// the load balancer.
//
// Definitions. The share of a replica is the average number of nodes over all replicas that are not draining. Its excess is the
// number of its nodes above the share.
package balance

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
)

const (
	// notice is how long load balancers get to notice that a draining replica is not ready, before its first client is
	// disconnected.
	notice = 5 * time.Second
	// stay is how long a client that comes back to a draining replica is served before it is disconnected again.
	stay = 10 * time.Second
	// settle is how long the replicas must be unchanged before a replica sends clients away. It is longer than a restart, so that
	// a rolling upgrade does not move clients more often than necessary.
	settle = 30 * time.Second
	// A smaller excess than minExcess, or than an eighth of the share, is not worth reconnecting for.
	minExcess, minPart = 20, 8
	// Drained clients move ten times faster than the rest, because somebody waits for them: with a call of Next every 100 ms, a
	// hundred per second, as many as another replica can accept without slowing down its own clients.
	drainStep, moveStep = 10, 1
)

// Config configures a Balancer.
type Config struct {
	// Self is the ID of this replica.
	Self string
	// Replicas returns the newest reports of all replicas that are alive.
	Replicas func() []ledger.Report
	// Held returns the number of nodes connected to this replica.
	Held func() int
	Log  *slog.Logger
}

// Balancer decides for one replica.
type Balancer struct {
	config Config

	mu       sync.Mutex
	draining time.Time // since when; zero if it is not
	replicas string    // the IDs of the replicas that share the nodes
	decideAt time.Time // zero if nobody is to be moved until the replicas change
	excess   int       // when it was last decided, or 0
	left     int       // how many clients are still to be moved
}

// New returns a balancer that moves nobody until the replicas change or Drain is called.
func New(c Config) *Balancer { return &Balancer{config: c} }

// Drain starts or ends draining. It returns whether that is a change.
func (b *Balancer) Drain(on bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case on == !b.draining.IsZero():
		return false
	case on:
		b.draining = time.Now()
	default:
		b.draining = time.Time{}
	}
	return true
}

// Draining reports whether this replica is being drained.
func (b *Balancer) Draining() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.draining.IsZero()
}

// Others returns the number of other replicas that can take clients.
func (b *Balancer) Others() int {
	n := 0
	for _, r := range b.config.Replicas() {
		if string(r.ID) != b.config.Self && !r.Draining {
			n++
		}
	}
	return n
}

// Next returns how many clients to disconnect now, of those that connected before the given time. It is called every 100 ms.
func (b *Balancer) Next() (clients int, before time.Time) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.draining.IsZero() {
		if now.Sub(b.draining) < notice || b.Others() == 0 {
			return 0, now
		}
		if before = now.Add(-stay); before.Before(b.draining) {
			before = b.draining
		}
		return drainStep, before
	}
	ids, share := b.shares()
	if ids != b.replicas { // a replica that was to take clients may be gone
		b.replicas, b.decideAt, b.excess, b.left = ids, now.Add(settle), 0, 0
	}
	if b.left == 0 {
		b.decide(now, share)
	}
	clients = min(b.left, moveStep)
	b.left -= clients
	if clients > 0 && b.left == 0 {
		b.decideAt = now.Add(settle) // to see whether it helped
	}
	return clients, now
}

// decide sets how many clients to move, once the replicas have been the same for some time. It repeats this as long as the excess
// shrinks: a load balancer that chooses replicas at random sends some clients back here, and one that always sends a client to the
// same replica sends back all of them, which the replica must not repeat forever.
func (b *Balancer) decide(now time.Time, share int) {
	if b.decideAt.IsZero() || now.Before(b.decideAt) {
		return
	}
	excess := b.config.Held() - share
	if excess < max(minExcess, share/minPart) {
		b.excess, b.decideAt = 0, now.Add(settle) // what other replicas reported may be outdated
		return
	}
	b.decideAt = time.Time{}
	if b.excess > 0 && excess > b.excess*9/10 {
		return
	}
	b.excess, b.left = excess, excess
	b.config.Log.Info("moving nodes to replicas that have fewer", "nodes", excess, "share", share)
}

// shares returns the replicas that share the nodes, and how many nodes each of them should have.
func (b *Balancer) shares() (ids string, share int) {
	var all []string
	nodes := b.config.Held()
	for _, r := range b.config.Replicas() {
		if r.Draining {
			continue
		}
		all = append(all, string(r.ID))
		if string(r.ID) != b.config.Self {
			nodes += r.Held
		}
	}
	slices.Sort(all)
	return strings.Join(all, " "), nodes / max(1, len(all))
}
