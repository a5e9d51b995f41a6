package control_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

const (
	nobody   = `{"acls": []}`
	everyone = `{"acls": [{"action": "accept", "src": ["*"], "dst": ["*:*"]}]}`
	ssh      = `{"acls": [{"action": "accept", "src": ["*"], "dst": ["*:22"]}]}`
)

var ada = mesh.Actor{Kind: mesh.ActorLocal, Name: "ada"}

func draft(text string) control.PolicyDraft { return control.PolicyDraft{Text: text} }

func temporary(text string) control.PolicyDraft {
	return control.PolicyDraft{Text: text, ConfirmWithin: time.Minute}
}

// policyIn returns the text in force and its version.
func policyIn(s *ledger.Ledger) (string, mesh.PolicyVersion) {
	p, ok := s.World().Policy()
	if !ok {
		return "", 0
	}
	return p.Text, p.Version
}

func wantPolicy(t *testing.T, s *ledger.Ledger, text string, v mesh.PolicyVersion) {
	t.Helper()
	if got, version := policyIn(s); got != text || version != v {
		t.Fatalf("version %v is in force: %s; want %v: %s", version, got, v, text)
	}
}

func wantReason(t *testing.T, err error, want control.Reason) {
	t.Helper()
	if got := reason(err); got != want {
		t.Fatalf("refused with %v (%v), want %v", got, err, want)
	}
}

