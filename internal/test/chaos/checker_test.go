package chaos_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/test/chaos"
)

// history is a small run, reported to a checker step by step.
type history struct {
	t       *testing.T
	checker *chaos.Checker
	tables  *mesh.Snapshot
	views   map[mesh.Revision]chaos.View
	seqs    map[string]int64
}

// begin reports a user, a single-use and a reusable key, and a node that joined with each.
func begin(t *testing.T) *history {
	h := &history{
		t: t, checker: chaos.NewChecker(), tables: mesh.Empty(),
		views: map[mesh.Revision]chaos.View{}, seqs: map[string]int64{},
	}
	h.done("a", mesh.UserPut{User: meshgen.User(1)})
	h.done("a", mesh.PreAuthKeyPut{Key: preAuth(1, false)})
	h.done("a", mesh.PreAuthKeyPut{Key: preAuth(2, true)})
	h.done("b", mesh.NodePut{Node: node(1, 1)}, mesh.PreAuthKeyPut{Key: used(1, false)})
	h.done("b", mesh.NodePut{Node: node(2, 2)}, mesh.PreAuthKeyPut{Key: used(2, true)})
	return h
}

func preAuth(id mesh.KeyID, reusable bool) *mesh.PreAuthKey {
	return &mesh.PreAuthKey{ID: id, Prefix: "prefix" + id.String(), User: 1, Reusable: reusable, Expiry: meshgen.Start + 1000, CreatedAt: meshgen.Start}
}

func used(id mesh.KeyID, reusable bool) *mesh.PreAuthKey {
	k := preAuth(id, reusable)
	k.Used = true
	return k
}

func node(id mesh.NodeID, key mesh.KeyID) *mesh.Node {
	n := meshgen.Node(id, 1)
	n.PreAuthKey = key
	return n
}

