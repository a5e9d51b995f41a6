package control

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"tailscale.com/types/key"
)

// How often one machine may change its nodes by registering, on this replica. Each such
// change adds a row to the audit log. A known client that requests no change costs nothing.
const (
	joinBurst, joinEvery = 30, 5 * time.Minute

	// joinForget is how often the entries of machines with a full allowance are removed.
	joinForget = time.Minute
)

// TooFast is the error for a machine that registers too often, or for a caller who presents too
// many wrong keys. It may retry after the given time.
type TooFast struct {
	After time.Duration
	Text  string
}

func (e *TooFast) Error() string {
	return fmt.Sprintf("%s; try again in %s", e.Text, e.After.Round(time.Second))
}

// joinPace limits how often each machine makes this replica commit by registering. It
// counts per machine and not per node, because an ephemeral node is deleted when it logs
// out.
type joinPace struct {
	mu        sync.Mutex
	machines  map[key.MachinePublic]*bucket // guarded by mu; a machine without an entry has its full allowance
	forgotten time.Time                     // guarded by mu; when full allowances were last removed
}

// charge takes one registration from the allowance of a machine. A logout is charged but
// never refused: there is at most one for each registration.
func (p *joinPace) charge(machine key.MachinePublic, now time.Time, logout bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.forgotten) >= joinForget {
		p.forgotten = now
		maps.DeleteFunc(p.machines, func(_ key.MachinePublic, b *bucket) bool { return b.refill(now, joinEvery) })
	}
	b, ok := p.machines[machine]
	if !ok {
		b = &bucket{at: now}
		if p.machines == nil {
			p.machines = map[key.MachinePublic]*bucket{}
		}
		p.machines[machine] = b
	}
	if b.take(now, 1, joinBurst, joinEvery) {
		return nil
	}
	if logout {
		b.used++
		return nil
	}
	return &TooFast{After: time.Duration((b.used + 1 - joinBurst) * float64(joinEvery)), Text: "this device has registered too often"}
}

// refund gives back the charge for a registration that was not committed.
func (p *joinPace) refund(machine key.MachinePublic) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b, ok := p.machines[machine]; ok {
		b.refund(1)
	}
}
