package fence_test

import (
	"context"
	"io"
	"log/slog"
	"maps"
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

	"github.com/fairlead-mesh/fairlead/internal/fence"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// replica is a fence with the simulated state of its database and network connections.
type replica struct {
	*fence.Fence
	id     string      // its ID and address, as published to the others
	old    atomic.Bool // publishes no URL
	away   atomic.Bool // cannot reach the database
	hidden atomic.Bool // other replicas cannot reach it
	cutOff atomic.Bool
	state  atomic.Pointer[string]
	stop   func() // stops its loop

	mu    sync.Mutex
	fresh ledger.Freshness // guarded by mu
}

// cluster connects replicas in memory, so that tests need not wait in real time.
type cluster struct {
	t        *testing.T
	key      *identity.ReplicaKey
	replicas []*replica
}

func newCluster(t *testing.T, names ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, key: identity.NewReplicaKey(identity.NewServerSecrets(identity.NewServerSecret(1)))}
	for _, name := range names {
		r := &replica{id: name, fresh: ledger.Freshness{Last: time.Now(), Since: time.Now()}}
		r.show("same")
		r.Fence = c.fence(r, name)
		c.replicas = append(c.replicas, r)
	}
	for _, r := range c.replicas {
		r.stop = r.start(t)
	}
	return c
}

// fence returns a new fence for a replica.
func (c *cluster) fence(r *replica, self string) *fence.Fence {
	f := fence.New(fence.Config{
		Self: self, Fresh: r.freshness, State: func() string { return *r.state.Load() }, Peers: func() []fence.Peer { return c.peers(r.id) }, CutOff: r.cutOff.Load, Key: c.key,
		Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	})
	f.Via(c)
	return f
}

// restart gives a replica a new ID that the others do not learn.
func (c *cluster) restart(r *replica) {
	r.stop()
	r.Fence = c.fence(r, r.id+" restarted")
	r.mu.Lock()
	r.fresh = ledger.Freshness{Last: time.Now(), Since: time.Now()}
	r.mu.Unlock()
	r.stop = r.start(c.t)
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

// show sets the state of a replica.
func (r *replica) show(state string) { r.state.Store(&state) }

// pause makes a replica detect that it was suspended until now.
func (r *replica) pause() {
	r.away.Store(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fresh.Paused = time.Now()
}

// outage makes it look as if a replica lost the database a while ago and then recovered.
func (r *replica) outage(ago time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fresh.Last = r.fresh.Last.Add(-ago)
}

// freshness returns the freshness of the replica, after updating it if the database is reachable.
func (r *replica) freshness() ledger.Freshness {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); !r.away.Load() {
		if now.Sub(r.fresh.Last) > 6*time.Second {
			r.fresh.Since = now
		}
		r.fresh.Last, r.fresh.Paused = now, time.Time{}
	}
	return r.fresh
}

func (c *cluster) peers(self string) (peers []fence.Peer) {
	for _, r := range c.replicas {
		p := fence.Peer{ID: r.id, URL: "http://" + r.id}
		if r.old.Load() {
			p.URL = ""
		}
		if r.id != self {
			peers = append(peers, p)
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

// after lets time pass and then checks the state of the first replica.
func (c *cluster) after(d time.Duration, closed, leave bool) {
	c.t.Helper()
	<-time.After(d)
	synctest.Wait()
	if a := c.replicas[0]; a.Closed() != closed || a.Leave() != leave {
		c.t.Errorf("closed is %v and leave %v, want %v and %v", a.Closed(), a.Leave(), closed, leave)
	}
}

// A pause can be too short for the fence to close by itself, but long enough for
// other replicas to make changes.
func TestReplicaThatWasPausedIsClosedUntilItKnowsThatNobodyChangedAnything(t *testing.T) {
	for name, c := range map[string]struct {
		others func(b *replica)
		opens  bool // whether the fence opens after the others have answered
		hides  bool // whether the others stop answering later
	}{
		"another has the database":              {others: func(*replica) {}},
		"another has it since a moment ago":     {others: func(b *replica) { b.outage(10 * time.Second) }},
		"nobody has it, and another knows more": {others: func(b *replica) { b.show("more"); b.freshness(); b.away.Store(true) }, hides: true},
		"nobody has it, and all know the same":  {others: func(b *replica) { b.away.Store(true) }, opens: true},
		"nobody has it, and another knows less": {others: func(b *replica) { b.show("less"); b.away.Store(true); b.outage(time.Minute) }, opens: true},
		"nobody answers":                        {others: func(b *replica) { b.hidden.Store(true) }, opens: true},
	} {
		t.Run(name, func(t *testing.T) {
			waittest.Bubble(t, func(t *testing.T) {
				cluster := newCluster(t, "a", "b")
				a, b := cluster.replicas[0], cluster.replicas[1]
				cluster.after(time.Minute, false, false)
				a.away.Store(true) // a has read the log for the last time
				cluster.after(100*time.Millisecond, false, false)
				c.others(b)
				b.freshness()
				cluster.after(time.Second, false, false)
				a.pause()
				cluster.after(0, true, false)
				switch {
				case c.opens: // a replica that lost the database reports that after 6 seconds
					cluster.after(10*time.Second, false, false)
				case c.hides:
					cluster.after(10*time.Second, true, true)
					b.hidden.Store(true)
					cluster.after(20*time.Second, true, true)
				default:
					cluster.after(1900*time.Millisecond, true, false)
				}
				a.away.Store(false)
				cluster.after(time.Second, false, false)
			})
		})
	}
}

func TestReplicaWithoutDatabaseClosesWhileAnotherHasIt(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
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
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		a, b := c.replicas[0], c.replicas[1]
		<-time.After(time.Minute)
		a.away.Store(true)
		b.away.Store(true)
		a.cutOff.Store(true) // all replicas answered, so clients have nowhere to go
		for range 100 {
			c.after(3*time.Second, false, false)
		}
		b.away.Store(false) // b recovers the database first
		for range 5 {
			c.after(time.Second, false, false)
		}
		c.after(5*time.Second, true, true) // a does not recover the database at all
		b.away.Store(true)
		c.after(10*time.Second, false, false)
	})
}

func TestReplicaThatReachesNobodyServesOn(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		a, b := c.replicas[0], c.replicas[1]
		b.hidden.Store(true)
		c.after(time.Minute, false, false)
		if got := a.Unreachable(); !slices.Equal(got, []fence.Peer{{ID: "b", URL: "http://b"}}) {
			t.Errorf("unreachable are %q", got)
		}
		if got := a.Warnings(); len(got) != 1 || !strings.Contains(got[0], "set replica_url there") {
			t.Errorf("the warnings are %q", got)
		}
		a.away.Store(true)
		for range 100 {
			c.after(700*time.Millisecond, false, false)
		}
		a.cutOff.Store(true) // after a minute clients may try another replica
		c.after(time.Second, false, true)
		b.hidden.Store(false)
		c.after(5*time.Second, true, true)
		if got := a.Unreachable(); len(got) > 0 {
			t.Errorf("unreachable are %q", got)
		}
	})
}

