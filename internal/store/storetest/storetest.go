// Package storetest is the conformance suite that every engine of package store must pass. It is not for
// production code.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// Engine is one engine with one empty database.
type Engine struct {
	// Open returns a new handle on the database, as another replica would.
	Open func(t testing.TB) store.Store
	// Shared means that several handles may be open at once.
	Shared bool
	// Spec identifies the database so that a child process can open it; see Child.
	Spec string
	// Exec executes one SQL statement outside the store.
	Exec func(t testing.TB, statement string)
}

// Run runs the suite; fresh returns an engine with an empty database.
func Run(t *testing.T, fresh func(t *testing.T) Engine) {
	for name, rule := range map[string]func(*testing.T, Engine){
		"RevisionsHaveNoGapsAndKeepOrder":    noGaps,
		"ReadersSeeRevisionsInOrder":         readersSeeOrder,
		"OwnWriteIsRead":                     ownWrite,
		"RefusedBatchLeavesNothing":          refused,
		"LoadEqualsReplay":                   loadEqualsReplay,
		"EveryFieldIsKept":                   everyField,
		"PrunedLogAsksForLoad":               prune,
		"LogBehindTheReaderAsksForLoad":      behind,
		"UnknownKindAsksForLoad":             unknownKind,
		"CountersOutliveAnotherVersion":      otherCounters,
		"TimeNeverGoesBack":                  timeMoves,
		"AuditIsWrittenWithTheLog":           audit,
		"AuditAnswersEveryQuery":             auditQueries,
		"FollowersOfTheHistoryMissNothing":   followed,
		"ForgottenPositionIsRefused":         forgotten,
		"PresenceIsMergedPerMinute":          merged,
		"PresenceKnowsTheStateBefore":        presence,
		"TransitionsFollowAPosition":         transitions,
		"OldTransitionsAreForgotten":         oldTransitions,
		"LeadersAreKeptAsLongAsTheAudit":     leaders,
		"EveryVersionOfThePolicyStays":       policies,
		"DeadLettersAreBounded":              deadLetters,
		"BeatsAreSeenByAll":                  beats,
		"ProbeLeavesNothing":                 probe,
		"CommitGivesAHint":                   hint,
		"KilledBeforeCommitLeavesNothing":    killedInside,
		"StoppedBeforeCommitLosesTheLock":    stoppedInside,
		"KilledAnywhereLosesNothingPromised": killedAnywhere,
	} {
		t.Run(name, func(t *testing.T) { rule(t, fresh(t)) })
	}
}

// Batch returns a random batch id.
func Batch() (id store.BatchID) {
	for i := range id {
		id[i] = byte(rand.Uint32())
	}
	return id
}

