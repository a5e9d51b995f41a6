package control_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/test/waittest"
)

// These are the nodes of all tests about sessions. The users are user1 and user2.
const (
	laptop1 mesh.NodeID = iota + 1 // of user1
	laptop2                        // of user2
	server                         // tag:server
	builder                        // tag:ci
	second1                        // of user1
)

// sessions commits the nodes and a policy with these SSH rules.
func sessions(t *testing.T, commit func(*testing.T, ...mesh.Event), rules string) {
	t.Helper()
	tagged := func(id mesh.NodeID, tag string) mesh.Event {
		n := meshgen.Node(id, 0)
		n.Tags = []string{tag}
		return mesh.NodePut{Node: n}
	}
	commit(t,
		mesh.UserPut{User: meshgen.User(1)}, mesh.UserPut{User: meshgen.User(2)},
		mesh.NodePut{Node: meshgen.Node(laptop1, 1)}, mesh.NodePut{Node: meshgen.Node(laptop2, 2)},
		tagged(server, "tag:server"), tagged(builder, "tag:ci"), mesh.NodePut{Node: meshgen.Node(second1, 1)},
	)
	commit(t, shellPolicy(1, rules))
}

func shellPolicy(version mesh.PolicyVersion, rules string) mesh.Event {
	return mesh.PolicyPut{Policy: &mesh.Policy{Version: version, Text: `{"tagOwners": {"tag:server": [], "tag:ci": []}, "ssh": [` + rules + `]}`}}
}

func (s service) commit(t *testing.T, evs ...mesh.Event) {
	t.Helper()
	if _, err := s.ledger.Commit(t.Context(), admin, func(*policy.World, mesh.Time) ([]mesh.Event, error) { return evs, nil }); err != nil {
		t.Fatal(err)
	}
}

// question returns the request that the destination of a session sends.
func question(src, dst mesh.NodeID, user string) control.SSHAsk {
	return control.SSHAsk{SSHSession: control.SSHSession{Src: src, Dst: dst, User: user}, MachineKey: meshgen.MachineKey(uint64(dst))}
}

