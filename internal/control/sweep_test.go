package control_test

import (
	"testing"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

func TestNodesOfAKilledReplicaAreOfflineSixteenSecondsLater(t *testing.T) {
	testKilledReplica(t, 60, 18*time.Second) // more than 16 seconds and a heartbeat interval
}

func TestManyNodesOfAKilledReplicaGetAMinuteToReturn(t *testing.T) {
	testKilledReplica(t, 600, 68*time.Second)
}

// testKilledReplica kills a replica, and wants those of its nodes to be offline after a time that have not connected to another one.
func testKilledReplica(t *testing.T, nodes int, after time.Duration) {
	t.Helper()
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a, b := c.start(t, "a", ""), c.start(t, "b", "")
		a.addNodes(t, mesh.NodeID(nodes))
		pass(10 * time.Second)
		for id := mesh.NodeID(1); id <= mesh.NodeID(nodes); id++ {
			a.presence.Opened(id, int64(id))
		}
		pass(time.Minute)
		a.kill()
		pass(time.Second)
		b.presence.Opened(1, 1) // node 1 reconnects at once, node 2 late
		pass(after - 5*time.Second)
		b.want(t, 2, "a2")
		b.presence.Opened(2, 2)
		pass(5 * time.Second)
		b.want(t, 1, "b1")
		b.want(t, 2, "b2")
		b.want(t, 3, "offline")
		if n := b.ledger.World().Nodes.OnlineCount(); n != 2 {
			t.Errorf("%d nodes are online", n)
		}
		chunks := (nodes-2)/ledger.MaxNodes + 1
		if events, commands := c.count(t, mesh.KindOffline); events != nodes-2 || commands != chunks {
			t.Errorf("%d nodes went offline by %d commands, want %d by %d", events, commands, nodes-2, chunks)
		}
		if n := b.metric(t, "mesh_sweep_nodes_total", "lost"); int(n) != nodes-2 {
			t.Errorf("%v were counted", n)
		}
	})
}

func TestRestartOfTheOnlyReplicaGivesNodesAMinute(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a := c.start(t, "a", "")
		a.addNodes(t, 2)
		a.presence.Opened(1, 1)
		a.presence.Opened(2, 2)
		pass(time.Minute)
		a.kill()
		pass(5 * time.Minute)
		again := c.start(t, "again", "")
		pass(30 * time.Second)
		again.presence.Opened(1, 1)
		pass(30 * time.Second)
		again.want(t, 1, "again1")
		again.want(t, 2, "a2")
		pass(10 * time.Second)
		again.want(t, 1, "again1")
		again.want(t, 2, "offline")
	})
}

func TestOutageOfTheDatabaseShowsNobodyOffline(t *testing.T) {
	for _, outage := range []time.Duration{5 * time.Second, 20 * time.Second, 5 * time.Minute} {
		waittest.Bubble(t, func(t *testing.T) {
			c := newCluster(t)
			a, b := c.start(t, "a", ""), c.start(t, "b", "")
			a.addNodes(t, 2)
			pass(time.Second)
			a.presence.Opened(1, 1)
			b.presence.Opened(2, 1)
			pass(time.Minute)
			c.setAway(true, a, b)
			pass(outage)
			if moves := outage > time.Minute; a.ledger.Cluster().Heartbeats().CutOff(time.Now()) != moves {
				t.Errorf("after %v streams should move: %v", outage, !moves)
			}
			c.setAway(false, a)
			pass(1500 * time.Millisecond) // the replicas do not reach the database again at the same time
			c.setAway(false, b)
			pass(time.Minute)
			a.want(t, 1, "a1")
			b.want(t, 2, "b1")
			if n, _ := c.count(t, mesh.KindOffline); n != 0 {
				t.Errorf("after an outage of %v, %d nodes were shown offline", outage, n)
			}
		})
	}
}

func TestReplicaThatReturnsAnnouncesItsStreams(t *testing.T) {
	// After twenty minutes the log is too short, and the replica reloads the tables.
	for _, outage := range []time.Duration{30 * time.Second, 20 * time.Minute} {
		waittest.Bubble(t, func(t *testing.T) {
			c := newCluster(t)
			a, b := c.start(t, "a", ""), c.start(t, "b", "")
			a.addNodes(t, 2)
			pass(time.Second)
			a.presence.Opened(1, 1)
			a.presence.Opened(2, 2)
			pass(time.Minute)
			c.setAway(true, a)
			pass(outage)
			b.want(t, 1, "offline")
			b.presence.Opened(2, 1) // the node has moved, which a cannot know
			pass(time.Second)
			c.setAway(false, a)
			pass(3 * time.Second)
			b.want(t, 1, "a1")
			b.want(t, 2, "b1")
		})
	}
}