func encode(t *testing.T, evs ...mesh.Event) string {
	t.Helper()
	raw, err := mesh.EncodeEvents(evs)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// entry reports the next command in the log, which the replicas also apply.
func (h *history) entry(caller string, seq int64, evs ...mesh.Event) {
	h.t.Helper()
	h.tables, _ = mesh.Apply(h.tables, h.tables.Rev+1, evs...)
	h.views[h.tables.Rev] = chaos.View{Replica: "r", Rev: h.tables.Rev, Digest: h.tables.Digest()}
	h.checker.Entry(chaos.Entry{
		Rev: h.tables.Rev, At: meshgen.Start + mesh.Time(h.tables.Rev), Caller: caller, Seq: seq, Raw: []byte(encode(h.t, evs...)), Events: evs,
	})
}

func (h *history) answer(caller string, seq int64, o chaos.Outcome, effect mesh.Event) {
	h.t.Helper()
	h.checker.Answer(chaos.Answer{Caller: caller, Seq: seq, Outcome: o, Effect: encode(h.t, effect)})
}

// done reports a command that is in the log and acknowledged.
func (h *history) done(caller string, evs ...mesh.Event) {
	h.t.Helper()
	h.seqs[caller]++
	h.entry(caller, h.seqs[caller], evs...)
	h.answer(caller, h.seqs[caller], chaos.Done, evs[0])
}

// end reports two replicas that agree with the tables, after applying change to the
// second. It returns the sorts of all findings.
func (h *history) end(change func(*chaos.Final)) []chaos.Sort {
	f := chaos.Final{View: chaos.View{Replica: "r", Rev: h.tables.Rev, Digest: h.tables.Digest()}, Compared: 2}
	finals := []chaos.Final{f, f}
	if change != nil {
		change(&finals[1])
	}
	h.checker.Finish(h.tables, finals)
	var sorts []chaos.Sort
	for _, f := range h.checker.Findings() {
		sorts = append(sorts, f.Sort)
	}
	return sorts
}

func TestCheckerAllowsWhatIsPromised(t *testing.T) {
	for name, tell := range map[string]func(*history){
		"nothing else": func(*history) {},
		"answers before entries": func(h *history) {
			h.answer("c", 1, chaos.Done, mesh.NodeNet{ID: 1})
			h.answer("c", 2, chaos.Refused, mesh.NodeNet{ID: 1})
			h.answer("c", 3, chaos.Done, mesh.NodeGone{ID: 1})
			h.entry("c", 1, mesh.NodeNet{ID: 1})
			h.entry("c", 3, mesh.NodeGone{ID: 1})
		},
		"entries before answers": func(h *history) {
			h.entry("c", 1, mesh.NodeNet{ID: 1})
			h.entry("c", 3, mesh.NodeGone{ID: 1})
			h.answer("c", 1, chaos.Done, mesh.NodeNet{ID: 1})
			h.answer("c", 2, chaos.Failed, mesh.NodeNet{ID: 1})
			h.answer("c", 3, chaos.Done, mesh.NodeGone{ID: 1})
		},
		"a caller killed before its answer": func(h *history) { h.entry("c", 1, mesh.NodeNet{ID: 1}) },
		"unknown and written": func(h *history) {
			h.answer("c", 1, chaos.Unknown, mesh.NodeNet{ID: 1})
			h.entry("c", 1, mesh.NodeNet{ID: 1})
		},
		"unknown and not written": func(h *history) { h.answer("c", 1, chaos.Unknown, mesh.NodeNet{ID: 1}) },
		"the same node again": func(h *history) {
			h.checker.Answer(chaos.Answer{Caller: "c", Seq: 1, Outcome: chaos.Done, Idle: true, Effect: encode(h.t, mesh.NodePut{Node: node(1, 1)})})
		},
		"a reusable key again": func(h *history) { h.done("c", mesh.NodePut{Node: node(3, 2)}) },
		"what a node had, after it": func(h *history) {
			h.done("c", mesh.NodeGone{ID: 2})
			n := node(2, 2)
			n.ID = 3
			h.done("c", mesh.NodePut{Node: n})
		},
		"views behind and ahead": func(h *history) {
			h.checker.View(h.views[2])
			next, _ := mesh.Apply(h.tables, 6, mesh.NodeGone{ID: 1})
			h.checker.View(chaos.View{Replica: "r", Rev: 6, Digest: next.Digest()})
			h.done("c", mesh.NodeGone{ID: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := begin(t)
			tell(h)
			if got := h.end(nil); got != nil {
				t.Errorf("findings %v", h.checker.Findings())
			}
		})
	}
}

// broken is a history with the sort of all findings it must cause.
type broken struct {
	tell func(*history)
	want chaos.Sort
}

func find(t *testing.T, histories map[string]broken) {
	for name, b := range histories {
		t.Run(name, func(t *testing.T) {
			h := begin(t)
			b.tell(h)
			got := map[chaos.Sort]bool{}
			for _, s := range h.end(nil) {
				got[s] = true
			}
			if diff := cmp.Diff(map[chaos.Sort]bool{b.want: true}, got); diff != "" {
				t.Errorf("sorts (-want +got):\n%s%v", diff, h.checker.Findings())
			}
		})
	}
}

func TestCheckerFindsAnswersThatTheLogBelies(t *testing.T) {
	find(t, map[string]broken{
		"acknowledged, never in the log": {func(h *history) { h.answer("c", 1, chaos.Done, mesh.NodeNet{ID: 1}) }, chaos.Lost},
		"acknowledged, only a later one in the log": {func(h *history) {
			h.answer("c", 1, chaos.Done, mesh.NodeNet{ID: 1})
			h.answer("c", 2, chaos.Done, mesh.NodeNet{ID: 1})
			h.entry("c", 2, mesh.NodeNet{ID: 1})
		}, chaos.Lost},
		"acknowledged as there, never there": {func(h *history) {
			h.checker.Answer(chaos.Answer{Caller: "c", Seq: 1, Outcome: chaos.Done, Idle: true, Effect: encode(h.t, mesh.NodePut{Node: node(9, 1)})})
		}, chaos.Lost},
		"refused and written": {func(h *history) {
			h.answer("c", 1, chaos.Refused, mesh.NodeNet{ID: 1})
			h.entry("c", 1, mesh.NodeNet{ID: 1})
		}, chaos.Trace},
		"failed and written": {func(h *history) {
			h.entry("c", 1, mesh.NodeNet{ID: 1})
			h.answer("c", 1, chaos.Failed, mesh.NodeNet{ID: 1})
		}, chaos.Trace},
		"written twice": {func(h *history) {
			h.done("c", mesh.NodeNet{ID: 1})
			h.entry("c", 1, mesh.NodeNet{ID: 1})
		}, chaos.Order},
		"written out of order": {func(h *history) {
			h.entry("c", 2, mesh.NodeNet{ID: 1})
			h.entry("c", 1, mesh.NodeNet{ID: 1})
		}, chaos.Order},
		"two written while one is asked": {func(h *history) {
			h.entry("c", 1, mesh.NodeNet{ID: 1})
			h.entry("c", 2, mesh.NodeNet{ID: 1})
		}, chaos.Order},
		"another value written": {func(h *history) {
			h.entry("c", 1, mesh.NodeNet{ID: 1})
			h.answer("c", 1, chaos.Done, mesh.NodeNet{ID: 1, Net: meshgen.Net(1)})
		}, chaos.Content},
		"an error nobody planned": {func(h *history) { h.answer("c", 1, chaos.Broken, mesh.NodeNet{ID: 1}) }, chaos.Error},
	})
}

func TestCheckerFindsWhatTheLogMustNotHold(t *testing.T) {
	nodeWith := func(change func(*mesh.Node)) mesh.Event {
		n := node(3, 2)
		change(n)
		return mesh.NodePut{Node: n}
	}
	first := node(1, 1)
	find(t, map[string]broken{
		"clock goes back": {func(h *history) {
			h.tables, _ = mesh.Apply(h.tables, 6)
			h.checker.Entry(chaos.Entry{Rev: 6, At: meshgen.Start, Caller: "c", Seq: 1})
		}, chaos.Log},
		"revision left out": {func(h *history) {
			h.tables, _ = mesh.Apply(h.tables, 7)
			h.checker.Entry(chaos.Entry{Rev: 7, At: meshgen.Start + 7, Caller: "c", Seq: 1})
		}, chaos.Log},
		"revision twice": {func(h *history) { h.checker.Entry(chaos.Entry{Rev: 5, At: meshgen.Start + 7, Caller: "c", Seq: 1}) }, chaos.Log},
		"same IPv4 address": {func(h *history) {
			h.done("c", nodeWith(func(n *mesh.Node) { n.IPv4 = first.IPv4 }))
		}, chaos.Shared},
		"same IPv6 address": {func(h *history) {
			h.done("c", nodeWith(func(n *mesh.Node) { n.IPv6 = first.IPv6 }))
		}, chaos.Shared},
		"same name": {func(h *history) {
			h.done("c", nodeWith(func(n *mesh.Node) { n.Name = first.Name }))
		}, chaos.Shared},
		"same node key": {func(h *history) {
			h.done("c", nodeWith(func(n *mesh.Node) { n.NodeKey = first.NodeKey }))
		}, chaos.Shared},
		"same machine": {func(h *history) {
			h.done("c", nodeWith(func(n *mesh.Node) { n.MachineKey = first.MachineKey }))
		}, chaos.Shared},
		"same user name in capitals": {func(h *history) {
			h.done("c", mesh.UserPut{User: &mesh.User{ID: 2, Name: "USER1"}})
		}, chaos.Shared},
		"id of another machine": {func(h *history) {
			h.done("c", nodeWith(func(n *mesh.Node) { n.ID = 1 }))
		}, chaos.Reused},
		"id after its end": {func(h *history) {
			h.done("c", mesh.NodeGone{ID: 2})
			h.done("c", mesh.NodePut{Node: node(2, 2)})
		}, chaos.Reused},
		"single-use key again":        {func(h *history) { h.done("c", mesh.NodePut{Node: node(3, 1)}) }, chaos.Admitted},
		"key that is not there":       {func(h *history) { h.done("c", mesh.NodePut{Node: node(3, 9)}) }, chaos.Admitted},
		"single-use key used up":      {func(h *history) { admitBy(h, used(3, false)) }, chaos.Admitted},
		"key past its end":            {func(h *history) { admitBy(h, &mesh.PreAuthKey{ID: 3, Prefix: "p", Expiry: meshgen.Start}) }, chaos.Admitted},
		"report for a node not there": {func(h *history) { h.done("c", mesh.NodeNet{ID: 9}) }, chaos.Stale},
		"removal of what is gone":     {func(h *history) { h.done("c", mesh.UserGone{ID: 9}) }, chaos.Stale},
	})
}

func TestCheckerFindsStatesThatTheLogDoesNotGive(t *testing.T) {
	find(t, map[string]broken{
		"a past view differs": {func(h *history) { h.checker.View(chaos.View{Rev: 2, Digest: h.views[3].Digest}) }, chaos.Digest},
		"a coming view differs": {func(h *history) {
			h.checker.View(chaos.View{Rev: 6, Digest: h.views[5].Digest})
			h.done("c", mesh.NodeNet{ID: 1})
		}, chaos.Digest},
		"a view beyond the log": {func(h *history) { h.checker.View(chaos.View{Rev: 6}) }, chaos.Digest},
		"other tables":          {func(h *history) { h.tables, _ = mesh.Apply(h.tables, 5, mesh.NodeGone{ID: 1}) }, chaos.Digest},
	})
}

func admitBy(h *history, k *mesh.PreAuthKey) {
	h.done("c", mesh.PreAuthKeyPut{Key: k})
	h.done("c", mesh.NodePut{Node: node(3, k.ID)})
}

func TestCheckerFindsReplicasThatEndApart(t *testing.T) {
	for name, change := range map[string]func(*chaos.Final){
		"other digest":           func(f *chaos.Final) { f.Digest = "other" },
		"other revision":         func(f *chaos.Final) { f.Rev-- },
		"a mismatch in the past": func(f *chaos.Final) { f.Mismatches = 1 },
		"heartbeats never met":   func(f *chaos.Final) { f.Compared = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]chaos.Sort{chaos.Digest}, begin(t).end(change)); diff != "" {
				t.Errorf("sorts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckerFollowsANewEpoch(t *testing.T) {
	h := begin(t)
	epoch := mesh.Epoch{Number: 1, After: h.tables.Rev, Rev: h.tables.Rev + mesh.Skipped}
	reset := chaos.Entry{Rev: epoch.Rev, At: meshgen.Start + 100, Events: []mesh.Event{mesh.HistoryReset{Epoch: epoch, Counters: h.tables.Counters}}}
	h.checker.Entry(reset)
	if found := h.checker.Findings(); len(found) > 0 || h.checker.Rev() != epoch.Rev {
		t.Errorf("at %d: %v", h.checker.Rev(), found)
	}
	reset.Rev += 2
	h.checker.Entry(reset)
	if found := h.checker.Findings(); len(found) != 1 || found[0].Sort != chaos.Log {
		t.Errorf("the same epoch again: %v", found)
	}
}

// loseTwo lets a failover lose a user and a node, and begins a new epoch at a revision.
func loseTwo(h *history, change func(*mesh.Epoch)) {
	h.t.Helper()
	kept := h.tables
	h.entry("", 0, mesh.UserPut{User: &mesh.User{ID: 2, Name: "lost", CreatedAt: meshgen.Start}})
	h.entry("", 0, mesh.NodePut{Node: node(3, 2)})
	reset := mesh.NewEpoch(kept, h.tables.Rev, h.tables.Counters, 2, mesh.Loss{From: kept.Rev + 1, To: h.tables.Rev})
	change(&reset.Epoch)
	h.checker.Entry(chaos.Entry{Rev: reset.Epoch.Rev, At: meshgen.Start + 100, Events: []mesh.Event{reset}})
	h.tables, _ = mesh.Apply(kept, reset.Epoch.Rev, reset)
}

// next reports the entry after a new epoch.
func (h *history) next(ev mesh.Event) {
	h.t.Helper()
	h.tables, _ = mesh.Apply(h.tables, h.tables.Rev+1, ev)
	h.checker.Entry(chaos.Entry{Rev: h.tables.Rev, At: meshgen.Start + 200, Raw: []byte(encode(h.t, ev)), Events: []mesh.Event{ev}})
}

func asPromised(*mesh.Epoch) {}

func TestCheckerAllowsAFailoverThatLosesChanges(t *testing.T) {
	h := begin(t)
	loseTwo(h, asPromised)
	h.next(mesh.UserPut{User: &mesh.User{ID: 200, Name: "lost", CreatedAt: meshgen.Start + 200}}) // the name is free again
	n := node(3, 2)
	n.ID = 201
	h.next(mesh.NodePut{Node: n})
	h.next(mesh.NodeGone{ID: 1})
	if got := h.end(nil); got != nil || h.checker.Tally.Rewound != 2 {
		t.Errorf("%d entries lost, findings %v", h.checker.Tally.Rewound, h.checker.Findings())
	}
}

func TestCheckerFindsAFailoverThatBreaksTheEpochRule(t *testing.T) {
	find(t, map[string]broken{
		"user ID of the lost history": {func(h *history) {
			loseTwo(h, asPromised)
			h.next(mesh.UserPut{User: &mesh.User{ID: 2, Name: "other", CreatedAt: meshgen.Start + 200}})
		}, chaos.Reused},
		"node ID of the lost history": {func(h *history) {
			loseTwo(h, asPromised)
			h.next(mesh.NodePut{Node: node(3, 2)})
		}, chaos.Reused},
		"revisions of the lost history": {func(h *history) {
			loseTwo(h, func(e *mesh.Epoch) { e.Rev = e.After + 1 })
		}, chaos.Log},
		"what was lost is still there": {func(h *history) {
			loseTwo(h, asPromised)
			h.next(mesh.UserGone{ID: 2})
		}, chaos.Stale},
		"nobody noticed": {func(h *history) {
			kept := h.tables
			h.entry("", 0, mesh.UserPut{User: &mesh.User{ID: 2, Name: "lost", CreatedAt: meshgen.Start}})
			h.tables, _ = mesh.Apply(kept, kept.Rev+1, mesh.UserPut{User: &mesh.User{ID: 2, Name: "other", CreatedAt: meshgen.Start}})
		}, chaos.Digest},
	})
}