func TestFenceStaysClosedWhenAnswersAreLost(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t, "a", "b", "c")
		a, b := c.replicas[0], c.replicas[1]
		<-time.After(time.Minute)
		a.away.Store(true)
		c.replicas[2].away.Store(true) // c answers throughout that it has no database
		c.after(15*time.Second, true, true)
		for range 3 {
			b.hidden.Store(true)
			for range 200 {
				c.after(100*time.Millisecond, true, true)
			}
			b.hidden.Store(false)
			c.after(4*time.Second, true, true)
		}

		b.hidden.Store(true) // permanently
		c.after(25*time.Second, true, true)
		c.after(15*time.Second, false, false)
		b.hidden.Store(false)
		c.after(5*time.Second, true, true)
		b.away.Store(true) // reported six seconds later
		c.after(10*time.Second, false, false)
	})
}

// Claims that peers made during one outage do not count in the next one.
func TestFenceOpensAtOnceWhenTheDatabaseIsBack(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		a, b := c.replicas[0], c.replicas[1]
		<-time.After(time.Minute)
		a.away.Store(true)
		c.after(15*time.Second, true, true)
		b.hidden.Store(true)
		c.after(3*time.Second, true, true)
		a.away.Store(false)
		c.after(0, false, false)
		c.after(time.Second, false, false)
		a.away.Store(true)
		for range 200 {
			c.after(100*time.Millisecond, false, false)
		}
	})
}

// A single claim closes the fence. Lost answers must not make it count twice, which would send clients
// away.
func TestLostAnswersSendNobodyAway(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		a, b := c.replicas[0], c.replicas[1]
		<-time.After(time.Minute)
		a.away.Store(true)
		<-time.After(9 * time.Second) // one round has been answered
		b.hidden.Store(true)
		c.after(10*time.Second, true, false)
		b.hidden.Store(false)
		c.after(4*time.Second, true, true)
	})
}