// asks sends one request and returns the response.
func asks(t *testing.T, s *control.Service, q control.SSHAsk) control.SSHAnswer {
	t.Helper()
	answer, err := s.SSH.Check(t.Context(), mesh.Actor{Addr: "192.0.2.7"}, q)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// waits sends requests until one is held, and returns the channel for its response.
func waits(t *testing.T, s *control.Service, q control.SSHAsk) <-chan control.SSHAnswer {
	t.Helper()
	first := asks(t, s, q)
	if first.Verdict != control.SSHAskAgain || !strings.Contains(first.Message, "fairlead ssh approve "+q.Code()) {
		t.Fatalf("the first answer is %+v", first)
	}
	held := make(chan control.SSHAnswer, 1)
	ctx := t.Context()
	go func() {
		defer close(held)
		for q.Since = first.Since; ; {
			answer, err := s.SSH.Check(ctx, mesh.Actor{Addr: "192.0.2.7"}, q)
			if err != nil || answer.Verdict != control.SSHAskAgain {
				held <- answer
				return
			}
			q.Since = answer.Since
		}
	}()
	synctest.Wait()
	return held
}

const (
	checkServers = `{"action": "check", "src": ["user1@"], "dst": ["tag:server"], "users": ["autogroup:nonroot", "root"], "checkPeriod": "20m"}`
	checkAlways  = `{"action": "check", "src": ["user1@"], "dst": ["tag:server"], "users": ["deploy"], "checkPeriod": "always"}`
)

func TestFirstRuleOfSSHThatFitsDecides(t *testing.T) {
	accept := func(src, dst, users string) string {
		return fmt.Sprintf(`{"action": "accept", "src": [%q], "dst": [%q], "users": [%q]}`, src, dst, users)
	}
	check := func(src, dst, users string) string {
		return strings.Replace(accept(src, dst, users), "accept", "check", 1)
	}
	rules := strings.Join([]string{
		accept("user1@", "tag:server", "deploy"),
		check("user1@", "tag:server", "autogroup:nonroot"),
		check("user2@", "tag:server", "root"),
		check("tag:ci", "tag:server", "build"),
		check("autogroup:member", "autogroup:self", "autogroup:nonroot"),
	}, ",")
	s := open(t)
	sessions(t, s.commit, rules)
	for _, c := range []struct {
		src, dst mesh.NodeID
		user     string
		want     control.SSHVerdict
	}{
		{laptop1, server, "deploy", control.SSHAccept}, // the rule that requires an approval comes later
		{laptop1, server, "ana", control.SSHAskAgain},
		{second1, server, "ana", control.SSHAskAgain},
		{laptop1, server, "root", control.SSHReject}, // nonroot is not root
		{laptop1, server, "", control.SSHReject},
		{laptop2, server, "root", control.SSHAskAgain},
		{laptop2, server, "Root", control.SSHReject},
		{laptop2, server, "deploy", control.SSHReject},
		{builder, server, "build", control.SSHAskAgain},
		{builder, server, "deploy", control.SSHReject},
		{server, builder, "build", control.SSHReject},
		{laptop1, second1, "ana", control.SSHAskAgain},
		{laptop1, laptop2, "ana", control.SSHReject},
		{laptop1, second1, "a\x1b[2Jb", control.SSHReject}, // the user name is shown to administrators
		{99, server, "deploy", control.SSHReject},
	} {
		if got := asks(t, s.Service, question(c.src, c.dst, c.user)); got.Verdict != c.want || (got.Message == "") != (c.want == control.SSHAccept) {
			t.Errorf("%d to %d as %q: %+v, want %d", c.src, c.dst, c.user, got, c.want)
		}
	}
	lapsed := meshgen.Node(laptop1, 1)
	lapsed.KeyExpired = true
	s.commit(t, mesh.NodePut{Node: lapsed})
	if got := asks(t, s.Service, question(laptop1, server, "deploy")); got.Verdict != control.SSHReject {
		t.Errorf("an expired node: %+v", got)
	}
}

func TestOnlyTheTargetMayAskAboutItsSessions(t *testing.T) {
	s := open(t)
	sessions(t, s.commit, checkServers)
	q := question(laptop1, server, "root")
	q.MachineKey = meshgen.MachineKey(uint64(laptop1))
	if _, err := s.SSH.Check(t.Context(), mesh.Actor{}, q); reason(err) != control.Denied {
		t.Errorf("the source: %v", err)
	}
	if _, err := s.SSH.Check(t.Context(), mesh.Actor{}, question(laptop1, 99, "root")); reason(err) != control.NotFound {
		t.Errorf("no such node: %v", err)
	}
	if n := len(s.SSH.Waiting()); n != 0 {
		t.Errorf("%d sessions wait", n)
	}
}

func TestApprovalHoldsForItsPeriodWhereItWasGiven(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		s := open(t)
		sessions(t, s.commit, checkServers)
		q := question(laptop1, server, "root")
		held := waits(t, s.Service, q)
		list := s.SSH.Pending()
		if len(list) != 1 || list[0].Code != q.Code() || list[0].Src != laptop1 || list[0].Dst != server || list[0].User != "root" {
			t.Fatalf("pending: %+v", list)
		}
		<-time.After(150 * time.Second) // long enough for the server to hold several requests
		g, err := s.SSH.Approve(t.Context(), mesh.Actor{Kind: mesh.ActorUser, Name: "carla"}, strings.ToLower(q.Code()))
		if err != nil || g.By != "user:carla" || g.Until.Sub(g.GrantedAt) != 20*time.Minute {
			t.Fatalf("%+v, %v", g, err)
		}
		if got := <-held; got.Verdict != control.SSHAccept {
			t.Errorf("%+v", got)
		}
		if got := asks(t, s.Service, q); got.Verdict != control.SSHAccept {
			t.Errorf("the next session: %+v", got)
		}
		for _, other := range []control.SSHAsk{question(laptop1, server, "deploy"), question(second1, server, "root")} {
			if got := asks(t, s.Service, other); got.Verdict != control.SSHAskAgain {
				t.Errorf("%+v: %+v", other, got)
			}
		}
		if n := len(s.SSH.Pending()); n != 2 {
			t.Errorf("%d sessions wait", n)
		}
		<-time.After(20 * time.Minute)
		if got := asks(t, s.Service, q); got.Verdict != control.SSHAskAgain {
			t.Errorf("after its period: %+v", got)
		}
		first := g.ID
		if g, err = s.SSH.Approve(t.Context(), admin, q.Code()); err != nil || g.ID != first {
			t.Errorf("a newer answer: %+v, %v", g, err)
		}
		s.commit(t, shellPolicy(2, strings.Replace(checkServers, "20m", "5m", 1)))
		<-time.After(6 * time.Minute)
		if got := asks(t, s.Service, q); got.Verdict != control.SSHAskAgain {
			t.Errorf("after the policy made the period shorter: %+v", got)
		}
	})
}