func TestSavedPolicyIsANewVersionWithItsAuthor(t *testing.T) {
	s := open(t)
	p, err := s.Policies.Save(t.Context(), ada, control.PolicyDraft{Text: nobody, Reason: "begin closed"})
	if err != nil {
		t.Fatal(err)
	}
	want := mesh.Policy{Version: 1, Text: nobody, Source: "api", Author: "local:ada", Reason: "begin closed", SavedAt: p.SavedAt}
	if d := cmp.Diff(want, *p); d != "" || p.SavedAt == 0 {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, err := s.Policies.Save(t.Context(), ada, draft(everyone)); err != nil {
		t.Fatal(err)
	}
	wantPolicy(t, s.ledger, everyone, 2)
	all, err := s.Policies.Versions(t.Context(), 0, 0)
	if err != nil || len(all) != 2 || all[1].Text != nobody {
		t.Errorf("versions: %v, %v", all, err)
	}
}

func TestEqualTextIsNoNewVersion(t *testing.T) {
	s := open(t)
	for range 2 {
		if p, err := s.Policies.Save(t.Context(), ada, draft(nobody)); err != nil || p.Version != 1 {
			t.Fatalf("%v, %v", p, err)
		}
	}
	if p, err := s.Policies.Save(t.Context(), ada, temporary(nobody)); err != nil || p.Version != 1 || p.ConfirmBy != 0 {
		t.Errorf("%v, %v", p, err)
	}
}

func TestBadPolicyNeverBecomesLive(t *testing.T) {
	s := open(t)
	if _, err := s.Policies.Save(t.Context(), ada, draft(nobody)); err != nil {
		t.Fatal(err)
	}
	var bad *control.BadPolicy
	_, err := s.Policies.Save(t.Context(), ada, draft("{\n  \"acls\": [{\"action\": \"deny\", \"src\": [\"*\"], \"dst\": [\"*:*\"]}]\n}"))
	if !errors.As(err, &bad) || len(bad.Problems) != 1 || bad.Problems[0].Line != 2 {
		t.Errorf("%v", err)
	}
	for _, text := range []string{" ", "{", "[]", "// \x00\n{}", "// \xff\n{}"} {
		if _, err := s.Policies.Save(t.Context(), ada, draft(text)); err == nil || !errors.As(err, &bad) && reason(err) != control.Invalid {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, d := range []control.PolicyDraft{
		{Text: everyone, ConfirmWithin: time.Second},
		{Text: everyone, ConfirmWithin: 25 * time.Hour},
		{Text: everyone, ConfirmWithin: -1},
		{Text: everyone, Reason: strings.Repeat("x", 10_000)},
		{Text: everyone, Reason: "a\x1bb"},
	} {
		_, err := s.Policies.Save(t.Context(), ada, d)
		wantReason(t, err, control.Invalid)
	}
	wantPolicy(t, s.ledger, nobody, 1)
}

func TestFailingTestRefusesTheSave(t *testing.T) {
	s := open(t)
	text := "{\n\"acls\": [],\n\"tests\": [\n{\"src\": \"alice\", \"accept\": [\"100.64.0.1:22\"]}]}"
	var bad *control.BadPolicy
	if _, err := s.Policies.Save(t.Context(), ada, draft(text)); !errors.As(err, &bad) || len(bad.Failures) != 1 || bad.Failures[0].Line != 4 {
		t.Fatalf("%v", err)
	}
	wantPolicy(t, s.ledger, "", 0)
	if _, err := s.Policies.Check(strings.Replace(text, "accept", "deny", 1)); err != nil {
		t.Error(err)
	}
}

func TestOfTwoSavesFromOneVersionOneWins(t *testing.T) {
	s := open(t)
	for round := range mesh.PolicyVersion(20) {
		var wins, stale atomic.Int64
		var wg sync.WaitGroup
		for _, text := range []string{nobody, everyone, ssh} {
			wg.Go(func() {
				d := draft(text + strings.Repeat("\n", int(round)))
				d.IfVersion = &round
				switch _, err := s.Policies.Save(t.Context(), ada, d); {
				case err == nil:
					wins.Add(1)
				case reason(err) == control.Stale:
					stale.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 || stale.Load() != 2 {
			t.Fatalf("round %d: %d saved, %d stale", round, wins.Load(), stale.Load())
		}
	}
}

func TestRollbackSavesAnOldTextAgain(t *testing.T) {
	s := open(t)
	for _, text := range []string{nobody, everyone} {
		if _, err := s.Policies.Save(t.Context(), ada, draft(text)); err != nil {
			t.Fatal(err)
		}
	}
	p, err := s.Policies.Rollback(t.Context(), ada, 1, control.PolicyDraft{})
	if err != nil || p.Version != 3 || p.Text != nobody || p.Reason != "rolled back to version 1" {
		t.Fatalf("%v, %v", p, err)
	}
	for _, v := range []mesh.PolicyVersion{-1, 0, 4} {
		_, err := s.Policies.Rollback(t.Context(), ada, v, control.PolicyDraft{})
		wantReason(t, err, control.NotFound)
	}
	diff, err := s.Policies.Diff(t.Context(), 2, 0)
	if want := "--- version 2\n+++ version 3\n"; err != nil || !strings.HasPrefix(diff, want) {
		t.Errorf("%s, %v", diff, err)
	}
}

func TestPendingPolicyIsConfirmedOrReverted(t *testing.T) {
	s := open(t)
	for _, use := range []func() (*mesh.Policy, error){
		func() (*mesh.Policy, error) { return s.Policies.Confirm(t.Context(), ada, nil) },
		func() (*mesh.Policy, error) { return s.Policies.Revert(t.Context(), ada, nil) },
	} {
		_, err := use()
		wantReason(t, err, control.Conflict)
	}
	p, err := s.Policies.Save(t.Context(), ada, temporary(nobody))
	if err != nil || p.ConfirmBy != p.SavedAt.Add(time.Minute) || p.RevertTo != 0 {
		t.Fatalf("%v, %v", p, err)
	}
	_, err = s.Policies.Save(t.Context(), ada, draft(everyone))
	wantReason(t, err, control.Conflict)
	_, err = s.Policies.Rollback(t.Context(), ada, 1, control.PolicyDraft{})
	wantReason(t, err, control.Conflict)
	if p, err = s.Policies.Confirm(t.Context(), ada, nil); err != nil || p.Version != 1 || p.ConfirmBy != 0 {
		t.Fatalf("%v, %v", p, err)
	}
	if _, err := s.Policies.Save(t.Context(), ada, temporary(everyone)); err != nil {
		t.Fatal(err)
	}
	if p, err = s.Policies.Revert(t.Context(), ada, nil); err != nil || p.Version != 3 || p.Text != nobody || p.Author != "local:ada" {
		t.Fatalf("%v, %v", p, err)
	}
	wantPolicy(t, s.ledger, nobody, 3)
}

// A late confirmation must not keep what somebody else has saved since.
func TestOnlyTheVersionThatIsMeantIsConfirmed(t *testing.T) {
	s := open(t)
	bob := mesh.Actor{Kind: mesh.ActorLocal, Name: "bob"}
	p, err := s.Policies.Save(t.Context(), bob, control.PolicyDraft{Text: `{}`, ConfirmWithin: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	other := p.Version + 1
	for name, decide := range map[string]func(mesh.Actor, *mesh.PolicyVersion) (*mesh.Policy, error){
		"confirm": func(a mesh.Actor, v *mesh.PolicyVersion) (*mesh.Policy, error) {
			return s.Policies.Confirm(t.Context(), a, v)
		},
		"revert": func(a mesh.Actor, v *mesh.PolicyVersion) (*mesh.Policy, error) {
			return s.Policies.Revert(t.Context(), a, v)
		},
	} {
		if _, err := decide(ada, nil); reason(err) != control.Conflict {
			t.Errorf("%s by somebody else: %v", name, err)
		}
		if _, err := decide(bob, &other); reason(err) != control.Stale {
			t.Errorf("%s of another version: %v", name, err)
		}
	}
	if _, err := s.Policies.Confirm(t.Context(), ada, &p.Version); err != nil {
		t.Errorf("somebody else names the version: %v", err)
	}
}

func TestUnconfirmedPolicyIsReverted(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a := c.start(t, "a", "")
		if _, err := a.Policies.Save(t.Context(), ada, temporary(nobody)); err != nil {
			t.Fatal(err)
		}
		pass(59 * time.Second)
		wantPolicy(t, a.ledger, nobody, 1)
		pass(3 * time.Second)
		wantPolicy(t, a.ledger, "", 2) // there was no policy before
		if _, err := a.Policies.Save(t.Context(), ada, draft(everyone)); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Policies.Save(t.Context(), ada, temporary(nobody)); err != nil {
			t.Fatal(err)
		}
		pass(30 * time.Second)
		if _, err := a.Policies.Confirm(t.Context(), ada, nil); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Minute)
		wantPolicy(t, a.ledger, nobody, 4)
	})
}

func TestUnconfirmedPolicyIsRevertedAfterARestart(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a := c.start(t, "a", "")
		for _, d := range []control.PolicyDraft{draft(everyone), temporary(nobody)} {
			if _, err := a.Policies.Save(t.Context(), ada, d); err != nil {
				t.Fatal(err)
			}
		}
		a.kill()
		pass(time.Hour)
		a = c.start(t, "a2", "")
		pass(3 * time.Second)
		wantPolicy(t, a.ledger, everyone, 3)
		p, _ := a.ledger.World().Policy()
		if p.Author != "server" || p.Reason != "version 2 was not confirmed within 1m0s" {
			t.Errorf("%+v", p)
		}
	})
}

func TestAnyReplicaRevertsOnce(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a, b, third := c.start(t, "a", ""), c.start(t, "b", ""), c.start(t, "c", "")
		for _, d := range []control.PolicyDraft{draft(everyone), temporary(nobody)} {
			if _, err := a.Policies.Save(t.Context(), ada, d); err != nil {
				t.Fatal(err)
			}
		}
		pass(30 * time.Second)
		a.kill() // the replica that saved the policy dies
		pass(33 * time.Second)
		for _, r := range []*replica{b, third} {
			wantPolicy(t, r.ledger, everyone, 3)
		}
		if events, _ := c.count(t, mesh.KindPolicyPut); events != 3 {
			t.Errorf("%d versions, want 3", events)
		}
	})
}

func TestTestsThatBeginToFailOnlyWarn(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a := c.start(t, "a", "")
		a.addNodes(t, 1)
		n, _ := a.ledger.World().Nodes.Get(1)
		text := `{"tagOwners": {"tag:db": []}, "acls": [{"action": "accept", "src": ["*"], "dst": ["tag:db:5432"]}],
			"tests": [{"src": "autogroup:member", "deny": ["` + n.IPv4.String() + `:5432"]}]}`
		if _, err := a.Policies.Save(t.Context(), ada, draft(text)); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		if got := a.metric(t, "mesh_policy_tests_failing", ""); got != 0 {
			t.Fatalf("%v tests fail", got)
		}
		tagged := *n
		tagged.Tags, tagged.Owner = []string{"tag:db"}, 0
		a.commit(t, mesh.NodePut{Node: &tagged})
		pass(10 * time.Second)
		if got := a.metric(t, "mesh_policy_tests_failing", ""); got != 1 {
			t.Errorf("%v tests fail, want 1", got)
		}
		if w := a.PolicyWatch.Warnings(); len(w) != 1 || !strings.Contains(w[0], "policy tests have been failing") {
			t.Errorf("warnings: %q", w)
		}
		a.commit(t, mesh.NodePut{Node: n})
		pass(10 * time.Second)
		if got, w := a.metric(t, "mesh_policy_tests_failing", ""), a.PolicyWatch.Warnings(); got != 0 || len(w) != 0 {
			t.Errorf("%v tests fail, %q", got, w)
		}
	})
}

