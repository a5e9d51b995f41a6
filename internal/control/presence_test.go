package control_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// openAll opens a stream of each node, and waits until all of them have been shown as online for long.
func (r *replica) openAll(nodes mesh.NodeID) {
	for id := mesh.NodeID(1); id <= nodes; id++ {
		r.presence.Opened(id, 1)
	}
	pass(time.Minute)
}

func TestNodeIsOnlineAtOnceAndOfflineAfterTheGrace(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		r := newCluster(t).start(t, "a", "")
		r.addNodes(t, 1)
		r.presence.Opened(1, 7)
		synctest.Wait()
		r.want(t, 1, "a7")
		pass(5 * time.Minute)
		r.want(t, 1, "a7")
		end := mesh.TimeOf(time.Now())
		r.presence.Closed(1, 7)
		pass(1900 * time.Millisecond)
		r.want(t, 1, "a7")
		pass(200 * time.Millisecond)
		r.want(t, 1, "offline")
		if n, _ := r.ledger.World().Nodes.Get(1); n.Presence.LastSeen != end {
			t.Errorf("last seen at %v, the stream ended at %v", n.Presence.LastSeen.Time(), end.Time())
		}
		if n := r.presence.StreamCount(); n != 0 {
			t.Errorf("%d streams are held", n)
		}
	})
}

// To show thousands of nodes as offline and then as online would be the most expensive thing that a server can do while they
// connect again.
func TestNodesThatLostTheirStreamsTogetherGetLongerToReturn(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		const nodes, router = 400, 7
		c := newCluster(t)
		r := c.start(t, "a", "")
		r.addNodes(t, nodes)
		n, _ := r.ledger.World().Nodes.Get(router)
		withRoute := *n
		withRoute.Routes = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
		r.commit(t, mesh.NodePut{Node: &withRoute})
		r.openAll(nodes)
		for id := mesh.NodeID(1); id <= nodes; id++ {
			r.presence.Closed(id, 1)
		}
		pass(3 * time.Second)
		r.want(t, router, "offline") // another router has to take over
		r.want(t, 8, "a1")
		for id := mesh.NodeID(1); id <= nodes/2; id++ {
			r.presence.Opened(id, 2)
		}
		pass(56 * time.Second)
		r.want(t, 8, "a2")
		r.want(t, nodes, "a1")
		r.presence.Closed(9, 2) // when the minute is almost over
		pass(3 * time.Second)
		r.want(t, nodes, "offline")
		r.want(t, 9, "offline")
		if n, _ := c.count(t, mesh.KindOffline); n != nodes/2+2 {
			t.Errorf("%d nodes were shown as offline, want those that did not return, node 9 and the router", n)
		}
		pass(time.Minute)
		r.presence.Closed(8, 2)
		pass(3 * time.Second)
		r.want(t, 8, "offline")
	})
}

// On a busy machine, thousands of nodes take longer than a minute.
func TestNodesThatAreStillReturningGetLongerThanAMinute(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		const nodes, returned = 2000, 1000
		c := newCluster(t)
		r := c.start(t, "a", "")
		r.addNodes(t, nodes)
		r.openAll(nodes)
		for id := mesh.NodeID(1); id <= nodes; id++ {
			r.presence.Closed(id, 1)
		}
		for id := mesh.NodeID(1); id <= returned; id++ {
			r.presence.Opened(id, 2)
			pass(100 * time.Millisecond)
		}
		r.want(t, 1, "a2")
		r.want(t, nodes, "a1")
		r.presence.Closed(1, 2) // alone, meanwhile
		pass(9 * time.Second)
		r.want(t, 1, "a2")
		r.want(t, nodes, "a1")
		pass(4 * time.Second) // they stopped returning
		r.want(t, 1, "offline")
		r.want(t, nodes, "offline")
		if n, _ := c.count(t, mesh.KindOffline); n != nodes-returned+1 {
			t.Errorf("%d nodes were shown as offline, want those that did not return, and node 1", n)
		}
	})
}

func TestNodesThatReturnSlowlyAreWaitedForFiveMinutesAtMost(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		const nodes, perSecond = 3200, 10
		r := newCluster(t).start(t, "a", "")
		r.addNodes(t, nodes)
		r.openAll(nodes)
		for id := mesh.NodeID(1); id <= nodes; id++ {
			r.presence.Closed(id, 1)
		}
		for second := range mesh.NodeID(303) {
			if second == 295 {
				r.want(t, nodes, "a1")
			}
			for i := range mesh.NodeID(perSecond) {
				r.presence.Opened(second*perSecond+i+1, 2)
			}
			pass(time.Second)
		}
		r.want(t, nodes, "offline")
	})
}