func TestExpiryIsShownWhenItPasses(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a, b := c.start(t, "a", ""), c.start(t, "b", "")
		var evs []mesh.Event
		end := mesh.TimeOf(time.Now().Add(2*time.Minute + 3*time.Second))
		for id := mesh.NodeID(1); id <= 300; id++ {
			n := meshgen.Node(id, 0)
			n.Expiry = end
			evs = append(evs, mesh.NodePut{Node: n})
		}
		a.commit(t, evs...)
		a.presence.Opened(1, 1)
		pass(2*time.Minute + 3*time.Second)
		lapsed := func() (n int) {
			for node := range b.ledger.World().Nodes.All() {
				if node.KeyExpired {
					n++
				}
			}
			return n
		}
		if n := lapsed(); n != 0 {
			t.Errorf("%d nodes expired too early", n)
		}
		pass(2 * time.Second)
		if n := lapsed(); n != 300 {
			t.Errorf("%d nodes of 300 expired", n)
		}
		a.want(t, 1, "a1") // its stream is still open
		pass(time.Minute)
		if events, _ := c.count(t, mesh.KindNodePut); events != 600 {
			t.Errorf("%d changes of 300 nodes", events)
		}
		if n := a.metric(t, "mesh_sweep_nodes_total", "expired") + b.metric(t, "mesh_sweep_nodes_total", "expired"); n != 300 {
			t.Errorf("%v were counted", n)
		}
	})
}

func TestIdleEphemeralNodeIsDeleted(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		r := newCluster(t).start(t, "a", "")
		now := mesh.TimeOf(time.Now())
		for id := mesh.NodeID(1); id <= 3; id++ {
			n := meshgen.Node(id, 0)
			n.Ephemeral, n.CreatedAt, n.UpdatedAt = true, now, now
			r.commit(t, mesh.NodePut{Node: n})
		}
		r.presence.Opened(1, 1)
		r.presence.Opened(2, 2)
		pass(inactivity - 15*time.Second)
		r.want(t, 3, "offline") // never connected
		r.presence.Closed(2, 2)
		pass(30 * time.Second)
		r.want(t, 1, "a1")
		r.want(t, 2, "offline")
		r.want(t, 3, "gone")
		pass(inactivity)
		r.want(t, 1, "a1")
		r.want(t, 2, "gone")
		pass(10 * time.Minute)
		r.want(t, 1, "a1")
		if n := r.metric(t, "mesh_sweep_nodes_total", "ephemeral"); n != 2 {
			t.Errorf("%v were counted", n)
		}
	})
}

// ephemeralNode registers node 1 as an ephemeral one.
func (r *replica) ephemeralNode(t *testing.T) {
	t.Helper()
	n := meshgen.Node(1, 0)
	n.Ephemeral, n.CreatedAt = true, mesh.TimeOf(time.Now())
	n.UpdatedAt = n.CreatedAt
	r.commit(t, mesh.NodePut{Node: n})
}

func TestEphemeralNodeGetsTheWholeTimeoutAfterAStart(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		first := c.start(t, "a", "")
		first.ephemeralNode(t)
		pass(10 * time.Second)
		first.kill()
		pass(time.Hour)
		again := c.start(t, "again", "")
		pass(inactivity)
		again.want(t, 1, "offline")
		pass(30 * time.Second)
		again.want(t, 1, "gone")
	})
}

func TestEphemeralNodeGetsTheWholeTimeoutAfterAnOutage(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a := c.start(t, "a", "")
		a.ephemeralNode(t)
		pass(inactivity - 30*time.Second)
		c.setAway(true, a)
		pass(time.Hour)
		c.setAway(false, a)
		pass(inactivity)
		a.want(t, 1, "offline")
		pass(30 * time.Second)
		a.want(t, 1, "gone")
	})
}

func TestEphemeralNodeThatCameBackDuringAnOutageStays(t *testing.T) {
	for i := range 20 { // heartbeats, sweeps and retries happen in every order
		waittest.Bubble(t, func(t *testing.T) {
			c := newCluster(t)
			a := c.start(t, "a", "")
			a.ephemeralNode(t)
			a.presence.Opened(1, 1)
			pass(inactivity + 30*time.Second)
			a.presence.Closed(1, 1)
			pass(inactivity - 30*time.Second)
			c.setAway(true, a)
			pass(10 * time.Second)
			a.presence.Opened(1, 2)
			pass(time.Minute + time.Duration(i)*503*time.Millisecond)
			c.setAway(false, a)
			pass(30 * time.Second)
			a.want(t, 1, "a2")
		})
	}
}

func TestQuietSweepWritesNothing(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a, _ := c.start(t, "a", ""), c.start(t, "b", "")
		a.addNodes(t, 10)
		a.presence.Opened(1, 1)
		pass(2 * time.Minute)
		rev := a.ledger.World().Rev
		pass(10 * time.Minute)
		if now := a.ledger.World().Rev; now != rev {
			t.Errorf("revision %d became %d", rev, now)
		}
	})
}
