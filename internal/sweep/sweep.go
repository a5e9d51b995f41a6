// Package sweep removes what has expired: node keys, idle ephemeral nodes, nodes and relays
// of dead replicas, decisions that no device received, sessions and invitations of people.
package sweep

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Config configures a Sweeper. All fields are required.
type Config struct {
	Ledger     *ledger.Ledger
	Log        *slog.Logger
	Registerer prometheus.Registerer
	// Interval is the maximum time between two sweeps.
	Interval time.Duration
	// Inactivity is how long an ephemeral node may be offline.
	Inactivity time.Duration
}

// Sweeper commits what is due. It runs on every replica; sweeps are idempotent.
type Sweeper struct {
	ledger     *ledger.Ledger
	log        *slog.Logger
	interval   time.Duration
	inactivity time.Duration
	replicas   replicaWatch
	nodes      *prometheus.CounterVec
}

const (
	watchEvery = 2 * time.Second // the interval of heartbeats
	// lostAfter is how long after a replica counts as dead it is considered lost, which
	// gives its nodes time to connect to another one. unknownLostAfter is the same for
	// replicas that this one never saw: those ran before all replicas restarted, and
	// clients take longer to reconnect after such an outage.
	lostAfter        = 10 * time.Second
	unknownLostAfter = time.Minute
	// While at least manyNodes nodes of a lost replica have not returned, they are given
	// unknownLostAfter, because they are probably still connecting to other replicas. To show
	// each of them as offline and then as online would make all replicas send two updates
	// about each of them, just when they are busiest. Routers do not count, and get lostAfter.
	// Package presence does the same when many streams of one replica end.
	manyNodes   = 64
	forgetAfter = time.Hour // when a silent replica is removed from the list
	// expirySlack allows for a database clock that is slightly behind. It also limits how
	// often expiries in quick succession cause a sweep.
	expirySlack = 200 * time.Millisecond
)

// Values of the label reason.
const (
	sweptExpired   = "expired"
	sweptEphemeral = "ephemeral"
	sweptLost      = "lost"
)

// New returns a sweeper. It sweeps in Run.
func New(c Config) *Sweeper {
	now := time.Now()
	s := &Sweeper{
		ledger: c.Ledger, log: c.Log, interval: c.Interval, inactivity: c.Inactivity,
		replicas: replicaWatch{self: string(c.Ledger.Cluster().Self().ID), since: now, last: now, seen: map[string]time.Time{}},
		nodes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mesh_sweep_nodes_total", Help: "Nodes that this replica marked as expired, deleted as inactive ephemeral nodes, or marked as offline because their replica was lost.",
		}, []string{"reason"}),
	}
	for _, reason := range []string{sweptExpired, sweptEphemeral, sweptLost} {
		s.nodes.WithLabelValues(reason) // exported from the start
	}
	c.Registerer.MustRegister(s.nodes)
	return s
}

// Run sweeps until ctx ends.
func (s *Sweeper) Run(ctx context.Context) error {
	watch := time.NewTicker(watchEvery)
	defer watch.Stop()
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-watch.C:
			if !s.watch(time.Now()) {
				continue
			}
		case <-due.C:
		}
		s.sweep(ctx, time.Now())
		due.Reset(min(s.interval, untilExpiry(s.ledger.World().Snapshot, s.ledger.Now())))
	}
}

// watch updates which replicas are alive and reports whether one was lost.
func (s *Sweeper) watch(now time.Time) bool {
	beats, replicas := s.ledger.Cluster().Status()
	var alive []string
	for _, r := range replicas {
		alive = append(alive, string(r.ID))
	}
	return s.replicas.observe(now, beats.Steady(now), alive)
}

// noticeBefore is how long before a node key expires the device is told.
const noticeBefore = 3 * 24 * time.Hour

// untilExpiry returns the time until the next node key expires or the next device has to be
// told that it will.
func untilExpiry(s *mesh.Snapshot, now mesh.Time) time.Duration {
	next := time.Duration(math.MaxInt64)
	for n := range s.Nodes.All() {
		if !n.KeyExpired && n.Expiry > now {
			next = min(next, n.Expiry.Sub(now)+expirySlack)
			if notice := n.Expiry.Sub(now) - noticeBefore; notice > 0 {
				next = min(next, notice+expirySlack)
			}
		}
	}
	return next
}