// A replica without the database cannot learn the new IDs of its peers.
func TestReplicaThatRestartsIsStillAsked(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		a, b := c.replicas[0], c.replicas[1]
		<-time.After(time.Minute)
		a.away.Store(true)
		c.after(15*time.Second, true, true)
		b.hidden.Store(true)
		c.after(10*time.Second, true, true)
		c.restart(b)
		b.hidden.Store(false)
		for range 600 { // even at first, when b has had the database only for a short time
			c.after(100*time.Millisecond, true, true)
		}
		if got := a.Unreachable(); len(got) > 0 {
			t.Errorf("unreachable are %q", got)
		}
		b.away.Store(true)
		c.after(10*time.Second, false, false)
	})
}

func TestReplicaOfAnOlderReleaseIsToBeUpgraded(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		a := c.replicas[0]
		c.replicas[1].old.Store(true)
		c.after(90*time.Second, false, false)
		if got := a.Warnings(); len(got) != 1 || !strings.Contains(got[0], "upgrade it") || strings.Contains(got[0], "replica_url") {
			t.Errorf("the warnings are %q", got)
		}
	})
}

func TestLoneReplicaNeverCloses(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t, "a")
		c.replicas[0].away.Store(true)
		for range 50 {
			c.after(3*time.Second, false, false)
		}
	})
}

// A process that was suspended knows at once that it may have missed changes, but
// sends nobody away before it has asked its peers.
func TestReplicaThatWasStoppedClosesAtOnce(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
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
	own := identity.NewReplicaKey(identity.NewServerSecrets(identity.NewServerSecret(1)))
	open := func(k *identity.ReplicaKey, self string, peers ...fence.Peer) *fence.Fence {
		return fence.New(fence.Config{
			Self: self, Key: k, Peers: func() []fence.Peer { return peers }, CutOff: func() bool { return false },
			Fresh: func() ledger.Freshness { return ledger.Freshness{Last: time.Now(), Since: time.Now().Add(-time.Hour)} },
			State: func() string { return "" },
			Log:   slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
		})
	}
	b := httptest.NewServer(open(own, "b"))
	defer b.Close()
	self := httptest.NewServer(open(own, "a"))
	defer self.Close()
	var recorded atomic.Pointer[httptest.ResponseRecorder] // the first answer, replayed from then on
	replayed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first := httptest.NewRecorder()
		open(own, "b").ServeHTTP(first, r)
		recorded.CompareAndSwap(nil, first)
		maps.Copy(w.Header(), recorded.Load().Header())
		_, _ = w.Write(recorded.Load().Body.Bytes())
	}))
	defer replayed.Close()
	if err := open(own, "a", fence.Peer{ID: "b", URL: replayed.URL}).Asked(t.Context()); err != nil {
		t.Errorf("the answer that will be replayed is not believed: %v", err)
	}
	forged := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Fairlead-Proof", own.Sign("nothing of this"))
		_, _ = io.WriteString(w, `{"replica":"b","databaseNanos":99999999999999}`)
	}))
	defer forged.Close()
	at := func(id, url string) []fence.Peer { return []fence.Peer{{ID: id, URL: url}} }
	for name, c := range map[string]struct {
		key   *identity.ReplicaKey
		peers []fence.Peer // the first peer is asked
		want  bool
	}{
		"its peer":                      {own, at("b", b.URL), true},
		"its peer has restarted":        {own, at("b before it restarted", b.URL), true},
		"another peer at that address":  {own, append(at("c", b.URL), at("b", b.URL)...), false},
		"the replica that asks":         {own, at("b", self.URL), false},
		"an answer to another question": {own, at("b", replayed.URL), false},
		"a stranger asks":               {identity.NewReplicaKey(identity.NewServerSecrets(identity.NewServerSecret(1))), at("b", b.URL), false},
		"a stranger answers":            {own, at("b", forged.URL), false},
		"no address":                    {own, at("b", ""), false},
		"not an address":                {own, at("b", "gopher:// \x00"), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(c.key, "a", c.peers...)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := f.Asked(ctx); (err == nil) != c.want {
				t.Errorf("it is believed: %v, want %v (%v)", err == nil, c.want, err)
			}
		})
	}
	res := httptest.NewRecorder()
	open(own, "b").ServeHTTP(res, httptest.NewRequestWithContext(t.Context(), http.MethodGet, fence.Path, strings.NewReader("")))
	if res.Code != http.StatusNotFound || strings.Contains(res.Body.String(), "database") {
		t.Errorf("a stranger is told %d %s", res.Code, res.Body)
	}
}
