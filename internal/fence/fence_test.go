package fence_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/fence"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
)

// replica is a fence, whether it has the database, and whether others reach it.
type replica struct {
	*fence.Fence
	id     string
	away   atomic.Bool // the database
	hidden atomic.Bool // from other replicas
	cutOff atomic.Bool
	stop   func() // ends its loop

	mu    sync.Mutex
	fresh ledger.Freshness // guarded by mu
}

// cluster connects replicas in memory, so that tests need not wait.
type cluster struct {
	t        *testing.T
	key      *identity.ReplicaKey
	replicas []*replica
}

func newCluster(t *testing.T, names ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, key: identity.NewReplicaKey(key.NewMachine())}
	for _, name := range names {
		r := &replica{id: name, fresh: ledger.Freshness{Last: time.Now(), Since: time.Now()}}
		r.Fence = fence.New(fence.Config{
			Self: name, Fresh: r.freshness, Peers: func() []fence.Peer { return c.peers(name) }, CutOff: r.cutOff.Load, Key: c.key,
			Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
		})
		r.Via(c)
		c.replicas = append(c.replicas, r)
	}
	for _, r := range c.replicas {
		r.stop = r.start(t)
	}
	return c
}

// start runs the loop of the fence until it is stopped.
func (r *replica) start(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var loop sync.WaitGroup
	loop.Go(func() { _ = r.Run(ctx) })
	stop = func() { cancel(); loop.Wait() }
	t.Cleanup(stop)
	return stop
}

// freshness follows the database once a second while it is there.
func (r *replica) freshness() ledger.Freshness {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); !r.away.Load() {
		if now.Sub(r.fresh.Last) > 6*time.Second {
			r.fresh.Since = now
		}
		r.fresh.Last = now
	}
	return r.fresh
}

func (c *cluster) peers(self string) (peers []fence.Peer) {
	for _, r := range c.replicas {
		if r.id != self {
			peers = append(peers, fence.Peer{ID: r.id, URL: "http://" + r.id})
		}
	}
	return peers
}

// RoundTrip implements http.RoundTripper.
func (c *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	i := slices.IndexFunc(c.replicas, func(p *replica) bool { return p.id == r.URL.Host })
	if i < 0 || c.replicas[i].hidden.Load() {
		<-r.Context().Done() // packets are lost
		return nil, r.Context().Err()
	}
	rec := httptest.NewRecorder()
	c.replicas[i].ServeHTTP(rec, r)
	return rec.Result(), nil
}

// after lets time pass and wants a state of the first replica.
func (c *cluster) after(d time.Duration, closed, leave bool) {
	c.t.Helper()
	<-time.After(d)
	synctest.Wait()
	if a := c.replicas[0]; a.Closed() != closed || a.Leave() != leave {
		c.t.Errorf("closed is %v and leave %v, want %v and %v", a.Closed(), a.Leave(), closed, leave)
	}
}

func TestReplicaWithoutDatabaseClosesWhileAnotherHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b", "c")
		a := c.replicas[0]
		c.after(time.Minute, false, false)
		a.away.Store(true)
		c.after(9*time.Second, false, false)
		c.after(2*time.Second, true, true)
		c.after(time.Hour, true, true)
		a.away.Store(false)
		c.after(time.Second, false, false)
	})
}

func TestOutageForAllClosesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		a, b := c.replicas[0], c.replicas[1]
		<-time.After(time.Minute)
		a.away.Store(true)
		b.away.Store(true)
		a.cutOff.Store(true) // all answered, so there is nowhere to go
		for range 100 {
			c.after(3*time.Second, false, false)
		}
		b.away.Store(false) // it finds the database first
		for range 5 {
			c.after(time.Second, false, false)
		}
		c.after(5*time.Second, true, true) // and the other one not at all
		b.away.Store(true)
		c.after(10*time.Second, false, false)
	})
}

func TestReplicaThatReachesNobodyServesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		a, b := c.replicas[0], c.replicas[1]
		b.hidden.Store(true)
		c.after(time.Minute, false, false)
		if got := a.Unreachable(); !slices.Equal(got, []string{"b"}) {
			t.Errorf("unreachable are %q", got)
		}
		a.away.Store(true)
		for range 100 {
			c.after(700*time.Millisecond, false, false)
		}
		a.cutOff.Store(true) // after a minute clients may try another
		c.after(time.Second, false, true)
		b.hidden.Store(false)
		c.after(5*time.Second, true, true)
		if got := a.Unreachable(); len(got) > 0 {
			t.Errorf("unreachable are %q", got)
		}
	})
}

func TestLoneReplicaNeverCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a")
		c.replicas[0].away.Store(true)
		for range 50 {
			c.after(3*time.Second, false, false)
		}
	})
}

// A process that was stopped knows at once that it may have missed something,
// but sends nobody away before it has asked.
func TestReplicaThatWasStoppedClosesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		a := c.replicas[0]
		<-time.After(time.Minute)
		a.away.Store(true)
		a.stop()
		c.after(20*time.Second, true, false)
		a.start(t)
		c.after(time.Second, true, false)
		a.away.Store(false)
		c.after(0, false, false)
		c.after(time.Minute, false, false)
	})
}

func TestOnlyReplicasAreAnsweredAndBelieved(t *testing.T) {
	own := identity.NewReplicaKey(key.NewMachine())
	open := func(k *identity.ReplicaKey, self string, peer fence.Peer) *fence.Fence {
		return fence.New(fence.Config{
			Self: self, Key: k, Peers: func() []fence.Peer { return []fence.Peer{peer} }, CutOff: func() bool { return false },
			Fresh: func() ledger.Freshness { return ledger.Freshness{Last: time.Now(), Since: time.Now().Add(-time.Hour)} },
			Log:   slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
		})
	}
	b := httptest.NewServer(open(own, "b", fence.Peer{}))
	defer b.Close()
	forged := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Fairlead-Proof", own.Sign("nothing of this"))
		_, _ = io.WriteString(w, `{"databaseMillis":99999999}`)
	}))
	defer forged.Close()
	for name, c := range map[string]struct {
		key  *identity.ReplicaKey
		peer fence.Peer
		want bool
	}{
		"its peer":                {own, fence.Peer{ID: "b", URL: b.URL}, true},
		"another at that address": {own, fence.Peer{ID: "c", URL: b.URL}, false},
		"a stranger asks":         {identity.NewReplicaKey(key.NewMachine()), fence.Peer{ID: "b", URL: b.URL}, false},
		"a stranger answers":      {own, fence.Peer{ID: "b", URL: forged.URL}, false},
		"no address":              {own, fence.Peer{ID: "b"}, false},
		"not an address":          {own, fence.Peer{ID: "b", URL: "gopher:// \x00"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(c.key, "a", c.peer)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := f.Asked(ctx); (err == nil) != c.want {
				t.Errorf("it is believed: %v, want %v (%v)", err == nil, c.want, err)
			}
		})
	}
	res := httptest.NewRecorder()
	open(own, "b", fence.Peer{}).ServeHTTP(res, httptest.NewRequestWithContext(t.Context(), http.MethodGet, fence.Path, strings.NewReader("")))
	if res.Code != http.StatusNotFound || strings.Contains(res.Body.String(), "database") {
		t.Errorf("a stranger is told %d %s", res.Code, res.Body)
	}
}