func TestStreamsThatEndInTheCourseOfSecondsAreCountedTogether(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		r := newCluster(t).start(t, "a", "")
		r.addNodes(t, 320)
		r.openAll(320)
		closeAll := func(from, to mesh.NodeID) {
			for id := from; id <= to; id++ {
				r.presence.Closed(id, 1)
			}
		}
		closeAll(1, 1)
		pass(4500 * time.Millisecond)
		closeAll(2, 40)
		pass(time.Second)
		closeAll(41, 80) // a quarter of all
		pass(3 * time.Second)
		r.want(t, 1, "offline")
		r.want(t, 2, "a1")
		r.want(t, 80, "a1")
	})
}

func TestPresenceIsUpdatedWhileManyNodesAreAway(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		const nodes = 300
		r := newCluster(t).start(t, "a", "")
		r.addNodes(t, nodes)
		r.openAll(nodes)
		for id := mesh.NodeID(1); id <= 100; id++ {
			r.presence.Closed(id, 1)
		}
		pass(3 * time.Second)
		r.want(t, 1, "a1")
		r.commit(t, mesh.Offline{ID: nodes, At: 1}) // others believe that this replica is dead
		pass(time.Second)
		r.want(t, nodes, "a1")
	})
}

func TestDeletedNodesAreNotWaitedFor(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		const nodes = 300
		r := newCluster(t).start(t, "a", "")
		r.addNodes(t, nodes)
		r.openAll(nodes)
		for id := mesh.NodeID(1); id <= 100; id++ {
			r.commit(t, mesh.NodeGone{ID: id})
			r.presence.Closed(id, 1)
		}
		pass(3 * time.Second)
		if n := r.metric(t, "mesh_presence_waiting", ""); n != 0 {
			t.Errorf("%v updates wait", n)
		}
		pass(time.Minute)
		for id := mesh.NodeID(101); id <= 140; id++ { // few, and long after the others
			r.presence.Closed(id, 1)
		}
		pass(3 * time.Second)
		r.want(t, 140, "offline")
	})
}

func TestNewestStreamWins(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		r := c.start(t, "a", "")
		r.addNodes(t, 1)
		r.presence.Opened(1, 1)
		synctest.Wait()
		r.presence.Opened(1, 2)
		r.presence.Closed(1, 1) // the older stream ends after the newer one began
		pass(time.Minute)
		r.want(t, 1, "a2")
		r.presence.Closed(1, 2)
		pass(time.Second)
		r.presence.Opened(1, 3) // back within the grace period
		pass(time.Minute)
		r.want(t, 1, "a3")
		r.presence.Opened(1, 2) // an older stream is reported late
		r.presence.Closed(1, 2)
		pass(time.Minute)
		r.want(t, 1, "a3")
		if n, _ := c.count(t, mesh.KindOffline); n != 0 || r.presence.StreamCount() != 1 {
			t.Errorf("shown offline %d times; %d held", n, r.presence.StreamCount())
		}
	})
}

func TestNodeThatMovedIsLeftAlone(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a, b := c.start(t, "a", ""), c.start(t, "b", "")
		a.addNodes(t, 1)
		pass(2 * time.Second)
		a.presence.Opened(1, 9)
		pass(2 * time.Second)
		b.presence.Opened(1, 1) // a does not know yet that its stream is dead
		pass(2 * time.Minute)
		a.want(t, 1, "b1")
		a.presence.Closed(1, 9)
		pass(time.Minute)
		a.want(t, 1, "b1")
		a.presence.Opened(1, 10)
		b.presence.Closed(1, 1)
		pass(time.Minute)
		b.want(t, 1, "a10")
		if n, _ := c.count(t, mesh.KindOffline); n != 0 {
			t.Errorf("shown offline %d times", n)
		}
	})
}

func TestStreamIsAnnouncedAgainWhenTheWorldForgotIt(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		r := newCluster(t).start(t, "a", "")
		r.addNodes(t, 2)
		r.presence.Opened(1, 1)
		synctest.Wait()
		r.commit(t, mesh.Offline{ID: 1, At: 1})
		pass(time.Second)
		r.want(t, 1, "a1")
		r.commit(t, mesh.NodeGone{ID: 1})
		pass(time.Minute)
		r.want(t, 1, "gone")
		r.presence.Closed(1, 1)
		pass(time.Minute)
		if n := r.metric(t, "mesh_presence_waiting", ""); n != 0 {
			t.Errorf("%v updates about a node that is gone", n)
		}
	})
}