func (s *Sweeper) sweep(ctx context.Context, now time.Time) {
	s.watch(now)
	lost, away := s.replicas.lost(now), idle(s.inactivity)
	if now.Sub(s.replicas.since) < s.inactivity {
		away = none // for part of the timeout nodes could not connect, or could not be shown as online
	}
	for _, f := range []struct {
		reason string
		find   finding
	}{
		{mesh.ReasonExpired, expired},
		{"node expires soon", expiring},
		{"ephemeral node inactive for too long", away},
		{"replica lost", lostNodes(lost, s.replicas.lostRecently(now))},
		{"login approval expired", endedLogins},
		{"SSH approval expired", endedSSHGrants},
		{"route overlaps the mesh's own addresses", forbiddenRoutes(s.ledger.World().Reserved)},
		{"idempotency key expired", endedReceipts},
		{"session expired", endedSessions},
		{"invitation expired", endedInvitations},
		{"replica lost", lostRelays(lost)},
	} {
		if err := s.commit(ctx, f.reason, f.find); err != nil {
			s.log.Debug("sweep failed, retrying", "reason", f.reason, "error", err)
			return
		}
	}
}

// commit commits the events of find. It first calls find on the current world, so that a
// sweep with nothing to do takes no write lock.
func (s *Sweeper) commit(ctx context.Context, reason string, find finding) error {
	for {
		before := s.ledger.World().Snapshot
		if len(find(before, s.ledger.Now())) == 0 {
			return nil
		}
		var found []mesh.Event
		_, err := s.ledger.Commit(ctx, mesh.Actor{Kind: mesh.ActorServer, Reason: reason}, func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
			found = find(w.Snapshot, now)
			return found, nil
		})
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return nil // another replica was faster, or the clock of the database is behind
		}
		s.logSwept(before, found)
	}
}

// logSwept counts and logs what was swept.
func (s *Sweeper) logSwept(before *mesh.Snapshot, found []mesh.Event) {
	offline := map[string]int{}
	for _, e := range found {
		switch e := e.(type) {
		case mesh.NodePut:
			n, ok := before.Nodes.Get(e.Node.ID)
			if ok && n.ExpiryNotice != e.Node.ExpiryNotice {
				continue // only the device has to know
			}
			if ok && n.KeyExpired == e.Node.KeyExpired {
				s.log.Warn("routes disabled: they overlap the mesh's own addresses", "node", n.ID, "name", n.Name, "routes", n.Routes, "left", e.Node.Routes)
				continue
			}
			s.nodes.WithLabelValues(sweptExpired).Inc()
			s.log.Info("node expired", "node", e.Node.ID, "name", e.Node.Name)
		case mesh.NodeGone:
			s.nodes.WithLabelValues(sweptEphemeral).Inc()
			if n, ok := before.Nodes.Get(e.ID); ok {
				s.log.Info("ephemeral node deleted", "node", n.ID, "name", n.Name, "seen", n.Seen().Time())
			}
		case mesh.Offline:
			s.nodes.WithLabelValues(sweptLost).Inc()
			if n, ok := before.Nodes.Get(e.ID); ok {
				offline[n.Presence.Replica]++
			}
		case mesh.SettingGone:
			for v := range before.Settings.All() {
				if v.ID == e.ID {
					s.log.Warn("replica lost, removing its relay from the map", "setting", v.Key)
				}
			}
		}
	}
	for _, replica := range slices.Sorted(maps.Keys(offline)) {
		s.log.Warn("replica lost, marking its nodes offline", "replica", replica, "nodes", offline[replica])
	}
}

// finding returns the events that are due at a time, for at most ledger.MaxNodes nodes.
type finding func(s *mesh.Snapshot, now mesh.Time) []mesh.Event

// expired finds nodes whose key has expired but which peers still consider valid.
func expired(s *mesh.Snapshot, now mesh.Time) []mesh.Event {
	return eachNode(s, func(n *mesh.Node) mesh.Event {
		if n.KeyExpired || !n.Expired(now) {
			return nil
		}
		lapsed := *n
		lapsed.KeyExpired, lapsed.UpdatedAt = true, now
		return mesh.NodePut{Node: &lapsed}
	})
}

