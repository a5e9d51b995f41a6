package control

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// RelayProbe is the result of this replica's last probe of a relay.
type RelayProbe struct {
	At mesh.Time
	// Place is where the relay was.
	Place  mesh.RelayPlace
	Checks []RelayCheck
	// Failures is the number of probes in a row that failed.
	Failures int
}

// RelayCheck is the result of one check of a probe. Problem is empty if the check passed.
type RelayCheck struct {
	Name    string
	Latency time.Duration
	Problem string
}

// alarm is how many probes in a row must fail before Warnings mentions a relay.
const alarm = 2

// Failed returns the names of the checks that failed.
func (p RelayProbe) Failed() (names []string) {
	for _, c := range p.Checks {
		if c.Problem != "" {
			names = append(names, c.Name)
		}
	}
	return names
}

// Latency returns the shortest latency of the checks that passed; zero if none did.
func (p RelayProbe) Latency() time.Duration {
	var shortest time.Duration
	for _, c := range p.Checks {
		if c.Problem == "" && (shortest == 0 || c.Latency < shortest) {
			shortest = c.Latency
		}
	}
	return shortest
}

// relayProbes holds the last probe of each relay.
type relayProbes struct {
	mu   sync.Mutex
	last map[mesh.RelayID]RelayProbe // guarded by mu
}

// Probed records the result of a probe. It returns false if the relay has been deleted, or is elsewhere now.
func (s *Relays) Probed(id mesh.RelayID, p RelayProbe) bool {
	r, ok := s.ledger.World().Relays.Get(id)
	s.probes.mu.Lock()
	defer s.probes.mu.Unlock()
	if !ok {
		delete(s.probes.last, id)
		return false
	}
	if r.Place != p.Place {
		return false
	}
	if s.probes.last == nil {
		s.probes.last = map[mesh.RelayID]RelayProbe{}
	}
	p.At = s.ledger.Now()
	s.probes.last[id] = p
	return true
}

// LastProbe returns the result of this replica's last probe of a relay. ok is false if there is none of the place where the
// relay is now.
func (s *Relays) LastProbe(r *mesh.Relay) (p RelayProbe, ok bool) {
	s.probes.mu.Lock()
	defer s.probes.mu.Unlock()
	p, ok = s.probes.last[r.ID]
	return p, ok && p.Place == r.Place
}

// Unreachable reports whether the last probes of a relay that nodes get have failed.
func (s *Relays) Unreachable(r *mesh.Relay) bool {
	p, ok := s.LastProbe(r)
	return ok && r.Offered() && p.Failures >= alarm
}

// Warnings returns why devices do not get the embedded relay, and what is wrong with relays that they get. Strangers can read
// it, so it contains no addresses.
func (s *Relays) Warnings() (list []string) {
	if refusal := s.refusal.Load(); refusal != nil {
		list = append(list, refusal.Error())
	}
	for r := range s.ledger.World().Relays.All() {
		p, _ := s.LastProbe(r)
		switch {
		case s.Unreachable(r):
			list = append(list, fmt.Sprintf("relay %s fails the checks %s, so that devices may not be able to use it. To see why, run: fairlead relays show %s. If it does not return, run: fairlead relays drain %s",
				r.Name, strings.Join(slices.Sorted(slices.Values(p.Failed())), ", "), r.Name, r.Name))
		case r.Offered() && s.State(r) == RelayOffline:
			list = append(list, fmt.Sprintf("relay %s serves devices, but has not reported for %v: check the log of the relay, and that it can connect to the server", r.Name, RelaySilence))
		}
	}
	return list
}
