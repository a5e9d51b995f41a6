package balance_test

import (
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/balance"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// cluster is a set of replicas behind a load balancer.
type cluster struct {
	t         *testing.T
	replicas  []*replica
	choose    func(from int) int // the replica at which a client arrives that was disconnected by another
	moved     int
	dead      map[int]bool
	balancers []*balance.Balancer
}

type replica struct {
	id       string
	held     int
	draining bool
}

func newCluster(t *testing.T, choose func(from int) int, held ...int) *cluster {
	c := &cluster{t: t, choose: choose, dead: map[int]bool{}}
	for i, n := range held {
		r := &replica{id: string(rune('a' + i)), held: n}
		c.replicas = append(c.replicas, r)
		c.balancers = append(c.balancers, balance.New(balance.Config{
			Self: r.id, Replicas: c.reports, Held: func() int { return r.held }, Log: slog.New(slog.DiscardHandler),
		}))
	}
	return c
}

func (c *cluster) reports() (all []ledger.Report) {
	for i, r := range c.replicas {
		if !c.dead[i] {
			all = append(all, ledger.Report{ID: store.ReplicaID(r.id), Held: r.held, Draining: r.draining})
		}
	}
	return all
}

// run lets time pass.
func (c *cluster) run(d time.Duration) {
	for range d / (100 * time.Millisecond) {
		<-time.After(100 * time.Millisecond) // in the bubble of synctest
		for i, b := range c.balancers {
			if c.dead[i] {
				continue
			}
			c.replicas[i].draining = b.Draining() // as its heartbeat reports
			n, _ := b.Next()
			for range min(n, c.replicas[i].held) {
				c.replicas[i].held--
				c.replicas[c.choose(i)].held++
				c.moved++
			}
		}
	}
}

// leastLoaded is a load balancer that chooses the replica with the fewest clients.
func (c *cluster) leastLoaded(int) int {
	best := -1
	for i, r := range c.replicas {
		if !c.dead[i] && !c.balancers[i].Draining() && (best < 0 || r.held < c.replicas[best].held) {
			best = i
		}
	}
	return best
}

func (c *cluster) want(low, high int) {
	c.t.Helper()
	for _, r := range c.replicas {
		if r.held < low || r.held > high {
			c.t.Errorf("replica %s has %d clients, want %d to %d", r.id, r.held, low, high)
		}
	}
}

func TestReplicaThatStartsEmptyGetsItsShare(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t, nil, 150, 150, 0)
		c.choose = c.leastLoaded
		c.run(29 * time.Second)
		if c.moved > 0 {
			t.Errorf("%d clients were moved before the replicas had settled", c.moved)
		}
		c.run(5 * time.Minute)
		c.want(95, 105)
		if c.moved > 110 {
			t.Errorf("%d clients were moved, want about 100", c.moved)
		}
	})
}

func TestRandomBalancerNeedsAFewRounds(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		c := newCluster(t, func(int) int { return random.IntN(3) }, 300, 300, 0)
		c.run(time.Hour)
		c.want(140, 260) // the share is 200
		if c.moved > 600 {
			t.Errorf("%d clients were moved", c.moved)
		}
	})
}

func TestBalancerThatSendsClientsBackDisconnectsThemOnlyOnce(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t, func(from int) int { return from }, 200, 0)
		c.run(2 * time.Hour)
		if c.moved != 100 {
			t.Errorf("%d clients were moved, want 100", c.moved)
		}
	})
}

func TestNobodyIsMovedToAReplicaThatIsGone(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t, nil, 600, 0)
		c.choose = c.leastLoaded
		c.run(35 * time.Second)
		if c.moved == 0 {
			t.Fatal("nobody was moved to the replica that started empty")
		}
		c.dead[1], c.moved = true, 0
		c.run(2 * time.Minute)
		if c.moved > 0 {
			t.Errorf("%d clients were disconnected for a replica that is gone", c.moved)
		}
	})
}

func TestSmallDifferencesMoveNobody(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t, func(from int) int { return from }, 19, 0, 0)
		d := newCluster(t, func(from int) int { return from }, 600, 530, 530)
		c.run(5 * time.Minute)
		d.run(5 * time.Minute)
		if c.moved+d.moved > 0 {
			t.Errorf("%d and %d clients were moved", c.moved, d.moved)
		}
	})
}

func TestDifferenceThatArisesLaterIsBalancedToo(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t, nil, 50, 50, 50)
		c.choose = c.leastLoaded
		c.run(5 * time.Minute)
		c.replicas[0].held += 60 // or only now did its own decision see the true numbers of the others
		c.run(time.Minute)
		c.want(60, 90)
	})
}

func TestDrainedReplicaLosesAllClientsAndGetsThemBackLater(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t, nil, 100, 100, 100)
		c.choose = c.leastLoaded
		if !c.balancers[0].Drain(true) || c.balancers[0].Drain(true) {
			t.Error("Drain does not report what it changed")
		}
		c.run(4 * time.Second)
		if c.replicas[0].held != 100 {
			t.Errorf("%d clients left before load balancers could notice", 100-c.replicas[0].held)
		}
		c.run(10 * time.Second)
		if c.replicas[0].held != 0 {
			t.Errorf("%d clients are left", c.replicas[0].held)
		}
		if n := c.balancers[0].Others(); n != 2 {
			t.Errorf("%d other replicas", n)
		}
		c.balancers[0].Drain(false)
		c.run(5 * time.Minute)
		c.want(90, 110)
	})
}

func TestClientOfADrainingReplicaIsServedForAWhileIfItComesBack(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t, nil, 1, 1)
		begin := time.Now()
		c.balancers[0].Drain(true)
		<-time.After(6 * time.Second)
		if n, before := c.balancers[0].Next(); n == 0 || !before.Equal(begin) {
			t.Errorf("after 6 s, %d clients from before %v leave", n, before.Sub(begin))
		}
		<-time.After(24 * time.Second)
		if n, before := c.balancers[0].Next(); n == 0 || before.Sub(begin) != 20*time.Second {
			t.Errorf("after 30 s, %d clients from before %v leave", n, before.Sub(begin))
		}
	})
}

func TestLastReplicaKeepsItsClientsEvenIfItIsDrained(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t, nil, 100, 100)
		c.choose = func(from int) int { return from }
		c.dead[1] = true
		c.balancers[0].Drain(true)
		c.run(time.Minute)
		if c.moved > 0 {
			t.Errorf("%d clients were disconnected without another replica", c.moved)
		}
	})
}