// expiring finds nodes whose devices have to be told that their key will expire. Those
// that joined, or were changed, less than noticeBefore earlier are not told: a key that is
// valid for only a day would otherwise always seem about to expire. The change is
// invisible to others, so UpdatedAt stays.
func expiring(s *mesh.Snapshot, now mesh.Time) []mesh.Event {
	return eachNode(s, func(n *mesh.Node) mesh.Event {
		if n.Expiry == 0 || n.KeyExpired || n.Expired(now) || n.ExpiryNotice == n.Expiry ||
			n.Expiry.Sub(now) > noticeBefore || n.Expiry.Sub(n.UpdatedAt) <= noticeBefore {
			return nil
		}
		told := *n
		told.ExpiryNotice = n.Expiry
		return mesh.NodePut{Node: &told}
	})
}

// forbiddenRoutes finds nodes whose routes were announced or enabled before the
// range they overlap was reserved.
func forbiddenRoutes(reserved mesh.Reserved) finding {
	overlaps := func(p netip.Prefix) bool {
		_, yes := reserved.Overlap(p)
		return yes
	}
	return func(s *mesh.Snapshot, now mesh.Time) []mesh.Event {
		last := s.Counters.Route
		return eachNode(s, func(n *mesh.Node) mesh.Event {
			if !slices.ContainsFunc(n.RoutableIPs, overlaps) && !slices.ContainsFunc(n.AllRoutes, func(r mesh.Route) bool { return r.Enabled && overlaps(r.Prefix) }) {
				return nil
			}
			cleaned := *n
			cleaned.KeepRoutes(last, now, mesh.AutoApproval{Forbids: overlaps, Approves: func(netip.Prefix) bool { return false }})
			cleaned.UpdatedAt = now
			for _, r := range cleaned.AllRoutes {
				last = max(last, r.ID)
			}
			return mesh.NodePut{Node: &cleaned}
		})
	}
}

func none(*mesh.Snapshot, mesh.Time) []mesh.Event { return nil }

// idle finds ephemeral nodes that have been offline for the timeout. The timeout starts
// when the node was last online or last changed, which includes its registration.
func idle(timeout time.Duration) finding {
	return func(s *mesh.Snapshot, now mesh.Time) []mesh.Event {
		return eachNode(s, func(n *mesh.Node) mesh.Event {
			if !n.Ephemeral || n.Presence.Online || now.Sub(max(n.Seen(), n.UpdatedAt)) < timeout {
				return nil
			}
			return mesh.NodeGone{ID: n.ID}
		})
	}
}

// lostNodes finds nodes that are online on a lost replica. Of a replica that was lost
// recently and still has many nodes, it finds only routers: others take over from them.
func lostNodes(lost func(replica string) bool, recently []string) finding {
	return func(s *mesh.Snapshot, now mesh.Time) []mesh.Event {
		waiting := map[string]int{} // how many nodes of a replica have not returned
		if len(recently) > 0 {
			for n := range s.Nodes.All() {
				if n.Presence.Online && len(n.Routes) == 0 && slices.Contains(recently, n.Presence.Replica) {
					waiting[n.Presence.Replica]++
				}
			}
		}
		return eachNode(s, func(n *mesh.Node) mesh.Event {
			if !n.Presence.Online || !lost(n.Presence.Replica) || waiting[n.Presence.Replica] >= manyNodes && len(n.Routes) == 0 {
				return nil
			}
			return mesh.Offline{ID: n.ID, At: now}
		})
	}
}

func eachNode(s *mesh.Snapshot, find func(*mesh.Node) mesh.Event) (evs []mesh.Event) {
	for n := range s.Nodes.All() {
		if e := find(n); e != nil {
			if evs = append(evs, e); len(evs) == ledger.MaxNodes {
				break
			}
		}
	}
	return evs
}

// endedLogins finds decisions that no device received in time.
func endedLogins(s *mesh.Snapshot, now mesh.Time) (evs []mesh.Event) {
	for l := range s.Logins.All() {
		if l.Until.Reached(now) {
			evs = append(evs, mesh.LoginGone{ID: l.ID})
		}
	}
	return evs
}

// endedSSHGrants finds decisions on SSH sessions that have expired.
func endedSSHGrants(s *mesh.Snapshot, now mesh.Time) (evs []mesh.Event) {
	for g := range s.SSHGrants.All() {
		if g.Until.Reached(now) {
			evs = append(evs, mesh.SSHGrantGone{ID: g.ID})
		}
	}
	return evs
}