// Append commits commands as one batch on top of the current head.
func Append(t testing.TB, s store.Store, commands ...[]mesh.Event) (last mesh.Revision) {
	t.Helper()
	err := s.Lock(t.Context(), headOf(t, s), Batch(), func(tx store.Tx) error {
		if _, err := tx.Missed(); err != nil {
			return err
		}
		for _, evs := range commands {
			rev, err := tx.Append(store.Command{Actor: mesh.Actor{Kind: mesh.ActorServer}, Events: evs})
			if err != nil {
				return err
			}
			last = rev
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return last
}

func headOf(t testing.TB, s store.Store) mesh.Revision {
	t.Helper()
	snap, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snap.Rev
}

func user(id mesh.UserID) []mesh.Event { return []mesh.Event{mesh.UserPut{User: meshgen.User(id)}} }

// handles opens n handles, or returns the same one n times if only one may be open.
func handles(t *testing.T, e Engine, n int) []store.Store {
	list := make([]store.Store, n)
	for i := range list {
		if i == 0 || e.Shared {
			list[i] = e.Open(t)
		} else {
			list[i] = list[0]
		}
	}
	return list
}

// nextCommand returns a command that puts a user whose id is the revision, with an audit row and a transition
// of the same id.
func nextCommand(rev mesh.Revision) store.Command {
	return store.Command{
		Actor: mesh.Actor{Kind: mesh.ActorServer}, Events: user(mesh.UserID(rev)),
		Audit:    []history.AuditRow{{Verb: "created", Kind: "user", Object: mesh.UserID(rev).String()}},
		Presence: []history.Transition{{Node: mesh.NodeID(rev), At: meshgen.Start, Online: true}},
	}
}

// appendNext commits n commands of nextCommand as one batch.
func appendNext(ctx context.Context, s store.Store, after mesh.Revision, n int) (revs []mesh.Revision, err error) {
	err = s.Lock(ctx, after, Batch(), func(tx store.Tx) error {
		for range n {
			rev, err := tx.Append(nextCommand(tx.Head() + 1))
			if err != nil {
				return err
			}
			revs = append(revs, rev)
		}
		return nil
	})
	return revs, err
}

func noGaps(t *testing.T, e Engine) {
	const writers, batches = 4, 15
	var mu sync.Mutex
	got := map[mesh.Revision]int{}
	var wg sync.WaitGroup
	for _, s := range handles(t, e, writers) {
		wg.Go(func() {
			for n := range batches {
				revs, err := appendNext(t.Context(), s, 0, 1+n%3)
				if err != nil {
					t.Errorf("append: %v", err)
					return
				}
				mu.Lock()
				for _, r := range revs {
					got[r]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for rev := mesh.Revision(1); int(rev) <= len(got); rev++ {
		if got[rev] != 1 {
			t.Fatalf("revision %d was given %d times", rev, got[rev])
		}
	}
}

func readersSeeOrder(t *testing.T, e Engine) {
	hs := handles(t, e, 3)
	ctx, stop := context.WithCancel(t.Context())
	var writers, readers sync.WaitGroup
	for _, s := range hs[1:] {
		writers.Go(func() {
			for range 40 {
				if _, err := appendNext(ctx, s, 0, 2); err != nil {
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	readers.Go(func() {
		at := mesh.Revision(0)
		for at < 160 && ctx.Err() == nil {
			// Tail returns an error for entries with a gap.
			list, err := hs[0].Tail(ctx, store.Point{Rev: at})
			if err != nil {
				t.Errorf("tail after %d: %v", at, err)
				return
			}
			if len(list) > 0 {
				at = list[len(list)-1].Rev
			}
		}
	})
	writers.Wait()
	if t.Failed() {
		stop() // the reader waits for entries that will not come
	}
	readers.Wait()
	stop()
}

func ownWrite(t *testing.T, e Engine) {
	hs := handles(t, e, 2)
	for i := range 20 {
		revs, err := appendNext(t.Context(), hs[0], mesh.Revision(i), 1)
		if err != nil {
			t.Fatal(err)
		}
		list, err := hs[1].Tail(t.Context(), store.Point{Rev: revs[0] - 1})
		if err != nil || len(list) != 1 || list[0].Rev != revs[0] {
			t.Fatalf("committed %d, then read %v (%v)", revs[0], list, err)
		}
	}
}

func refused(t *testing.T, e Engine) {
	s := e.Open(t)
	boom := errors.New("no")
	err := s.Lock(t.Context(), 0, Batch(), func(tx store.Tx) error {
		if _, err := tx.Append(store.Command{Events: user(1), Audit: []history.AuditRow{{Verb: "created"}}, Presence: []history.Transition{{Node: 1, At: 1}}}); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Fatalf("got %v", err)
	}
	if err := s.Lock(t.Context(), 0, Batch(), func(store.Tx) error { return nil }); err != nil {
		t.Fatalf("an empty batch: %v", err)
	}
	snap, err := s.Load(t.Context())
	if err != nil || snap.Rev != 0 || snap.Users.Len() != 0 {
		t.Fatalf("a refused batch left revision %d, %d users (%v)", snap.Rev, snap.Users.Len(), err)
	}
	historyAgrees(t, s, 0)
}

// loadEqualsReplay checks that Load at revision N equals Load at M followed by the entries M+1…N.
func loadEqualsReplay(t *testing.T, e Engine) {
	hs := handles(t, e, 2)
	r := rand.New(rand.NewPCG(11, 12))
	want := mesh.Empty()
	loaded := []*mesh.Snapshot{mesh.Empty()}
	for range 25 {
		var commands [][]mesh.Event
		commands, want = meshgen.History(r, want, 1+r.IntN(20))
		Append(t, hs[0], commands...)
		if r.IntN(3) == 0 {
			s, err := hs[1].Load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			loaded = append(loaded, s)
		}
	}
	final, err := hs[1].Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if final.Digest() != want.Digest() {
		t.Fatalf("loaded snapshot differs from the one that was applied:\n%s", cmp.Diff(meshgen.Dump(want), meshgen.Dump(final)))
	}
	if diff := cmp.Diff(lookups(want), lookups(final)); diff != "" {
		t.Fatalf("loaded snapshot finds other things than the one that was applied:\n%s", diff)
	}
	for _, s := range append(loaded, final) {
		from := s.Rev
		list, err := hs[1].Tail(t.Context(), store.Point{Rev: s.Rev})
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range list {
			s, _ = mesh.Apply(s, entry.Rev, entry.Events...)
		}
		if s.Digest() != final.Digest() {
			t.Fatalf("load at %d and replay to %d differ:\n%s", from, final.Rev, cmp.Diff(meshgen.Dump(final), meshgen.Dump(s)))
		}
	}
}

// everyField stores objects of every kind, with all of their fields set.
func everyField(t *testing.T, e Engine) {
	s := e.Open(t)
	var evs []mesh.Event
	for _, e := range mesh.Events() {
		if kind := string(e.Kind()); !strings.HasSuffix(kind, ".gone") && e.Kind() != mesh.KindOffline { // those remove objects that others put
			evs = append(evs, meshgen.Fill(e))
		}
	}
	Append(t, s, evs)
	want, _ := mesh.Apply(mesh.Empty(), 1, evs...)
	got, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(meshgen.Dump(want), meshgen.Dump(got)); diff != "" || got.Digest() != want.Digest() {
		t.Errorf("put (-) and loaded (+):\n%s", diff)
	}
	letter := meshgen.Fill(mesh.DeadLetterPut{}).(mesh.DeadLetterPut).Letter
	letters, err := s.(history.Store).DeadLetters(t.Context(), letter.Webhook, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]mesh.DeadLetter{*letter}, letters); diff != "" {
		t.Errorf("put (-) and read (+):\n%s", diff)
	}
}

// lookups looks up every object in s in every possible way.
func lookups(s *mesh.Snapshot) (out []string) {
	out = append(out, fmt.Sprintf("%d online", s.Nodes.OnlineCount()))
	for u := range s.Users.All() {
		byName, ok := s.Users.ByName(u.Name)
		out = append(out, fmt.Sprintf("user %d: %t, owns %d", u.ID, ok && byName == u, s.Nodes.OwnedCount(u.ID)))
	}
	for n := range s.Nodes.All() {
		byKey, _ := s.Nodes.ByKey(n.NodeKey)
		byName, _ := s.Nodes.ByName(n.Name)
		by4, _ := s.Nodes.ByAddr(n.IPv4)
		by6, _ := s.Nodes.ByAddr(n.IPv6)
		byMachine := s.Nodes.ByMachine(n.MachineKey)
		out = append(out, fmt.Sprintf("node %d: %t %t %t %t %t", n.ID, byKey == n, byName == n, by4 == n, by6 == n, len(byMachine) == 1 && byMachine[0] == n))
	}
	for k := range s.PreAuthKeys.All() {
		byPrefix, _ := s.PreAuthKeys.ByPrefix(k.Prefix)
		out = append(out, fmt.Sprintf("pre-auth key %d: %t", k.ID, byPrefix == k))
	}
	for k := range s.APIKeys.All() {
		byPrefix, _ := s.APIKeys.ByPrefix(k.Prefix)
		out = append(out, fmt.Sprintf("API key %d: %t", k.ID, byPrefix == k))
	}
	for v := range s.Sessions.All() {
		byPrefix, _ := s.Sessions.ByPrefix(v.Prefix)
		out = append(out, fmt.Sprintf("session %d: %t", v.ID, byPrefix == v))
	}
	for l := range s.Logins.All() {
		byKey, _ := s.Logins.ByNodeKey(l.NodeKey)
		out = append(out, fmt.Sprintf("login %d: %t", l.ID, byKey == l))
	}
	for v := range s.Settings.All() {
		byKey, _ := s.Settings.ByKey(v.Key)
		out = append(out, fmt.Sprintf("setting %d: %t", v.ID, byKey == v))
	}
	for g := range s.SSHGrants.All() {
		byAsk, _ := s.SSHGrants.For(g.Src, g.Dst, g.User)
		out = append(out, fmt.Sprintf("SSH grant %d: %t", g.ID, byAsk == g))
	}
	for k := range s.Passkeys.All() {
		byCredential, _ := s.Passkeys.ByCredential(k.Credential)
		out = append(out, fmt.Sprintf("passkey %d: %t", k.ID, byCredential == k))
	}
	for i := range s.Invitations.All() {
		byPrefix, _ := s.Invitations.ByPrefix(i.Prefix)
		out = append(out, fmt.Sprintf("invitation %d: %t", i.ID, byPrefix == i))
	}
	for r := range s.Reservations.All() {
		byName, _ := s.Reservations.ByName(r.Name)
		by4, _ := s.Reservations.ByAddr(r.IPv4)
		out = append(out, fmt.Sprintf("reservation %d: %t %t", r.ID, byName == r, by4 == r))
	}
	return out
}

func prune(t *testing.T, e Engine) {
	s := e.Open(t)
	for i := range 10 {
		if _, err := appendNext(t.Context(), s, mesh.Revision(i), 1); err != nil {
			t.Fatal(err)
		}
	}
	before, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Prune(t.Context(), 6, time.Hour); n != 0 || err != nil {
		t.Fatalf("pruned %d entries younger than an hour (%v)", n, err)
	}
	if n, err := s.Prune(t.Context(), 6, -time.Hour); n != 6 || err != nil {
		t.Fatalf("pruned %d entries, want 6 (%v)", n, err)
	}
	if _, err := s.Tail(t.Context(), store.Point{Rev: 3}); !errors.Is(err, store.ErrPruned) {
		t.Fatalf("tail from before the log: %v", err)
	}
	err = s.Lock(t.Context(), 3, Batch(), func(tx store.Tx) error {
		_, err := tx.Missed()
		return err
	})
	if !errors.Is(err, store.ErrPruned) {
		t.Fatalf("lock from before the log: %v", err)
	}
	if _, err := appendNext(t.Context(), s, 3, 1); err == nil {
		t.Fatal("a writer appended without having seen all that was missed")
	}
	for rev := mesh.Revision(9); rev <= 11; rev++ { // before, at and after the newest
		if _, err := s.Tail(t.Context(), store.Point{Rev: rev, Batch: Batch()}); !errors.Is(err, store.ErrRewound) {
			t.Errorf("what follows revision %d of another history: %v", rev, err)
		}
	}
	if list, err := s.Tail(t.Context(), store.Point{Rev: 6}); err != nil || len(list) != 4 {
		t.Fatalf("tail of what is left: %d entries (%v)", len(list), err)
	}
	if _, err := s.Prune(t.Context(), 10, -time.Hour); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Tail(t.Context(), store.Point{Rev: 10}); err != nil || len(list) != 0 {
		t.Fatalf("tail of an empty log at its head: %d entries (%v)", len(list), err)
	}
	if after, err := s.Load(t.Context()); err != nil || after.Digest() != before.Digest() {
		t.Fatalf("pruning changed what is loaded (%v)", err)
	}
}

func behind(t *testing.T, e Engine) {
	s := e.Open(t)
	Append(t, s, user(1))
	if _, err := s.Tail(t.Context(), store.Point{Rev: 9}); !errors.Is(err, store.ErrRewound) {
		t.Fatalf("the log was restored to an older state: %v", err)
	}
}

func unknownKind(t *testing.T, e Engine) {
	s := e.Open(t)
	Append(t, s, user(1))
	e.Exec(t, "UPDATE log SET events = CAST('[{\"k\":\"moon.landed\",\"d\":{}}]' AS "+map[bool]string{true: "TEXT)::bytea", false: "BLOB)"}[e.Shared])
	if _, err := s.Tail(t.Context(), store.Point{Rev: 0}); !errors.Is(err, mesh.ErrUnknownKind) {
		t.Fatalf("tail: %v", err)
	}
	if snap, err := s.Load(t.Context()); err != nil || snap.Rev != 1 || snap.Users.Len() != 1 {
		t.Fatalf("load beside an unknown kind: %v", err)
	}
}

// otherCounters simulates a binary of another version, which writes the head with the counters that it knows.
func otherCounters(t *testing.T, e Engine) {
	s := e.Open(t)
	Append(t, s, []mesh.Event{mesh.WebhookPut{Webhook: &mesh.Webhook{ID: 7, URL: "https://example.com/"}}})
	e.Exec(t, `UPDATE head SET counters = '{"user":0,"node":0,"preAuth":0,"api":0,"moon":5,"v4":"","v6":""}'`)
	snap, err := s.Load(t.Context())
	if err != nil || snap.Counters.Webhook != 7 {
		t.Fatalf("an older binary forgot a counter, and the next webhook is %d (%v)", snap.Counters.Webhook+1, err)
	}
	Append(t, s, user(1))
	e.Exec(t, `INSERT INTO settings (id, key, value, source, pinned, updated_at) SELECT 1, 'moon', counters, 'x', 0, 0 FROM head`)
	if snap, err = s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if kept, _ := snap.Settings.ByKey("moon"); !strings.Contains(kept.Value, `"moon":5`) {
		t.Errorf("the counter of a newer binary is lost: %s", kept.Value)
	}
}

func timeMoves(t *testing.T, e Engine) {
	s := e.Open(t)
	ahead := mesh.TimeOf(time.Now().Add(time.Hour))
	e.Exec(t, fmt.Sprintf("UPDATE head SET at = %d", ahead))
	for i := range 3 {
		err := s.Lock(t.Context(), mesh.Revision(i), Batch(), func(tx store.Tx) error {
			if tx.Now() < ahead {
				t.Errorf("batch at %v after one at %v", tx.Now().Time(), ahead.Time())
			}
			_, err := tx.Append(store.Command{Events: user(1)})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func beats(t *testing.T, e Engine) {
	hs := handles(t, e, 2)
	if _, err := hs[0].Beat(t.Context(), store.Report{ID: "a", Rev: 7, Digest: "d"}); err != nil {
		t.Fatal(err)
	}
	id := store.ReplicaID("b")
	if !e.Shared {
		id = "a"
	}
	reports, err := hs[1].Beat(t.Context(), store.Report{ID: id, Rev: 7, Digest: "d"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[bool]int{true: 2, false: 1}[e.Shared]
	if len(reports) != want || reports[0].ID != "a" || reports[0].Rev != 7 || reports[0].Digest != "d" || reports[0].Age < 0 || reports[0].Age > 10*time.Second {
		t.Fatalf("got %+v, want %d reports", reports, want)
	}
}

// probe checks that a probe changes nothing, and fails while another writer holds the head.
func probe(t *testing.T, e Engine) {
	s := e.Open(t)
	Append(t, s, user(1))
	before, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Probe(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Tail(t.Context(), store.Point{Rev: before.Rev, Batch: before.Batch}); err != nil {
		t.Fatal(err)
	}
	after, err := s.Load(t.Context())
	if err != nil || after.Digest() != before.Digest() {
		t.Errorf("a probe changed something (%v)", err)
	}
	reports, err := s.Beat(t.Context(), store.Report{ID: "b"})
	if err != nil || len(reports) != 1 || reports[0].ID != "b" {
		t.Errorf("a probe left a report: %+v (%v)", reports, err)
	}
	err = s.Lock(t.Context(), before.Rev, Batch(), func(store.Tx) error {
		if err := s.Probe(t.Context(), "a"); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a probe while the head is locked: %v", err)
		}
		return nil
	})
	if err != nil && !errors.Is(err, store.ErrUnavailable) { // it may have taken too long
		t.Error(err)
	}
}

func hint(t *testing.T, e Engine) {
	if !e.Shared {
		return // no other writer is possible
	}
	hs := handles(t, e, 2)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := hs[1].Watch(ctx); err != nil {
			t.Errorf("watch: %v", err)
		}
	})
	defer wg.Wait()
	defer stop()
	<-hs[1].Changed() // it is listening now
	for i := range 3 {
		if _, err := appendNext(ctx, hs[0], mesh.Revision(i), 1); err != nil {
			t.Fatal(err)
		}
		select {
		case <-hs[1].Changed():
		case <-time.After(10 * time.Second):
			t.Fatal("no hint")
		}
	}
}