// A failover can lose that a node moved to this replica. The node is then shown where it was before.
func TestStreamIsAnnouncedAgainWhenTheHistoryWasRewound(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a, b := c.start(t, "a", ""), c.start(t, "b", "")
		a.addNodes(t, 1)
		b.presence.Opened(1, 1)
		pass(2 * time.Second)
		b.want(t, 1, "b1")
		c.setAway(true, a) // a would say that it has no such stream
		b.commit(t, mesh.Online{ID: 1, Replica: "a", Conn: 7, At: 1})
		pass(time.Second)
		b.want(t, 1, "a7")
		w := b.ledger.World()
		b.commit(t, mesh.NewEpoch(w.Snapshot, w.Rev, w.Counters, 2, mesh.Loss{}))
		pass(time.Second)
		b.want(t, 1, "b1")
		if n, _ := c.count(t, mesh.KindOffline); n != 0 {
			t.Errorf("shown offline %d times", n)
		}
	})
}

func TestPresenceSurvivesAnOutageAndSharesCommands(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		r := c.start(t, "a", "")
		const nodes = 1000
		r.addNodes(t, nodes+1)
		r.presence.Opened(nodes+1, 1)
		pass(time.Minute)
		c.setAway(true, r)
		for id := mesh.NodeID(1); id <= nodes; id++ {
			r.presence.Opened(id, int64(id))
		}
		r.presence.Closed(nodes+1, 1)
		pass(10 * time.Minute)
		r.want(t, 1, "offline")
		r.want(t, nodes+1, "a1")
		if n := r.metric(t, "mesh_presence_waiting", ""); n != nodes+1 {
			t.Errorf("%v updates wait, want %d", n, nodes+1)
		}
		c.setAway(false, r)
		pass(5 * time.Second)
		for id := mesh.NodeID(1); id <= nodes; id++ {
			if r.shown(id) == "offline" {
				t.Fatalf("node %d is still offline", id)
			}
		}
		pass(8 * time.Second) // the node might have connected to another replica in the meantime
		r.want(t, nodes+1, "offline")
		if n, _ := r.ledger.World().Nodes.Get(nodes + 1); time.Since(n.Presence.LastSeen.Time()) < 10*time.Minute {
			t.Errorf("a node that left during the outage was last seen at %v", n.Presence.LastSeen.Time())
		}
		if events, commands := c.count(t, mesh.KindOnline); events != nodes+1 || commands > 1+4 {
			t.Errorf("%d nodes came online by %d commands", events, commands)
		}
		if n := r.metric(t, "mesh_presence_waiting", ""); n != 0 {
			t.Errorf("%v updates wait", n)
		}
	})
}

func TestStreamThatEndsWhileItIsAnnouncedIsNotForgotten(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		r := c.start(t, "a", "")
		r.addNodes(t, 1)
		pass(10 * time.Second)
		c.mu.Lock()
		c.while = func() { r.presence.Closed(1, 1) }
		c.mu.Unlock()
		r.presence.Opened(1, 1)
		pass(time.Second)
		r.want(t, 1, "a1")
		pass(2 * time.Second)
		r.want(t, 1, "offline")
	})
}

func TestNodeThatMovedDuringAnOutageIsNotShownOffline(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a, b := c.start(t, "a", ""), c.start(t, "b", "")
		const nodes = 20
		a.addNodes(t, nodes)
		for id := mesh.NodeID(1); id <= nodes; id++ {
			a.presence.Opened(id, int64(id))
		}
		pass(10 * time.Second)
		c.setAway(true, a, b)
		pass(700 * time.Millisecond)
		for id := mesh.NodeID(1); id <= nodes; id++ {
			a.presence.Closed(id, int64(id))
			b.presence.Opened(id, int64(id))
			pass(time.Second)
		}
		c.setAway(false, a)
		pass(time.Second)
		c.setAway(false, b)
		pass(10 * time.Second)
		for id := mesh.NodeID(1); id <= nodes; id++ {
			a.want(t, id, fmt.Sprintf("b%d", id))
		}
		if n, _ := c.count(t, mesh.KindOffline); n != 0 {
			t.Errorf("shown offline %d times", n)
		}
	})
}

// A commit whose result is lost still counts: the node may move on from this state.
func TestStreamWhoseCommitWasNotAnsweredCountsAsShown(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a, b := c.start(t, "a", ""), c.start(t, "b", "")
		a.addNodes(t, 1)
		pass(time.Second)
		c.mu.Lock()
		c.lose = true
		c.mu.Unlock()
		a.presence.Opened(1, 1)
		pass(12 * time.Second) // by then nobody waits for the result
		a.want(t, 1, "offline")
		b.want(t, 1, "a1")
		c.setAway(false, a)
		pass(5 * time.Second)
		a.want(t, 1, "a1")
		b.presence.Opened(1, 1)
		pass(time.Minute)
		a.want(t, 1, "b1")
	})
}

