package wire

import (
	"context"
	"net/http"
	"sync"
	"time"

	"tailscale.com/control/controlbase"

	"github.com/fairlead-mesh/fairlead/internal/periodic"
)

const (
	// leaveEvery and leaveChunk make a hundred connections a second, as many as
	// another replica can take without slowing down others. With more than five
	// hundred connections, the rate is whatever finishes within leaveWithin,
	// because the other replicas mark the nodes offline soon after.
	leaveEvery  = 100 * time.Millisecond
	leaveChunk  = 10
	leaveWithin = 5 * time.Second
	// drainChunk is larger: a service that stops has little time.
	drainChunk = 200
)

// mustRefuse reports whether this replica must not serve its state. After a pause of
// this process it waits until the log was read, for two seconds at most: usually
// nothing has changed, and nobody needs to be refused.
func (s *Server) mustRefuse(ctx context.Context) bool {
	_ = s.config.Ledger.Verified(ctx) // the fence knows whether others have changed anything
	return s.config.Closed()
}

// refuseClosed answers requests while this replica must not serve. Clients retry,
// and the load balancer sends them to another replica.
func refuseClosed(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "2")
	http.Error(w, "this replica lost the database and another one has it; connect to another replica", http.StatusServiceUnavailable)
}

// Run sends clients to other replicas, gradually and once, when Config.Leave says
// so, until ctx ends. Clients that come back are served unless Config.Closed says
// otherwise: if all replicas are cut off, a slightly outdated map is better than
// none.
func (s *Server) Run(ctx context.Context) error {
	if s.config.Leave == nil {
		return nil
	}
	var since time.Time // when Leave began to say so
	var chunk int
	return periodic.Run(ctx, leaveEvery, func() {
		switch leave := s.config.Leave(); {
		case !leave:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
			chunk = max(leaveChunk, s.connections()/int(leaveWithin/leaveEvery)+1)
			s.config.Log.Warn("this replica is cut off from the database: sending its clients to others", "connections", s.connections())
		default:
			s.closeSome(chunk, since)
		}
	})
}

// Drain ends all connections, not all at once as long as ctx lives, and waits
// for those who serve them. No new ones are taken.
func (s *Server) Drain(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	tick := time.NewTicker(leaveEvery)
	defer tick.Stop()
	for s.closeSome(drainChunk, time.Now()) > 0 {
		select {
		case <-ctx.Done():
			s.Close()
			return
		case <-tick.C:
		}
	}
	s.served.Wait()
}

// closeSome ends at most limit connections from before a moment and returns how
// many are open. It ends them at the same time: over TLS, a client that does not
// read delays the end of its connection for five seconds.
func (s *Server) closeSome(limit int, before time.Time) (left int) {
	s.mu.Lock()
	var some []*controlbase.Conn
	for c, since := range s.open {
		if len(some) == limit {
			break
		}
		if since.Before(before) {
			some = append(some, c)
			delete(s.open, c)
		}
	}
	left = len(s.open)
	s.mu.Unlock()
	var closing sync.WaitGroup
	for _, c := range some {
		closing.Go(func() { _ = c.Close() }) // ended already, if it fails
	}
	closing.Wait()
	return left
}
