package wire

import (
	"context"
	"time"

	"tailscale.com/control/controlbase"
)

const (
	// leaveEvery and leaveChunk make a hundred connections a second: as many as
	// another replica takes without others noticing.
	leaveEvery = 100 * time.Millisecond
	leaveChunk = 10
	// drainChunk is larger: a service that stops has little time.
	drainChunk = 200
)

// Run sends clients to other replicas, gently, for as long as Config.Leave says
// so, until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	if s.config.Leave == nil {
		return nil
	}
	tick := time.NewTicker(leaveEvery)
	defer tick.Stop()
	told := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		leave := s.config.Leave()
		if leave && !told {
			s.config.Log.Warn("this replica is cut off from the database: sending its clients to others", "connections", s.connections())
		}
		if told = leave; leave {
			s.closeSome(leaveChunk)
		}
	}
}

// Drain ends all connections, not all at once as long as ctx lives, and waits
// for those who serve them. No new ones are taken.
func (s *Server) Drain(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	tick := time.NewTicker(leaveEvery)
	defer tick.Stop()
	for s.closeSome(drainChunk) > 0 {
		select {
		case <-ctx.Done():
			s.Close()
			return
		case <-tick.C:
		}
	}
	s.served.Wait()
}

// closeSome ends at most limit connections and returns how many are left. Who
// does not read can delay the end of its connection, but nobody else's work.
func (s *Server) closeSome(limit int) (left int) {
	s.mu.Lock()
	var some []*controlbase.Conn
	for c := range s.open {
		if len(some) == limit {
			break
		}
		some = append(some, c)
		delete(s.open, c)
	}
	left = len(s.open)
	s.mu.Unlock()
	for _, c := range some {
		_ = c.Close() // ended already, if it fails
	}
	return left
}