func TestStreamThatAppearsAfterItEndedIsNotShownForever(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a := c.start(t, "a", "")
		a.addNodes(t, 1)
		pass(time.Second)
		c.mu.Lock()
		c.lose = true
		c.mu.Unlock()
		a.presence.Opened(1, 1)
		pass(12 * time.Second) // by then nobody waits for the result
		a.presence.Closed(1, 1)
		pass(12 * time.Second)
		c.setAway(false, a)
		pass(30 * time.Second)
		a.want(t, 1, "offline")
		if n, _ := c.count(t, mesh.KindOnline); n != 1 {
			t.Errorf("shown online %d times, so the test shows nothing", n)
		}
	})
}

func TestNodeThatKeepsReconnectingDoesNotDelayOthers(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		const nodes = 100
		r := newCluster(t).start(t, "a", "")
		r.addNodes(t, nodes)
		r.openAll(nodes)
		for conn := range int64(nodes) {
			r.presence.Closed(1, conn+1)
			pass(50 * time.Millisecond)
			r.presence.Opened(1, conn+2)
			pass(time.Millisecond)
		}
		r.presence.Closed(2, 1)
		pass(3 * time.Second)
		r.want(t, 2, "offline")
	})
}

func TestNodesThatAreDueOneAfterTheOtherShareCommits(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		const nodes = 1000
		c := newCluster(t)
		r := c.start(t, "a", "")
		r.addNodes(t, nodes)
		r.openAll(nodes)
		for id := mesh.NodeID(1); id <= nodes; id++ {
			r.presence.Closed(id, 1)
			pass(time.Millisecond)
		}
		pass(2 * time.Minute)
		if events, commands := c.count(t, mesh.KindOffline); events != nodes || commands > nodes/3 {
			t.Errorf("%d nodes were shown as offline by %d commands", events, commands)
		}
	})
}

func TestStreamsThatComeAndGoDuringAnOutageCostNoTries(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		r := c.start(t, "a", "")
		r.addNodes(t, 100)
		c.setAway(true, r)
		c.mu.Lock()
		before := c.tries
		c.mu.Unlock()
		for id := mesh.NodeID(1); id <= 100; id++ {
			r.presence.Opened(id, int64(id))
			pass(100 * time.Millisecond)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if n := c.tries - before; n > 15 {
			t.Errorf("%d transactions were tried in ten seconds", n)
		}
	})
}

func TestStopLeavesNodesOnline(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		r := c.start(t, "a", "")
		r.addNodes(t, 1)
		r.presence.Opened(1, 1)
		synctest.Wait()
		r.presence.Closed(1, 1)
		r.kill()
		pass(time.Minute)
		if n, _ := c.count(t, mesh.KindOffline); n != 0 {
			t.Error("a service that stops says that its nodes are offline")
		}
	})
}

// Whatever happens, a node ends up online if the newest stream that it opened on any
// replica is still open, and it is shown on such a replica.
func TestWorldShowsTheStreamsThatAreThere(t *testing.T) {
	for seed := range uint64(4) {
		waittest.Bubble(t, func(t *testing.T) {
			c, random := newCluster(t), rand.New(rand.NewPCG(seed, 1))
			replicas := []*replica{c.start(t, "a", ""), c.start(t, "b", "")}
			const nodes = 8
			replicas[0].addNodes(t, nodes)
			pass(2 * time.Second)
			type place struct {
				id mesh.NodeID
				on *replica
			}
			newest, open := map[place]int64{}, map[place]bool{}
			for conn := range int64(300) {
				at := place{mesh.NodeID(1 + random.IntN(nodes)), replicas[random.IntN(2)]}
				switch random.IntN(6) {
				case 0, 1:
					newest[at], open[at] = conn, true
					at.on.presence.Opened(at.id, conn)
				case 2, 3:
					open[at] = false
					at.on.presence.Closed(at.id, newest[at])
				case 4:
					pass(time.Duration(random.IntN(8000)) * time.Millisecond)
				case 5:
					c.setAway(random.IntN(2) == 0, at.on)
				}
			}
			c.setAway(false, replicas...)
			pass(time.Minute)
			for id := mesh.NodeID(1); id <= nodes; id++ {
				var may []string
				for _, r := range replicas {
					if at := (place{id, r}); open[at] {
						may = append(may, fmt.Sprint(r.id, newest[at]))
					}
				}
				if may == nil {
					may = []string{"offline"}
				}
				for _, r := range replicas {
					if got := r.shown(id); !slices.Contains(may, got) {
						t.Errorf("seed %d: on %s node %d is shown as %s, want one of %v", seed, r.id, id, got, may)
					}
				}
			}
		})
	}
}
