package sweep

import (
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

const moment = meshgen.Start

// world returns a snapshot after these events.
func world(evs ...mesh.Event) *mesh.Snapshot {
	s, _ := mesh.Apply(mesh.Empty(), 1, evs...)
	return s
}

// nodeOf returns the event that creates a node, after applying change to the node.
func nodeOf(id mesh.NodeID, change func(*mesh.Node)) mesh.Event {
	n := meshgen.Node(id, 1)
	change(n)
	return mesh.NodePut{Node: n}
}

func TestNodeLapsesOnceWhenItsExpiryHasPassed(t *testing.T) {
	for name, c := range map[string]struct {
		expiry mesh.Time
		lapsed bool
		want   bool
	}{
		"never":              {0, false, false},
		"to come":            {moment + 1, false, false},
		"now":                {moment, false, true},
		"passed":             {moment - 1, false, true},
		"passed, known so":   {moment - 1, true, false},
		"extended meanwhile": {moment + 1, true, false},
	} {
		evs := expired(world(nodeOf(1, func(n *mesh.Node) { n.Expiry, n.KeyExpired = c.expiry, c.lapsed })), moment)
		if got := len(evs) == 1; got != c.want {
			t.Errorf("%s: found %v", name, evs)
		}
		for _, e := range evs {
			if n := e.(mesh.NodePut).Node; !n.KeyExpired || n.UpdatedAt != moment || n.Expiry != c.expiry {
				t.Errorf("%s: %+v", name, n)
			}
		}
	}
}

func TestDeviceIsToldOnceThatItsKeyWillExpire(t *testing.T) {
	for name, c := range map[string]struct {
		expiry, updated, notice mesh.Time
		expired, want           bool
	}{
		"never":                         {},
		"in four days":                  {expiry: moment.Add(noticeBefore + time.Second)},
		"in three days":                 {expiry: moment.Add(noticeBefore), want: true},
		"told already":                  {expiry: moment.Add(time.Hour), notice: moment.Add(time.Hour)},
		"extended meanwhile":            {expiry: moment.Add(time.Hour), notice: moment, want: true},
		"passed":                        {expiry: moment},
		"expired by an administrator":   {expiry: moment.Add(time.Hour), expired: true},
		"signed in for three days only": {expiry: moment.Add(noticeBefore), updated: moment},
	} {
		evs := expiring(world(nodeOf(1, func(n *mesh.Node) {
			n.UpdatedAt = moment.Add(-30 * 24 * time.Hour)
			if c.updated != 0 {
				n.UpdatedAt = c.updated
			}
			n.Expiry, n.ExpiryNotice, n.KeyExpired = c.expiry, c.notice, c.expired
		})), moment)
		if got := len(evs) == 1; got != c.want {
			t.Errorf("%s: found %v", name, evs)
		}
		for _, e := range evs {
			if n := e.(mesh.NodePut).Node; !n.ExpiresSoon() || n.UpdatedAt == moment {
				t.Errorf("%s: %+v", name, n)
			}
		}
	}
	if got := untilExpiry(world(nodeOf(1, func(n *mesh.Node) { n.Expiry = moment.Add(noticeBefore + time.Second) })), moment); got != time.Second+expirySlack {
		t.Errorf("the next sweep is in %v", got)
	}
}

func TestReceiptsExpire(t *testing.T) {
	receipt := func(id mesh.ReceiptID, until mesh.Time) mesh.Event {
		return mesh.ReceiptPut{Receipt: &mesh.Receipt{ID: id, Owner: "key:1", Key: mesh.Secret{byte(id)}, Until: until}}
	}
	got := endedReceipts(world(receipt(1, moment-1), receipt(2, moment), receipt(3, moment+1)), moment)
	if diff := cmp.Diff([]mesh.Event{mesh.ReceiptGone{ID: 1}, mesh.ReceiptGone{ID: 2}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestExpiredInvitationsAreRemovedAndRecoveryCodesStay(t *testing.T) {
	invitation := func(id mesh.InvitationID, expiry mesh.Time) mesh.Event {
		return mesh.InvitationPut{Invitation: &mesh.Invitation{ID: id, Prefix: id.String(), User: 1, Expiry: expiry, Recovery: expiry == 0}}
	}
	got := endedInvitations(world(invitation(1, moment+1), invitation(2, moment), invitation(3, moment-1), invitation(4, 0)), moment)
	if diff := cmp.Diff([]mesh.Event{mesh.InvitationGone{ID: 2}, mesh.InvitationGone{ID: 3}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestExpiredSessionsAreRemoved(t *testing.T) {
	session := func(id mesh.SessionID, expiry mesh.Time) mesh.Event {
		return mesh.SessionPut{Session: &mesh.Session{ID: id, Prefix: id.String(), User: 1, Expiry: expiry}}
	}
	got := endedSessions(world(session(1, moment+1), session(2, moment), session(3, moment-1)), moment)
	if diff := cmp.Diff([]mesh.Event{mesh.SessionGone{ID: 2}, mesh.SessionGone{ID: 3}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSweeperWakesForTheNearestExpiry(t *testing.T) {
	s := world(
		nodeOf(1, func(n *mesh.Node) { n.Expiry = moment.Add(time.Hour) }),
		nodeOf(2, func(n *mesh.Node) { n.Expiry = moment.Add(3 * time.Second) }),
		nodeOf(3, func(n *mesh.Node) { n.Expiry, n.KeyExpired = moment.Add(time.Second), true }),
		nodeOf(4, func(n *mesh.Node) { n.Expiry = moment.Add(-time.Second) }),
		nodeOf(5, func(*mesh.Node) {}),
	)
	if got := untilExpiry(s, moment); got != 3*time.Second+expirySlack {
		t.Error(got)
	}
	if got := untilExpiry(mesh.Empty(), moment); got < 24*time.Hour {
		t.Error(got)
	}
}

func TestEphemeralNodeGetsTheWholeTimeout(t *testing.T) {
	const timeout = 30 * time.Minute
	long := moment.Add(-24 * time.Hour)
	due := moment.Add(-timeout)
	for name, c := range map[string]struct {
		created, updated mesh.Time
		presence         []mesh.Event
		durable, want    bool
	}{
		"away for the timeout":            {created: long, updated: long, presence: []mesh.Event{mesh.Offline{ID: 1, At: due}}, want: true},
		"away for less":                   {created: long, updated: long, presence: []mesh.Event{mesh.Offline{ID: 1, At: due + 1}}},
		"never came, registered just now": {created: moment, updated: moment},
		"never came, registered long ago": {created: due, updated: due, want: true},
		"registered again, not yet there": {created: long, updated: moment, presence: []mesh.Event{mesh.Offline{ID: 1, At: long}}},
		"online, last seen long ago":      {created: long, updated: long, presence: []mesh.Event{mesh.Online{ID: 1, Replica: "a", Conn: 1, At: long}}},
		"not ephemeral":                   {created: long, updated: long, durable: true},
	} {
		s := world(append([]mesh.Event{nodeOf(1, func(n *mesh.Node) {
			n.Ephemeral, n.CreatedAt, n.UpdatedAt = !c.durable, c.created, c.updated
		})}, c.presence...)...)
		if evs := idle(timeout)(s, moment); (len(evs) == 1) != c.want {
			t.Errorf("%s: found %v", name, evs)
		}
	}
}

func TestNodesOfALostReplicaAreOfflineInChunks(t *testing.T) {
	var evs []mesh.Event
	for id := mesh.NodeID(1); id <= 900; id++ {
		evs = append(evs, nodeOf(id, func(*mesh.Node) {}))
		if replica := []string{"dead", "alive", ""}[id%3]; replica != "" {
			evs = append(evs, mesh.Online{ID: id, Replica: replica, Conn: 1, At: 1})
		}
	}
	s, find := world(evs...), lostNodes(func(replica string) bool { return replica == "dead" }, nil)
	var chunks []int
	for found := find(s, moment); len(found) > 0; found = find(s, moment) {
		chunks = append(chunks, len(found))
		s, _ = mesh.Apply(s, s.Rev+1, found...)
	}
	if diff := cmp.Diff([]int{256, 44}, chunks); diff != "" || s.Nodes.OnlineCount() != 300 {
		t.Errorf("%d nodes are still online, chunks (-want +got):\n%s", s.Nodes.OnlineCount(), diff)
	}
}

func TestNodesOfALostReplicaGetLongerToReturnIfTheyAreMany(t *testing.T) {
	const router, last = 3, manyNodes + 1
	var evs []mesh.Event
	for id := mesh.NodeID(1); id <= last; id++ {
		evs = append(evs, nodeOf(id, func(n *mesh.Node) {
			if n.Routes = nil; id == router {
				n.Routes = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
			}
		}), mesh.Online{ID: id, Replica: "dead", Conn: 1, At: 1})
	}
	evs = append(evs, nodeOf(last+1, func(*mesh.Node) {}), mesh.Online{ID: last + 1, Replica: "also dead", Conn: 1, At: 1})
	s, all := world(evs...), func(string) bool { return true }
	recently := lostNodes(all, []string{"dead", "also dead"})
	want := []mesh.Event{mesh.Offline{ID: router, At: moment}, mesh.Offline{ID: last + 1, At: moment}}
	if diff := cmp.Diff(want, recently(s, moment)); diff != "" {
		t.Errorf("at first, want the router and the only node of a replica (-want +got):\n%s", diff)
	}
	s, _ = mesh.Apply(s, s.Rev+1, want...)
	if found := recently(s, moment); len(found) > 0 {
		t.Errorf("the others did not get longer because the router is offline: %v", found)
	}
	if found := lostNodes(all, nil)(s, moment); len(found) != manyNodes {
		t.Errorf("after a minute, %d nodes are offline, want all %d", len(found), manyNodes)
	}
	s, _ = mesh.Apply(s, s.Rev+1, mesh.Online{ID: 1, Replica: "alive", Conn: 1, At: 2})
	others := lostNodes(func(replica string) bool { return replica == "dead" }, []string{"dead"})
	if found := others(s, moment); len(found) != manyNodes-1 {
		t.Errorf("%d nodes are offline, want the %d that have not returned", len(found), manyNodes-1)
	}
}

func TestAnswerToALoginEnds(t *testing.T) {
	s := world(
		mesh.LoginPut{Login: &mesh.Login{ID: 1, NodeKey: meshgen.NodeKey(1), Until: moment}},
		mesh.LoginPut{Login: &mesh.Login{ID: 2, NodeKey: meshgen.NodeKey(2), Until: moment + 1}},
	)
	if diff := cmp.Diff([]mesh.Event{mesh.LoginGone{ID: 1}}, endedLogins(s, moment)); diff != "" {
		t.Error(diff)
	}
}

func TestLastRegionOfAllStays(t *testing.T) {
	relay := func(id mesh.SettingID, replica string) mesh.Event {
		return mesh.SettingPut{Setting: &mesh.Setting{
			ID: id, Key: mesh.SettingRelay + strconv.Itoa(900+int(id)), Value: `{"replica":"` + replica + `","region":{}}`, UpdatedAt: moment.Add(-time.Duration(id) * time.Second),
		}}
	}
	elsewhere := func(text string) mesh.Event {
		return mesh.SettingPut{Setting: &mesh.Setting{ID: 99, Key: mesh.SettingRelays, Value: text}}
	}
	for name, c := range map[string]struct {
		settings []mesh.Event
		want     []mesh.Event
	}{
		"nobody is lost":           {settings: []mesh.Event{relay(1, "alive"), relay(2, "alive")}},
		"one of two":               {settings: []mesh.Event{relay(1, "dead"), relay(2, "alive")}, want: []mesh.Event{mesh.SettingGone{ID: 1}}},
		"the only one":             {settings: []mesh.Event{relay(1, "dead")}},
		"all: the newest stays":    {settings: []mesh.Event{relay(1, "dead"), relay(2, "dead"), relay(3, "dead")}, want: []mesh.Event{mesh.SettingGone{ID: 3}, mesh.SettingGone{ID: 2}}},
		"others elsewhere":         {settings: []mesh.Event{relay(1, "dead"), elsewhere(`{"Regions":{"1":{}}}`)}, want: []mesh.Event{mesh.SettingGone{ID: 1}}},
		"none elsewhere":           {settings: []mesh.Event{relay(1, "dead"), elsewhere(`{"Regions":{}}`)}},
		"something else elsewhere": {settings: []mesh.Event{relay(1, "dead"), elsewhere(`[]`)}},
		"owner cannot be read": {settings: []mesh.Event{relay(1, "alive"), mesh.SettingPut{Setting: &mesh.Setting{
			ID: 7, Key: mesh.SettingRelay + "907", Value: "?",
		}}}},
	} {
		got := lostRelays(func(replica string) bool { return replica == "dead" })(world(c.settings...), moment)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestReplicaIsLostAfterItsSilence(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	type look struct {
		after  time.Duration
		steady bool
		alive  []string
		want   []string // the replicas that are lost by then
		loss   bool
	}
	both, own := []string{"self", "other"}, []string{"self"}
	for name, looks := range map[string][]look{
		"silent for ten seconds": {
			{after: 0, steady: true, alive: both},
			{after: 5 * time.Second, steady: true, alive: both},
			{after: 14 * time.Second, steady: true, alive: own},
			{after: 15 * time.Second, steady: true, alive: own, want: []string{"other"}, loss: true},
			{after: 17 * time.Second, steady: true, alive: own, want: []string{"other"}},
			{after: 19 * time.Second, steady: true, alive: both},
		},
		"silent for a minute": {
			{after: 0, steady: true, alive: both},
			{after: 59 * time.Second, steady: true, alive: own, want: []string{"other"}, loss: true},
			{after: 60 * time.Second, steady: true, alive: own, want: []string{"other"}, loss: true},
			{after: 62 * time.Second, steady: true, alive: own, want: []string{"other"}},
		},
		"never seen": {
			{after: 58 * time.Second, steady: true, alive: own},
			{after: 60 * time.Second, steady: true, alive: own, want: []string{"other"}, loss: true},
			{after: 62 * time.Second, steady: true, alive: own, want: []string{"other"}},
		},
		"own beats failed": {
			{after: 0, steady: true, alive: both},
			{after: 30 * time.Second, alive: own},
			{after: 39 * time.Second, steady: true, alive: own},
			{after: 40 * time.Second, steady: true, alive: own, want: []string{"other"}, loss: true},
		},
		"own beats fail since the start": {
			{after: 70 * time.Second, alive: own},
			{after: 129 * time.Second, steady: true, alive: own},
			{after: 130 * time.Second, steady: true, alive: own, want: []string{"other"}, loss: true},
		},
		"long forgotten": {
			{after: 0, steady: true, alive: both},
			{after: 2 * time.Hour, steady: true, alive: own, want: []string{"other"}, loss: true},
			{after: 3 * time.Hour, steady: true, alive: own, want: []string{"other"}},
		},
	} {
		r := replicaWatch{self: "self", since: start, last: start, seen: map[string]time.Time{}}
		for _, l := range looks {
			now := start.Add(l.after)
			if loss := r.observe(now, l.steady, l.alive); loss != l.loss {
				t.Errorf("%s, after %v: loss %v", name, l.after, loss)
			}
			var got []string
			for _, replica := range []string{"", "self", "other"} {
				if r.lost(now)(replica) {
					got = append(got, replica)
				}
			}
			if diff := cmp.Diff(l.want, got); diff != "" {
				t.Errorf("%s, after %v (-want +got):\n%s", name, l.after, diff)
			}
			if recently := len(r.lostRecently(now)) > 0; recently != (l.want != nil && name != "never seen" && name != "own beats fail since the start" && l.after < time.Minute) {
				t.Errorf("%s, after %v: lost recently: %v", name, l.after, recently)
			}
		}
	}
}