func TestApprovalForOneSessionLetsOneIn(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		s := open(t)
		sessions(t, s.commit, checkAlways)
		q := question(laptop1, server, "deploy")
		one, other := waits(t, s.Service, q), waits(t, s.Service, q)
		if _, err := s.SSH.Approve(t.Context(), admin, q.Code()); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if len(one)+len(other) != 1 {
			t.Fatalf("%d of two sessions have an answer", len(one)+len(other))
		}
		for range s.ledger.World().SSHGrants.All() {
			t.Error("the approval was not used up")
		}
		if n := len(s.SSH.Pending()); n != 1 {
			t.Errorf("%d sessions wait", n)
		}
		if _, err := s.SSH.Approve(t.Context(), admin, q.Code()); err != nil {
			t.Fatal(err)
		}
		if a, b := <-one, <-other; a.Verdict != control.SSHAccept || b.Verdict != control.SSHAccept {
			t.Errorf("%+v, %+v", a, b)
		}
		if got := asks(t, s.Service, q); got.Verdict != control.SSHAskAgain {
			t.Errorf("a third session: %+v", got)
		}
	})
}

func TestRejectedSessionIsToldAndMayAskLater(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		s := open(t)
		sessions(t, s.commit, checkServers)
		q := question(laptop1, server, "root")
		held := waits(t, s.Service, q)
		if _, err := s.SSH.Reject(t.Context(), admin, q.Code(), "not today"); err != nil {
			t.Fatal(err)
		}
		if got := <-held; got.Verdict != control.SSHReject || got.Message != "fairlead: an administrator rejected this session\r\n" {
			t.Errorf("%+v", got)
		}
		if got := asks(t, s.Service, q); got.Verdict != control.SSHReject {
			t.Errorf("at once: %+v", got)
		}
		<-time.After(61 * time.Second)
		held = waits(t, s.Service, q)
		owner, _ := s.ledger.World().Nodes.Get(laptop1)
		if err := s.SSH.ApproveAs(t.Context(), mesh.Actor{}, q.Code(), owner.Owner, "x"); reason(err) != control.Conflict {
			t.Errorf("the owner overrules the administrator later: %v", err)
		}
		if _, err := s.SSH.Approve(t.Context(), admin, q.Code()); err != nil {
			t.Fatal(err)
		}
		if got := <-held; got.Verdict != control.SSHAccept {
			t.Errorf("%+v", got)
		}
		if _, err := s.SSH.Reject(t.Context(), admin, q.Code(), ""); err != nil { // the administrator changes the decision
			t.Fatal(err)
		}
		if got := asks(t, s.Service, q); got.Verdict != control.SSHReject {
			t.Errorf("after the approval was taken back: %+v", got)
		}
	})
}

func TestWaitingSessionFollowsThePolicy(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		s := open(t)
		sessions(t, s.commit, checkServers)
		q := question(laptop1, server, "root")
		held := waits(t, s.Service, q)
		s.commit(t, shellPolicy(2, ``))
		if got := <-held; got.Verdict != control.SSHReject {
			t.Errorf("without a rule: %+v", got)
		}
		s.commit(t, shellPolicy(3, checkServers))
		held = waits(t, s.Service, q)
		s.commit(t, shellPolicy(4, strings.NewReplacer("check\"", "accept\"", `, "checkPeriod": "20m"`, "").Replace(checkServers)))
		if got := <-held; got.Verdict != control.SSHAccept {
			t.Errorf("with a rule that accepts: %+v", got)
		}
		if _, err := s.SSH.Approve(t.Context(), admin, q.Code()); reason(err) != control.NotFound {
			t.Errorf("approved later: %v", err)
		}
	})
}

func TestSessionGivesUpAfterHalfAnHour(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		s := open(t)
		sessions(t, s.commit, checkServers)
		began := time.Now()
		got := <-waits(t, s.Service, question(laptop1, server, "root"))
		if took := time.Since(began); got.Verdict != control.SSHReject || took < 30*time.Minute || took > 32*time.Minute {
			t.Errorf("%+v after %v", got, took)
		}
		if n := len(s.SSH.Waiting()); n != 0 {
			t.Errorf("%d sessions wait", n)
		}
	})
}

func TestAbandonedSessionIsDropped(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		s := open(t)
		sessions(t, s.commit, checkServers)
		q := question(laptop1, server, "root")
		q.Since = asks(t, s.Service, q).Since
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := s.SSH.Check(ctx, mesh.Actor{}, q)
			ended <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if n := len(s.SSH.Waiting()); n != 1 {
			t.Errorf("%d sessions wait while the connection may come back", n)
		}
		<-time.After(16 * time.Second)
		if n := len(s.SSH.Waiting()); n != 0 {
			t.Errorf("%d sessions wait", n)
		}
	})
}