// endedReceipts finds idempotency receipts that have expired, the oldest first.
func endedReceipts(s *mesh.Snapshot, now mesh.Time) (evs []mesh.Event) {
	for m := range s.Receipts.All() {
		if !m.Until.Reached(now) || len(evs) == ledger.MaxNodes {
			break
		}
		evs = append(evs, mesh.ReceiptGone{ID: m.ID})
	}
	return evs
}

// endedSessions finds sessions that have expired.
func endedSessions(s *mesh.Snapshot, now mesh.Time) (evs []mesh.Event) {
	for v := range s.Sessions.All() {
		if v.Expiry.Reached(now) && len(evs) < ledger.MaxNodes {
			evs = append(evs, mesh.SessionGone{ID: v.ID})
		}
	}
	return evs
}

// endedInvitations finds invitations that nobody used in time. Recovery codes do not expire.
func endedInvitations(s *mesh.Snapshot, now mesh.Time) (evs []mesh.Event) {
	for v := range s.Invitations.All() {
		if v.Expiry.Reached(now) && len(evs) < ledger.MaxNodes {
			evs = append(evs, mesh.InvitationGone{ID: v.ID})
		}
	}
	return evs
}

// lostRelays finds embedded relays of lost replicas. The last region is kept: clients
// without any relay could not even determine their own address, and the replica may come
// back.
func lostRelays(lost func(replica string) bool) finding {
	return func(s *mesh.Snapshot, _ mesh.Time) (evs []mesh.Event) {
		elsewhere, embedded := s.RelaySettings()
		var dead []*mesh.Setting
		for v := range s.Settings.All() {
			if region, ok := strings.CutPrefix(v.Key, mesh.SettingRelay); ok && lost(embedded[region].Replica) {
				dead = append(dead, v)
			}
		}
		slices.SortFunc(dead, func(a, b *mesh.Setting) int { return cmp.Compare(a.UpdatedAt, b.UpdatedAt) })
		for rest := regionCount(elsewhere) + len(embedded); len(dead) > 0 && rest > 1; rest-- {
			evs, dead = append(evs, mesh.SettingGone{ID: dead[0].ID}), dead[1:]
		}
		return evs
	}
}

// regionCount counts the regions of a relay map in the clients' format.
func regionCount(text string) int {
	var m struct{ Regions map[string]json.RawMessage }
	if json.Unmarshal([]byte(text), &m) != nil {
		return 0
	}
	return len(m.Regions)
}

// replicaWatch remembers when each replica was last seen alive.
type replicaWatch struct {
	self  string
	since time.Time            // when this replica became steady; silence is measured from then
	last  time.Time            // time of the last check
	seen  map[string]time.Time // when each replica was last alive
}

// observe updates which replicas are alive and reports whether one was lost, or had been for
// long, since the last call. While this replica itself is not steady, no other is considered lost, and the
// silence of the others is measured from the end of that time.
func (r *replicaWatch) observe(now time.Time, steady bool, alive []string) (loss bool) {
	if !steady {
		r.since = now
		for replica := range r.seen {
			r.seen[replica] = now
		}
	}
	for _, replica := range alive {
		r.seen[replica] = now
	}
	due := func(at time.Time) bool { return at.After(r.last) && !at.After(now) }
	loss = due(r.since.Add(unknownLostAfter))
	for replica, at := range r.seen {
		loss = loss || due(at.Add(lostAfter)) || due(at.Add(unknownLostAfter))
		if now.Sub(at) > forgetAfter {
			delete(r.seen, replica)
		}
	}
	r.last = now
	return loss
}

// lost returns which replicas count as lost at a time. Later observations do not change it.
func (r *replicaWatch) lost(now time.Time) func(replica string) bool {
	self, since, seen := r.self, r.since, maps.Clone(r.seen)
	return func(replica string) bool {
		if replica == self || replica == "" {
			return false
		}
		if at, ok := seen[replica]; ok {
			return now.Sub(at) >= lostAfter
		}
		return now.Sub(since) >= unknownLostAfter
	}
}

// lostRecently returns the lost replicas that were alive less than unknownLostAfter ago.
func (r *replicaWatch) lostRecently(now time.Time) (list []string) {
	for replica, at := range r.seen {
		if silent := now.Sub(at); silent >= lostAfter && silent < unknownLostAfter && replica != r.self {
			list = append(list, replica)
		}
	}
	return list
}
