package control_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/store"
)

// device is a client that joins without a key.
type device struct {
	t    *testing.T
	s    service
	ask  control.Joining
	link string
	done chan control.Joined // receives the result of the join
}

// arrive returns a device that has asked to join and has received its link. It does not
// wait for approval yet; see wait.
func arrive(t *testing.T, s service, n uint64) *device {
	t.Helper()
	d := &device{t: t, s: s, done: make(chan control.Joined, 1), ask: control.Joining{
		Proven:     true,
		MachineKey: meshgen.MachineKey(n), NodeKey: meshgen.NodeKey(n), Host: control.Host{Hostname: "phone", OS: "iOS"},
	}}
	first, err := s.Joins.Join(t.Context(), mesh.Actor{Addr: "192.0.2.7"}, d.ask)
	if err != nil || first.Link == "" {
		t.Fatalf("no link: %+v, %v", first, err)
	}
	d.link, d.ask.Followup = first.Link, first.Link
	return d
}

func (d *device) wait() {
	d.t.Helper()
	ended := make(chan struct{})
	d.t.Cleanup(func() { <-ended })
	go func() {
		defer close(ended)
		answer, err := d.s.Joins.Join(d.t.Context(), mesh.Actor{Addr: "192.0.2.7"}, d.ask)
		if err == nil {
			d.done <- answer
		}
	}()
	until(d.t, func() bool { return len(d.s.Logins.Pending()) > 0 })
}

func (d *device) code() string { return identity.LoginCode(d.link) }

func until(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) { //nolint:forbidigo // nothing tells when it holds
		if time.Now().After(end) {
			t.Fatal("waited in vain")
		}
	}
}

func TestWaitingDeviceJoinsWhenItsCodeIsApproved(t *testing.T) {
	s := open(t)
	put(t, s)
	d := arrive(t, s, 1)
	d.wait()
	code := strings.ToLower(strings.ReplaceAll(d.code(), "-", ""))
	login, node, err := s.Logins.Approve(t.Context(), admin, "Alice", code)
	if err != nil || node == nil || login.User != 1 {
		t.Fatalf("%+v, %+v, %v", login, node, err)
	}
	if answer := <-d.done; answer.Node == nil || answer.Node.ID != node.ID || answer.User.Name != "alice" {
		t.Errorf("the device was told %+v", answer)
	}
	if node.Owner != 1 || node.Method != mesh.RegisterApproved || node.Hostname != "phone" {
		t.Errorf("joined as %+v", node)
	}
	if _, left := s.ledger.World().Logins.ByNodeKey(d.ask.NodeKey); left || len(s.Logins.Pending()) > 0 {
		t.Error("the answer stayed")
	}
	for _, auth := range []string{d.link, d.code()} {
		_, _, err := s.Logins.Approve(t.Context(), admin, "alice", auth)
		if reason(err) != control.Conflict || !strings.Contains(err.Error(), "has already joined as node 1 (phone)") {
			t.Errorf("approved again: %v", err)
		}
	}
}

func TestDeviceIsApprovedOnlyWithTagsThatItsUserMayGive(t *testing.T) {
	s := withPolicy(t, `{"tagOwners": {"tag:db": ["alice"], "tag:web": []}}`)
	put(t, s)
	d := arrive(t, s, 1)
	d.ask.Tags = []string{"tag:web", "tag:db"}
	d.wait()
	if diff := cmp.Diff([]string{"tag:db", "tag:web"}, s.Logins.Pending()[0].Tags); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
	const want = "the device requests tag:web, which user alice may not assign: change tagOwners in the policy, or run tailscale up on the device without --advertise-tags"
	for _, auth := range []string{d.code(), d.link} {
		if _, _, err := s.Logins.Approve(t.Context(), admin, "alice", auth); reason(err) != control.Conflict || err.Error() != want {
			t.Errorf("%v", err)
		}
	}
	if len(s.Logins.Pending()) != 1 {
		t.Error("the device was answered")
	}

	d = arrive(t, s, 2)
	d.ask.Tags = []string{"tag:db"}
	d.wait()
	until(t, func() bool { return len(s.Logins.Pending()) == 2 })
	_, node, err := s.Logins.Approve(t.Context(), admin, "alice", d.code())
	if err != nil || node == nil || !slices.Equal(node.Tags, d.ask.Tags) {
		t.Errorf("%+v, %v", node, err)
	}
}

