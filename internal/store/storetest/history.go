package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// put commits the commands as one batch.
func put(t testing.TB, s store.Store, commands ...store.Command) {
	t.Helper()
	err := s.Lock(t.Context(), headOf(t, s), Batch(), func(tx store.Tx) error {
		for _, c := range commands {
			if _, err := tx.Append(c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// historyAgrees fails unless each revision up to the head has exactly the rows that
// nextCommand gave it, and there are no other rows.
func historyAgrees(t testing.TB, s store.Store, head mesh.Revision) {
	t.Helper()
	h := s.(history.Store)
	rows, err := h.Audit(t.Context(), history.AuditQuery{Limit: 100_000})
	if err != nil || len(rows) != int(head) {
		t.Fatalf("%d audit rows at revision %d (%v)", len(rows), head, err)
	}
	list, err := h.Transitions(t.Context(), history.Position{}, history.Position{}, 100_000)
	if err != nil || len(list) != int(head) {
		t.Fatalf("%d transitions at revision %d (%v)", len(list), head, err)
	}
	for i := range rows {
		rev := mesh.Revision(i + 1)
		if rows[i].Position != (history.Position{Rev: rev}) || rows[i].Object != mesh.UserID(rev).String() {
			t.Fatalf("revision %d has the audit row %+v", rev, rows[i])
		}
		if list[i].Position != (history.Position{Rev: rev, Index: 1}) || list[i].Node != mesh.NodeID(rev) {
			t.Fatalf("revision %d has the transition %+v", rev, list[i])
		}
	}
}

func audit(t *testing.T, e Engine) {
	s := e.Open(t)
	who := mesh.Actor{Kind: mesh.ActorLocal, ID: "1000", Name: "root"}
	for id := range mesh.UserID(3) {
		put(t, s, store.Command{Actor: who, Events: user(id + 1), Audit: []history.AuditRow{
			{Verb: "created", Kind: "user", Object: (id + 1).String(), After: []byte(`{"name":"x"}`)},
			{Verb: "changed", Kind: "user", Object: (id + 1).String(), Before: []byte(`{}`), After: []byte(`{}`)},
		}})
	}
	rows, err := s.(history.Store).Audit(t.Context(), history.AuditQuery{After: history.Position{Rev: 1}, Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		if (r.Before == nil) != (len(r.Before) == 0) {
			t.Errorf("what was not there is empty instead of nil: %+v", r)
		}
		got = append(got, fmt.Sprintf("%v %s %s %s %s [%s] [%s]", r.Position, r.Actor, r.Verb, r.Kind, r.Object, r.Before, r.After))
	}
	want := []string{
		`1-1 local:root changed user 1 [{}] [{}]`,
		`2-0 local:root created user 2 [] [{"name":"x"}]`,
		`2-1 local:root changed user 2 [{}] [{}]`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// auditQueries compares the results of many queries with those of a linear search.
func auditQueries(t *testing.T, e Engine) {
	s := e.Open(t)
	h := s.(history.Store)
	r := rand.New(rand.NewPCG(7, 8))
	kinds, verbs, objects := []string{"user", "node", "route", "policy"}, []string{"created", "changed", "deleted"}, []string{"1", "2", "3", "42"}
	actors := []mesh.Actor{
		{Kind: mesh.ActorServer},
		{Kind: mesh.ActorKey, ID: "1", Name: "abc"},
		{Kind: mesh.ActorKey, ID: "2", Name: "1"},
		{Kind: mesh.ActorNode, ID: "1", Name: "a:b"},
		{Kind: mesh.ActorLocal, ID: "0"},
		{Kind: mesh.ActorUser, ID: "7", Name: "bürö", Reason: `"key"`},
	}
	for range 30 {
		var commands []store.Command
		for range 1 + r.IntN(4) {
			c := store.Command{Actor: pick(r, actors...), Events: user(1)}
			for range r.IntN(4) {
				c.Audit = append(c.Audit, history.AuditRow{Verb: pick(r, verbs...), Kind: pick(r, kinds...), Object: pick(r, objects...)})
			}
			commands = append(commands, c)
		}
		put(t, s, commands...)
	}
	all, err := h.Audit(t.Context(), history.AuditQuery{Limit: 10_000})
	if err != nil || len(all) < 50 || !slices.IsSortedFunc(all, func(a, b history.AuditRow) int { return a.Position.Compare(b.Position) }) {
		t.Fatalf("%d rows, or not in order (%v)", len(all), err)
	}
	found := 0
	for range 400 {
		q := history.AuditQuery{Newest: r.IntN(2) == 0, Limit: pick(r, 0, 1, 5, 1000)}
		some := func(draw func(row history.AuditRow)) {
			if r.IntN(4) == 0 {
				draw(pick(r, all...))
			}
		}
		some(func(row history.AuditRow) { q.After = row.Position })
		some(func(row history.AuditRow) { q.Before = pick(r, row.Position, history.EndOf(row.Position.Rev)) })
		some(func(row history.AuditRow) { q.From = row.At + pick[mesh.Time](r, -1, 0, 1) })
		some(func(row history.AuditRow) { q.To = row.At + pick[mesh.Time](r, -1, 0, 1, 1e12) })
		some(func(row history.AuditRow) { q.Kinds = []string{row.Kind, pick(r, kinds...), "none"} })
		some(func(row history.AuditRow) { q.Verbs = []string{row.Verb} })
		some(func(row history.AuditRow) { q.Object = row.Object })
		some(func(row history.AuditRow) {
			q.Actor = pick(r, string(row.Actor.Kind), string(row.Actor.Kind)+":"+row.Actor.ID, string(row.Actor.Kind)+":"+row.Actor.Name, row.Actor.Name, "nobody")
		})
		got, err := h.Audit(t.Context(), q)
		if err != nil {
			t.Fatalf("%+v: %v", q, err)
		}
		want := search(all, q)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%+v:\n%s", q, diff)
		}
		found += len(got)
	}
	if found < 400 {
		t.Errorf("only %d rows were found", found)
	}
}

// search returns the rows that match q, by a linear search.
func search(all []history.AuditRow, q history.AuditQuery) (out []history.AuditRow) {
	kind, who, one := strings.Cut(q.Actor, ":")
	for _, row := range all {
		a := row.Actor
		if q.After.Compare(row.Position) < 0 &&
			(q.Before == history.Position{} || row.Position.Compare(q.Before) < 0) &&
			row.At >= q.From && (q.To == 0 || row.At < q.To) &&
			(q.Kinds == nil || slices.Contains(q.Kinds, row.Kind)) && (q.Verbs == nil || slices.Contains(q.Verbs, row.Verb)) &&
			(q.Object == "" || row.Object == q.Object) &&
			(q.Actor == "" || string(a.Kind) == kind && (!one || a.ID == who || a.Name == who)) {
			out = append(out, row)
		}
	}
	if q.Newest {
		slices.Reverse(out)
	}
	if len(out) > q.Limit {
		out = out[:q.Limit]
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// followed reads audit rows and transitions while others write, as an event stream does.
func followed(t *testing.T, e Engine) {
	hs := handles(t, e, 3)
	h := hs[0].(history.Store)
	const batches, size = 30, 3
	const last = mesh.Revision(2 * batches * size)
	var writers sync.WaitGroup
	for _, s := range hs[1:] {
		writers.Go(func() {
			for range batches {
				if _, err := appendNext(t.Context(), s, 0, size); err != nil {
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	defer writers.Wait()
	var at history.Position
	var got []string
	for !t.Failed() {
		head := history.EndOf(headOf(t, hs[0]))
		rows, err := h.Audit(t.Context(), history.AuditQuery{After: at, Before: head, Limit: 7})
		if err != nil {
			t.Fatal(err)
		}
		list, err := h.Transitions(t.Context(), at, head, 7)
		if err != nil {
			t.Fatal(err)
		}
		if head.Rev == last && len(rows)+len(list) == 0 {
			break
		}
		for range 7 { // the next rows of both, in the order of their positions
			switch {
			case len(rows) > 0 && (len(list) == 0 || rows[0].Position.Compare(list[0].Position) < 0):
				at, rows = rows[0].Position, rows[1:]
			case len(list) > 0:
				at, list = list[0].Position, list[1:]
			default:
				continue
			}
			got = append(got, at.String())
		}
	}
	if len(got) != int(2*last) {
		t.Fatalf("read %d rows, want %d", len(got), 2*last)
	}
	for i, p := range got {
		if want := (history.Position{Rev: mesh.Revision(i/2 + 1), Index: i % 2}).String(); p != want {
			t.Fatalf("read %s where %s should follow", p, want)
		}
	}
}

func forgotten(t *testing.T, e Engine) {
	s := e.Open(t)
	h := s.(history.Store)
	if _, err := appendNext(t.Context(), s, 0, 10); err != nil {
		t.Fatal(err)
	}
	if n, err := h.Forget(t.Context(), time.Hour, 100*365*24*time.Hour); n != 0 || err != nil {
		t.Fatalf("forgot %d rows younger than an hour (%v)", n, err)
	}
	after := func(p history.Position) (int, error) {
		rows, err := h.Audit(t.Context(), history.AuditQuery{After: p, Limit: 100})
		return len(rows), err
	}
	if n, err := after(history.Position{Rev: 1}); n != 9 || err != nil {
		t.Fatalf("%d rows follow the first (%v)", n, err)
	}
	e.Exec(t, fmt.Sprintf("UPDATE audit SET at = at - %d WHERE rev <= 4", (2*time.Hour).Microseconds()))
	if n, err := h.Forget(t.Context(), time.Hour, 100*365*24*time.Hour); n != 4 || err != nil {
		t.Fatalf("forgot %d rows older than an hour, want 4 (%v)", n, err)
	}
	for p, want := range map[history.Position]int{{}: 6, {Rev: 1}: -1, {Rev: 4}: -1, history.EndOf(4): 6, {Rev: 5}: 5, {Rev: 10}: 0, history.EndOf(10): 0, {Rev: 11}: -1} {
		switch n, err := after(p); {
		case want < 0 && !errors.Is(err, history.ErrForgotten):
			t.Errorf("after %v: %d rows (%v), want the error", p, n, err)
		case want >= 0 && (n != want || err != nil):
			t.Errorf("after %v: %d rows (%v), want %d", p, n, err, want)
		}
	}
	if n, err := h.Forget(t.Context(), -time.Hour, 100*365*24*time.Hour); n != 6 || err != nil {
		t.Fatalf("forgot %d rows, want all 6 (%v)", n, err)
	}
	if n, err := after(history.Position{}); n != 0 || err != nil {
		t.Fatalf("%d rows after all were forgotten (%v)", n, err)
	}
	if n, err := after(history.Position{Rev: 5}); !errors.Is(err, history.ErrForgotten) {
		t.Fatalf("%d rows after all were forgotten (%v)", n, err)
	}
	// The transitions are pruned separately.
	if list, err := h.Transitions(t.Context(), history.Position{Rev: 1}, history.Position{}, 100); len(list) != 10 || err != nil {
		t.Fatalf("%d transitions are left (%v)", len(list), err)
	}
}

const minute = mesh.Time(60_000_000)

// noon is the start of a minute.
const noon = meshgen.Start / minute * minute

func turned(node mesh.NodeID, at mesh.Time, online bool) store.Command {
	return store.Command{Events: user(1), Presence: []history.Transition{{Node: node, At: at, Online: online}}}
}

func transitionLines(list []history.Transition) (out []string) {
	for _, t := range list {
		out = append(out, fmt.Sprintf("%v node %d at %d %t", t.Position, t.Node, t.At-noon, t.Online))
	}
	return out
}

func merged(t *testing.T, e Engine) {
	s := e.Open(t)
	h := s.(history.Store)
	second := minute / 60
	put(t, s, turned(1, noon, true), turned(1, noon+second, false), turned(1, noon+2*second, true)) // in one batch
	put(t, s, turned(1, noon+3*second, false))                                                      // and over several batches
	put(t, s, turned(1, noon+59*second, true), turned(2, noon+59*second, true))
	put(t, s, turned(1, noon+minute, false))
	put(t, s, store.Command{Events: user(1), Presence: []history.Transition{
		{Node: 1, At: noon + minute + second, Online: true},
		{Node: 1, At: noon + minute + 2*second, Online: false},
	}, Audit: []history.AuditRow{{Kind: "user", Object: "1"}}})
	list, err := h.Transitions(t.Context(), history.Position{}, history.Position{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"4-0 node 1 at 3000000 false",
		"5-0 node 1 at 59000000 true",
		"6-0 node 2 at 59000000 true",
		"8-1 node 1 at 61000000 true",
		"8-2 node 1 at 62000000 false",
	}
	if diff := cmp.Diff(want, transitionLines(list)); diff != "" {
		t.Fatal(diff)
	}
}

func presence(t *testing.T, e Engine) {
	s := e.Open(t)
	h := s.(history.Store)
	put(t, s, store.Command{Events: []mesh.Event{
		mesh.UserPut{User: meshgen.User(1)},
		mesh.NodePut{Node: meshgen.Node(1, 1)},
		mesh.NodePut{Node: meshgen.Node(2, 1)},
		mesh.NodePut{Node: meshgen.Node(3, 1)},
		mesh.NodePut{Node: meshgen.Node(4, 1)},
		mesh.Online{ID: 3, Replica: "a", Conn: 1, At: noon}, // from before transitions were stored
	}})
	put(t, s,
		turned(1, noon, true), turned(1, noon+10*minute, false), turned(1, noon+10*minute+5, true), turned(1, noon+20*minute, false),
		turned(2, noon+30*minute, false),
		turned(9, noon, true), turned(9, noon+11*minute, false), // deleted since then
		turned(8, noon, true), turned(8, noon+1, false))
	for _, ask := range []struct {
		nodes    []mesh.NodeID
		from, to mesh.Time
		want     []string
	}{
		{nil, 0, noon + 1e12, []string{
			"1 was false", "2-0 node 1 at 0 true", "3-0 node 1 at 600000000 false", "4-0 node 1 at 600000005 true", "5-0 node 1 at 1200000000 false",
			"2 was true", "6-0 node 2 at 1800000000 false", "3 was true", "4 was false",
		}},
		{nil, noon + 10*minute + 1, noon + 20*minute, []string{"1 was false", "4-0 node 1 at 600000005 true", "2 was true", "3 was true", "4 was false"}},
		{[]mesh.NodeID{1}, noon + 10*minute, noon + 10*minute + 5, []string{"1 was true", "3-0 node 1 at 600000000 false"}},
		{[]mesh.NodeID{1}, noon + 40*minute, noon + 50*minute, []string{"1 was false"}},
		{[]mesh.NodeID{2}, noon + 40*minute, noon + 50*minute, []string{"2 was false"}},
		{[]mesh.NodeID{9, 4, 9}, noon + minute, noon + 12*minute, []string{"4 was false", "9 was true", "8-0 node 9 at 660000000 false"}},
		{[]mesh.NodeID{8}, noon + minute, noon + 2*minute, []string{"8 was false"}},
		{[]mesh.NodeID{77}, noon, noon + minute, []string{"77 was false"}},
		{[]mesh.NodeID{}, noon, noon + minute, nil},
	} {
		list, err := h.Presence(t.Context(), ask.nodes, ask.from, ask.to)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range list {
			got = append(got, fmt.Sprintf("%d was %t", p.Node, p.Before))
			got = append(got, transitionLines(p.Transitions)...)
		}
		if diff := cmp.Diff(ask.want, got); diff != "" {
			t.Errorf("nodes %v from %d to %d:\n%s", ask.nodes, ask.from-noon, ask.to-noon, diff)
		}
	}
	Append(t, s, []mesh.Event{mesh.NodeGone{ID: 1}})
	if list, err := h.Presence(t.Context(), []mesh.NodeID{1}, noon, noon+minute); err != nil || len(list) != 1 || len(list[0].Transitions) != 1 {
		t.Errorf("a deleted node took its presence along: %+v (%v)", list, err)
	}
}

func transitions(t *testing.T, e Engine) {
	s := e.Open(t)
	h := s.(history.Store)
	if _, err := appendNext(t.Context(), s, 0, 6); err != nil {
		t.Fatal(err)
	}
	for _, ask := range []struct {
		after, before history.Position
		limit         int
		want          []mesh.NodeID
	}{
		{history.Position{}, history.Position{}, 100, []mesh.NodeID{1, 2, 3, 4, 5, 6}},
		{history.Position{Rev: 2}, history.Position{}, 2, []mesh.NodeID{2, 3}},
		{history.Position{Rev: 2, Index: 1}, history.EndOf(4), 100, []mesh.NodeID{3, 4}},
		{history.EndOf(4), history.Position{Rev: 6, Index: 1}, 100, []mesh.NodeID{5}},
		{history.EndOf(6), history.Position{}, 100, nil},
	} {
		list, err := h.Transitions(t.Context(), ask.after, ask.before, ask.limit)
		if err != nil {
			t.Fatal(err)
		}
		var got []mesh.NodeID
		for _, v := range list {
			got = append(got, v.Node)
		}
		if diff := cmp.Diff(ask.want, got); diff != "" {
			t.Errorf("after %v and before %v:\n%s", ask.after, ask.before, diff)
		}
	}
	if _, err := h.Transitions(t.Context(), history.Position{Rev: 7}, history.Position{}, 1); !errors.Is(err, history.ErrForgotten) {
		t.Errorf("after what never was: %v", err)
	}
}

func oldTransitions(t *testing.T, e Engine) {
	s := e.Open(t)
	h := s.(history.Store)
	now := mesh.TimeOf(time.Now())
	put(t, s, turned(1, now.Add(-2*time.Hour), true), turned(2, now.Add(-2*time.Hour), false), turned(1, now.Add(-time.Minute), false))
	if n, err := h.Forget(t.Context(), time.Hour, time.Hour); n != 2 || err != nil {
		t.Fatalf("forgot %d transitions, want 2 (%v)", n, err)
	}
	list, err := h.Transitions(t.Context(), history.EndOf(2), history.Position{}, 10)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d transitions are left (%v)", len(list), err)
	}
	if _, err := h.Transitions(t.Context(), history.Position{Rev: 1}, history.Position{}, 10); !errors.Is(err, history.ErrForgotten) {
		t.Fatalf("after one that is gone: %v", err)
	}
	before, err := h.Presence(t.Context(), []mesh.NodeID{1}, now.Add(-time.Hour), now)
	if err != nil || len(before) != 1 || !before[0].Before {
		t.Fatalf("the state before what is kept: %+v (%v)", before, err)
	}
}