// A newer binary may have saved a text that this one cannot parse.
func TestStoredPolicyThatCannotBeReadIsNotInForce(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		a := c.start(t, "a", "")
		if _, err := a.Policies.Save(t.Context(), ada, draft(ssh)); err != nil {
			t.Fatal(err)
		}
		a.commit(t, mesh.PolicyPut{Policy: &mesh.Policy{Version: 2, Text: `{"tomorrow": true}`, Source: "api"}})
		for _, id := range []store.ReplicaID{"a", "b"} {
			if id == "b" { // b never saw the version that was active before
				a.kill()
				a = c.start(t, id, "")
			}
			if rules := a.ledger.World().Doc.Rules; len(rules) != 1 || rules[0].Line != 1 {
				t.Errorf("%s: the version before is not in force: %v", id, rules)
			}
			if w := a.PolicyWatch.Warnings(); len(w) != 1 || !strings.Contains(w[0], "policy version 2 is invalid") {
				t.Errorf("%s: warnings %q", id, w)
			}
		}
		// An automatic revert must not restore the version that cannot be parsed.
		if _, err := a.Policies.Save(t.Context(), ada, temporary(nobody)); err != nil {
			t.Fatal(err)
		}
		pass(62 * time.Second)
		wantPolicy(t, a.ledger, ssh, 4)
		if w := a.PolicyWatch.Warnings(); len(w) != 0 {
			t.Errorf("warnings %q", w)
		}
	})
}