func TestWaitingDeviceShowsAFewOfItsTags(t *testing.T) {
	s := open(t)
	d := arrive(t, s, 1)
	d.ask.Tags = []string{"no tag"}
	if _, err := s.Joins.Join(t.Context(), mesh.Actor{}, d.ask); reason(err) != control.Invalid {
		t.Errorf("%v", err)
	}
	d.ask.Tags = nil
	for i := range 9 {
		d.ask.Tags = append(d.ask.Tags, fmt.Sprintf("tag:t%d", i))
	}
	d.wait()
	if diff := cmp.Diff(d.ask.Tags[:8], s.Logins.Pending()[0].Tags); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnswerWaitsForADeviceThatIsAway(t *testing.T) {
	s := open(t)
	put(t, s)
	d := arrive(t, s, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // Approve stores the decision, and no device waits for it
	defer cancel()
	login, node, err := s.Logins.Approve(ctx, admin, "alice", d.link)
	if err != nil || node != nil {
		t.Fatalf("%+v, %v", node, err)
	}
	if lasts := login.Until.Sub(s.ledger.World().At); lasts != 15*time.Minute {
		t.Errorf("the answer waits for %s", lasts)
	}
	answer, err := s.Joins.Join(t.Context(), mesh.Actor{}, d.ask)
	if err != nil || answer.Node == nil {
		t.Errorf("%+v, %v", answer, err)
	}
}

func TestRejectedDeviceIsToldWhy(t *testing.T) {
	s := open(t)
	put(t, s)
	d := arrive(t, s, 1)
	d.wait()
	if _, err := s.Logins.Reject(t.Context(), admin, d.code(), "bad\nreason"); reason(err) != control.Invalid {
		t.Errorf("two lines: %v", err)
	}
	if _, err := s.Logins.Reject(t.Context(), admin, d.code(), "not your network"); err != nil {
		t.Fatal(err)
	}
	if answer := <-d.done; answer.Rejected != "not your network" || answer.Node != nil {
		t.Errorf("the device was told %+v", answer)
	}
	if pending := s.Logins.Pending(); len(pending) > 0 {
		t.Errorf("still pending: %v", pending)
	}
	// A decision can be changed: the link is valid for an hour.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // Approve stores the decision, and no device waits for it
	defer cancel()
	if login, _, err := s.Logins.Approve(ctx, admin, "alice", d.link); err != nil || login.ID != 1 || login.Rejected != "" {
		t.Errorf("%+v, %v", login, err)
	}
}

func TestLoginsThatCannotBeAnswered(t *testing.T) {
	s := open(t)
	put(t, s)
	d := arrive(t, s, 1)
	old := sealer.SealLogin(identity.Login{MachineKey: d.ask.MachineKey, NodeKey: d.ask.NodeKey, IssuedAt: mesh.TimeOf(time.Now().Add(-time.Hour))})
	for _, c := range []struct {
		name, user, auth string
		reason           control.Reason
	}{
		{"unknown code", "alice", "ABCD-EFGH", control.NotFound},
		{"code of a device that does not wait", "alice", d.code(), control.NotFound},
		{"no code", "alice", "", control.Invalid},
		{"no link of ours", "alice", "https://mesh.example.com/auth/AAAA", control.Invalid},
		{"expired link", "alice", old, control.NotFound},
		{"no user", "", d.link, control.Invalid},
		{"unknown user", "bob", d.link, control.NotFound},
	} {
		if _, _, err := s.Logins.Approve(t.Context(), admin, c.user, c.auth); reason(err) != c.reason {
			t.Errorf("%s: %v, want reason %d", c.name, err, c.reason)
		}
	}
	if _, err := s.Logins.Reject(t.Context(), admin, "ABCD-EFGH", ""); reason(err) != control.NotFound {
		t.Errorf("rejecting an unknown code: %v", err)
	}
}

func TestDevicesThatReplicasReportArePending(t *testing.T) {
	waiting := func(n uint64, code string) store.WaitingLogin {
		long := strings.ReplaceAll(code, "-", "") + strings.Repeat(strconv.FormatUint(n, 10), 16)
		return store.WaitingLogin{Code: code, LongCode: long, MachineKey: meshgen.MachineKey(n), NodeKey: meshgen.NodeKey(n), Hostname: "tv", Since: mesh.Time(n)}
	}
	s := open(t, func(c *ledger.Config) {
		c.Self.Logins = []store.WaitingLogin{waiting(1, "AAAA-AAAA"), waiting(2, "BBBB-BBBB"), waiting(3, "BBBB-BBBB")}
	})
	put(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.ledger.SendHeartbeats(ctx) }()
	until(t, func() bool { return len(s.Logins.Pending()) == 3 })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	var codes []string
	for _, l := range s.Logins.Pending() {
		codes = append(codes, l.Code)
	}
	if diff := cmp.Diff([]string{"BBBB-BBBB", "BBBB-BBBB", "AAAA-AAAA"}, codes); diff != "" {
		t.Errorf("newest first (-want +got):\n%s", diff)
	}
	if _, err := s.Logins.Reject(t.Context(), admin, "BBBB-BBBB", ""); reason(err) != control.Conflict {
		t.Errorf("a code of two devices: %v", err)
	}
	login, err := s.Logins.Reject(t.Context(), admin, "AAAA-AAAA", "")
	if err != nil || login.NodeKey != meshgen.NodeKey(1) {
		t.Errorf("%+v, %v", login, err)
	}
	// A long code is compared as a whole.
	if _, err := s.Logins.Reject(t.Context(), admin, "BBBBBBBB2222222222222223", ""); reason(err) != control.NotFound {
		t.Errorf("a long code of nobody: %v", err)
	}
	login, err = s.Logins.Reject(t.Context(), admin, "bbbbbbbb3333333333333333", "")
	if err != nil || login.NodeKey != meshgen.NodeKey(3) {
		t.Errorf("%+v, %v", login, err)
	}
}

func TestStrangersKeepNobodyFromApprovingByCode(t *testing.T) {
	s := open(t)
	put(t, s)
	d := arrive(t, s, 1)
	d.wait()
	const strangers = 128
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer wg.Wait()
	defer cancel()
	for i := range uint64(strangers) {
		stranger := arrive(t, s, 1000+i)
		wg.Go(func() { _, _ = s.Joins.Join(ctx, mesh.Actor{Addr: fmt.Sprintf("2001:db8:0:%x::1", i)}, stranger.ask) })
	}
	until(t, func() bool { // the strangers push the device off the list, which is limited
		return !slices.ContainsFunc(s.Logins.Pending(), func(l control.WaitingLogin) bool { return l.Code == d.code() })
	})
	if _, node, err := s.Logins.Approve(t.Context(), admin, "alice", d.code()); err != nil || node == nil {
		t.Errorf("%+v, %v", node, err)
	}
}
