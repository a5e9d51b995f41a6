package wire

import (
	"context"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"tailscale.com/control/controlbase"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/periodic"
)

const (
	// With leaveEvery and leaveChunk, a hundred connections are closed a
	// second, as many as another replica can accept without slowing down its
	// own clients. With more than five hundred connections, the rate is high
	// enough to finish within leaveWithin, because the other replicas mark the
	// nodes offline soon after.
	leaveEvery  = 100 * time.Millisecond
	leaveChunk  = 10
	leaveWithin = 5 * time.Second
	// drainChunk is larger: a single server that shuts down has little time, and nobody else
	// accepts its clients.
	drainChunk = 200
)

// mustRefuse reports whether this replica must not serve its state. After a pause of this process it waits
// until the log has been read, for at most two seconds: usually nothing has changed, and no client needs to
// be refused.
func (s *Server) mustRefuse(ctx context.Context) bool {
	_ = s.config.Ledger.Verified(ctx) // the fence knows whether other replicas have changed anything
	return s.config.Closed()
}

// refuseClosed responds to requests while this replica must not serve. Clients retry, and the load balancer
// sends them to another replica.
func refuseClosed(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "2")
	http.Error(w, "this replica cannot reach the database; connect to another replica", http.StatusServiceUnavailable)
}

// Run sends clients to other replicas, until ctx ends: all of them, gradually and once, when Config.Leave
// returns true, and otherwise as many as Config.Move returns. Clients that come back after Leave are served unless
// Config.Closed returns true: if all replicas are cut off, a slightly outdated map is better than none.
func (s *Server) Run(ctx context.Context) error {
	var since time.Time // when Leave first returned true
	var chunk int
	oldest := 0 // the number of the oldest key that the server accepts
	return periodic.Run(ctx, leaveEvery, func() {
		if all := s.config.Noise.All(); all[len(all)-1].Number != oldest {
			oldest = all[len(all)-1].Number
			s.closeRetired()
		}
		switch leave := s.config.Leave(); {
		case !leave:
			since = time.Time{}
			if n, before := s.config.Move(); n > 0 {
				s.closeSome(n, before)
			}
		case since.IsZero():
			since = time.Now()
			chunk = s.gentleChunk()
			s.config.Log.Warn("replica cut off from the database, moving its clients to other replicas", "connections", s.connections())
		default:
			s.closeSome(chunk, since)
		}
	})
}

// gentleChunk returns how many connections to close every leaveEvery, if other replicas accept the clients.
func (s *Server) gentleChunk() int {
	return max(leaveChunk, s.connections()/int(leaveWithin/leaveEvery)+1)
}

// Drain closes all connections, gradually as long as ctx lives, and waits for the goroutines that serve them.
// New connections are refused.
func (s *Server) Drain(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	chunk := drainChunk
	if len(s.config.Ledger.Cluster().Replicas()) > 1 {
		chunk = s.gentleChunk()
	}
	tick := time.NewTicker(leaveEvery)
	defer tick.Stop()
	for s.closeSome(chunk, time.Now()) > 0 {
		select {
		case <-ctx.Done():
			s.Close()
			return
		case <-tick.C:
		}
	}
	s.served.Wait()
}

// closeSome closes at most limit connections that were opened before the given time, and returns how many are
// open. It closes them in parallel: over TLS, a client that does not read delays the close of its connection
// by five seconds.
func (s *Server) closeSome(limit int, before time.Time) (left int) {
	return s.closeWhere(limit, func(o opened) bool { return o.at.Before(before) })
}

// closeRetired closes connections that were opened with a key that the server no longer accepts: whoever has that key can read
// and change what such a client sends.
func (s *Server) closeRetired() {
	s.closeWhere(math.MaxInt, func(o opened) bool { return !s.accepts(o.noise) })
}

// accepts reports whether the server still accepts the key with a number.
func (s *Server) accepts(noise int) bool {
	return slices.ContainsFunc(s.config.Noise.All(), func(k identity.NoiseKey) bool { return k.Number == noise })
}

func (s *Server) closeWhere(limit int, match func(opened) bool) (left int) {
	s.mu.Lock()
	var some []*controlbase.Conn
	for c, o := range s.open {
		if len(some) == limit {
			break
		}
		if match(o) {
			some = append(some, c)
			delete(s.open, c)
		}
	}
	left = len(s.open)
	s.mu.Unlock()
	var closing sync.WaitGroup
	for _, c := range some {
		closing.Go(func() { _ = c.Close() }) // fails only if it is closed already
	}
	closing.Wait()
	return left
}