func TestOneNodeCannotTakeAllPlacesToWait(t *testing.T) {
	s := open(t)
	sessions(t, s.commit, checkServers)
	for i := range 16 {
		if got := asks(t, s.Service, question(laptop1, server, fmt.Sprint("u", i))); got.Verdict != control.SSHAskAgain {
			t.Fatalf("session %d: %+v", i, got)
		}
	}
	if got := asks(t, s.Service, question(laptop1, server, "more")); got.Verdict != control.SSHReject {
		t.Errorf("%+v", got)
	}
	if got := asks(t, s.Service, question(second1, server, "ana")); got.Verdict != control.SSHAskAgain {
		t.Errorf("from another node: %+v", got)
	}
	s.commit(t, shellPolicy(2, checkServers+`, {"action": "check", "src": ["user1@"], "dst": ["user1@"], "users": ["autogroup:nonroot"]}`))
	if got := asks(t, s.Service, question(laptop1, second1, "ana")); got.Verdict != control.SSHAskAgain {
		t.Errorf("another node: %+v", got)
	}
}

// Whoever added a tagged node does not own it.
func TestSessionOfATaggedNodeIsNotApprovedByAPerson(t *testing.T) {
	s := open(t)
	sessions(t, s.commit, `{"action": "check", "src": ["tag:ci"], "dst": ["tag:server"], "users": ["root"]}`)
	n, _ := s.ledger.World().Nodes.Get(builder)
	added := *n
	added.CreatedBy = 1
	s.commit(t, mesh.NodePut{Node: &added})
	q := question(builder, server, "root")
	q.SignIn = "https://mesh.example.com/oidc/ssh/"
	if got := asks(t, s.Service, q); got.Verdict != control.SSHAskAgain || strings.Contains(got.Message, q.SignIn) || !strings.Contains(got.Message, "an administrator must approve") {
		t.Errorf("%+v", got)
	}
	if err := s.SSH.ApproveAs(t.Context(), mesh.Actor{}, q.Code(), 1, "x"); reason(err) != control.NotFound {
		t.Errorf("%v", err)
	}
	if err := s.SSH.ApproveAs(t.Context(), mesh.Actor{}, q.Code(), 99, "x"); reason(err) != control.NotFound {
		t.Errorf("an unknown user: %v", err)
	}
}

func TestAnswerToACodeThatNobodyHas(t *testing.T) {
	s := open(t)
	for code, want := range map[string]control.Reason{"ABCD-EFGH": control.NotFound, "hello": control.Invalid, "": control.Invalid} {
		if _, err := s.SSH.Approve(t.Context(), admin, code); reason(err) != want {
			t.Errorf("approve %q: %v", code, err)
		}
		if _, err := s.SSH.Reject(t.Context(), admin, code, ""); reason(err) != want {
			t.Errorf("reject %q: %v", code, err)
		}
	}
}

func TestSessionIsApprovedOnAnotherReplica(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		here, there := c.start(t, "here", ""), c.start(t, "there", "")
		sessions(t, here.commit, checkServers+","+checkAlways)
		pass(time.Second)
		root := question(laptop1, server, "root")
		held := waits(t, here.Service, root)
		pass(5 * time.Second)
		if list := there.SSH.Pending(); len(list) != 1 || list[0].Code != root.Code() {
			t.Fatalf("the other replica lists %+v", list)
		}
		if _, err := there.SSH.Approve(t.Context(), admin, root.Code()); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		if got := <-held; got.Verdict != control.SSHAccept {
			t.Errorf("%+v", got)
		}
		if n := len(there.SSH.Pending()) + len(here.SSH.Pending()); n != 0 {
			t.Errorf("%d sessions wait", n)
		}
	})
}

func TestSessionWaitsOnThroughARestart(t *testing.T) {
	waittest.Bubble(t, func(t *testing.T) {
		c := newCluster(t)
		before := c.start(t, "before", "")
		sessions(t, before.commit, checkServers)
		q := question(laptop1, server, "root")
		q.Since = asks(t, before.Service, q).Since
		<-time.After(time.Minute)
		before.kill()
		after := c.start(t, "after", "")
		answer := make(chan control.SSHAnswer, 1)
		ctx := t.Context()
		go func() {
			a, _ := after.SSH.Check(ctx, mesh.Actor{}, q)
			answer <- a
		}()
		synctest.Wait()
		if list := after.SSH.Waiting(); len(list) != 1 || list[0].Code != q.Code() || list[0].Since != q.Since {
			t.Fatalf("waiting: %+v", list)
		}
		if _, err := after.SSH.Approve(t.Context(), admin, q.Code()); err != nil {
			t.Fatal(err)
		}
		if got := <-answer; got.Verdict != control.SSHAccept {
			t.Errorf("%+v", got)
		}
		after.kill()
		last := c.start(t, "last", "")
		if got := asks(t, last.Service, q); got.Verdict != control.SSHAccept {
			t.Errorf("after another restart: %+v", got)
		}
		pass(21 * time.Minute)
		for g := range last.ledger.World().SSHGrants.All() {
			t.Errorf("not swept: %+v", g)
		}
	})
}
