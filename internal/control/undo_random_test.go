package control_test

// A policy on trial that is reverted leaves the mesh as if it had never been tried. Two
// servers get the same random operations, and only one of them gets trials.

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
)

var trials = flag.Int("trials", 40, "random policies that are tried and reverted")

const undoNodes = 6

// twins holds two servers: one on which policies are tried, and one on which they are
// not.
type twins struct {
	*rand.Rand
	t              *testing.T
	tried, untried service
	steps          []string // since the last comparison
	onTrial        bool
	keys           uint64 // number of issued keys
	granted        int    // number of joins that were granted the requested tags
}

// both performs an operation on both servers, which must agree on whether it is refused.
func (w *twins) both(what string, do func(service) error) {
	w.t.Helper()
	w.steps = append(w.steps, what)
	a, b := do(w.tried), do(w.untried)
	var refusal *control.Refusal
	if a != nil && !errors.As(a, &refusal) {
		w.fatal(a.Error())
	}
	if (a == nil) != (b == nil) {
		w.fatal(fmt.Sprintf("%v after a trial, %v without", a, b))
	}
}

func (w *twins) fatal(text string) {
	w.t.Helper()
	for _, step := range w.steps {
		w.t.Log(step)
	}
	w.t.Fatal(text)
}

func (w *twins) pick(list ...string) string { return list[w.IntN(len(list))] }

func (w *twins) some(list ...string) []string {
	w.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:1+w.IntN(len(list))]
}

func (w *twins) userNames() []string { return []string{"alice", "bob", "carol", "dave"} }

func (w *twins) who() []string {
	return w.some("alice", "bob", "carol", "group:net", "tag:a", "tag:b", "autogroup:member", "autogroup:tagged")
}

// owners picks who may request a tag: nobody, users, or one of these tags.
func (w *twins) owners(tags ...string) []string {
	if w.IntN(3) == 0 {
		return []string{}
	}
	return w.some(append(tags, "alice", "bob", "carol", "group:net", "autogroup:member")...)
}

// policy generates a text in which everything depends on names and tags that change.
func (w *twins) policy() string {
	approvers := map[string][]string{}
	for _, p := range w.some("10.0.0.0/8", "10.1.0.0/16", "10.2.0.0/15", "192.168.0.0/16", "192.168.4.0/22") {
		approvers[p] = w.who()[:1]
	}
	ssh := map[string]any{"action": w.pick("accept", "check"), "src": w.some("alice", "group:net", "tag:a"), "dst": w.some("tag:a", "tag:b"), "users": w.some("root", "autogroup:nonroot")}
	doc := map[string]any{
		"groups":        map[string][]string{"group:net": w.some(w.userNames()...)},
		"tagOwners":     map[string][]string{"tag:a": w.owners(), "tag:b": w.owners("tag:a"), "tag:c": w.owners("tag:a", "tag:b")},
		"autoApprovers": map[string]any{"routes": approvers, "exitNode": w.who()[:1]},
		"acls":          []any{map[string]any{"action": "accept", "src": w.who(), "dst": []string{w.who()[0] + ":22", "10.0.0.0/9:*", "autogroup:internet:*"}}},
		"grants":        []any{map[string]any{"src": w.who(), "dst": w.who()[:1], "app": map[string]any{"example.com/cap": []any{w.IntN(9)}}}},
		"nodeAttrs":     []any{map[string]any{"target": w.who(), "attr": []string{w.pick("one", "two")}}},
		"ssh":           []any{ssh},
	}
	text, err := json.Marshal(doc)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// networks returns the networks that a node may announce. No two nodes share a subnet:
// the primary would depend on which node came first.
func networks(id mesh.NodeID) []string {
	return []string{fmt.Sprintf("10.%d.0.0/16", id), fmt.Sprintf("10.%d.7.0/24", id), fmt.Sprintf("192.168.%d.0/24", id), "0.0.0.0/0", "::/0"}
}

// step performs a random operation of a device or an administrator.
func (w *twins) step() {
	t, id := w.t, mesh.NodeID(1+w.IntN(undoNodes))
	switch w.IntN(16) {
	case 0, 1, 2, 3:
		w.announce(id, w.some(networks(id)...)...)
	case 4:
		w.announce(id)
	case 5, 6:
		tags := w.some("tag:a", "tag:b", "tag:c")
		w.both(fmt.Sprint("tag ", id, tags), func(s service) error {
			_, err := s.Nodes.Tag(t.Context(), admin, id.String(), tags, "")
			return err
		})
	case 7:
		user := strconv.Itoa(1 + w.IntN(3))
		w.both(fmt.Sprint("move ", id, " to user ", user), func(s service) error {
			_, err := s.Nodes.Move(t.Context(), admin, id.String(), user, "")
			return err
		})
	case 8:
		user, name := strconv.Itoa(1+w.IntN(3)), w.pick(w.userNames()...)
		w.both(fmt.Sprint("rename user ", user, " to ", name), func(s service) error {
			_, err := s.Users.Rename(t.Context(), admin, user, name, "")
			return err
		})
	case 9:
		owner := mesh.UserID(1 + w.IntN(3))
		w.both(fmt.Sprint("node ", id, " is another one, of user ", owner), func(s service) error {
			old := s.node(t, id)
			fresh := &mesh.Node{
				ID: id, Owner: owner, MachineKey: old.MachineKey, NodeKey: old.NodeKey, IPv4: old.IPv4, IPv6: old.IPv6,
				Hostname: old.Hostname, Name: old.Name, CapVersion: old.CapVersion, CreatedAt: old.CreatedAt,
			}
			commit(t, s, mesh.NodeGone{ID: id}, mesh.NodePut{Node: fresh})
			return nil
		})
	case 10, 11:
		prefix, enabled := netip.MustParsePrefix(w.pick(networks(id)...)), w.IntN(2) == 0
		w.both(fmt.Sprint("enable ", id, prefix, enabled), func(s service) error {
			r, _ := s.node(t, id).Route(prefix)
			_, err := s.Routes.Enable(t.Context(), admin, r.ID, enabled, "")
			return err
		})
	case 12, 13, 14:
		w.login(id, w.some("tag:a", "tag:b", "tag:c")[:1])
	default:
		q := mesh.SSHGrant{ID: mesh.SSHGrantID(1 + w.IntN(9)), Src: id, Dst: mesh.NodeID(1 + w.IntN(undoNodes)), User: w.pick("root", "ada"), Until: 1 << 60, GrantedAt: 1 << 59}
		w.both(fmt.Sprintf("SSH approved %+v", q), func(s service) error {
			commit(t, s, mesh.SSHGrantPut{Grant: &q})
			return nil
		})
	}
}

// login lets a node log in again and request tags. If the policy on trial refuses
// them, the device gives up; otherwise the other server must grant them too.
func (w *twins) login(id mesh.NodeID, asked []string) {
	w.keys++
	fresh := meshgen.NodeKey(1000 + w.keys)
	var of []string
	if w.IntN(3) == 0 {
		of = []string{w.pick("tag:a", "tag:b", "tag:c")}
	}
	join := func(s service) error {
		n := s.node(w.t, id)
		_, secret, err := s.PreAuthKeys.Create(w.t.Context(), admin, control.NewPreAuthKey{User: max(n.Owner, n.CreatedBy).String(), Tags: of})
		if err != nil {
			w.t.Fatal(err)
		}
		_, err = s.Joins.Join(w.t.Context(), mesh.Actor{}, control.Joining{
			Proven:     true,
			MachineKey: n.MachineKey, NodeKey: fresh, OldNodeKey: n.NodeKey, PreAuthKey: secret, Tags: asked, CapVersion: n.CapVersion,
			Host: control.Host{Hostname: n.Hostname, RoutableIPs: n.RoutableIPs},
		})
		return err
	}
	w.steps = append(w.steps, fmt.Sprint("login ", id, " with a key of ", of, " and a request for ", asked))
	err := join(w.tried)
	if w.onTrial && reason(err) == control.Denied {
		return
	}
	if other := join(w.untried); reason(err) != reason(other) {
		w.fatal(fmt.Sprintf("%v after a trial, %v without", err, other))
	}
	if err == nil {
		w.granted++
	}
}

func (w *twins) announce(id mesh.NodeID, prefixes ...string) {
	w.both(fmt.Sprint("announce ", id, prefixes), func(s service) error {
		announce(w.t, s, id, prefixes...)
		return nil
	})
}

// approved returns the enabled routes of all nodes, and whether they are announced.
func approved(s service) map[string]bool {
	routes := map[string]bool{}
	for _, r := range control.RoutesIn(s.ledger.World().Snapshot) {
		if r.Enabled {
			routes[fmt.Sprint(r.Node.ID, " ", r.Prefix)] = r.Announced()
		}
	}
	return routes
}

// seen returns what every node is sent, and the results of SSH sessions.
func (w *twins) seen(s service) (list []string) {
	scene := netmap.SceneOf(s.ledger.World(), nil)
	for id := mesh.NodeID(1); id <= undoNodes; id++ {
		text, err := json.MarshalIndent(netmap.Full(scene, id), "", " ")
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, string(text))
		for src := mesh.NodeID(1); src <= undoNodes; src++ {
			ask := control.SSHAsk{SSHSession: control.SSHSession{Src: src, Dst: id, User: "root"}, MachineKey: s.node(w.t, id).MachineKey}
			answer, err := s.SSH.Check(w.t.Context(), mesh.Actor{}, ask)
			list = append(list, fmt.Sprint("SSH ", src, " to ", id, ": ", answer.Verdict, err))
		}
	}
	return list
}

// compare fails if a trial left any effect.
func (w *twins) compare() {
	w.t.Helper()
	tried, untried := approved(w.tried), approved(w.untried)
	// Routes that are not announced now are compared when they are announced again.
	for route, announced := range tried {
		if _, ok := untried[route]; !ok && announced {
			w.fatal("a trial leaves a route enabled: " + route)
		} else if ok && untried[route] != announced {
			w.fatal("servers disagree on what is announced: " + route)
		}
	}
	for route, announced := range untried {
		if _, ok := tried[route]; !ok && announced {
			w.fatal("a trial takes a route away: " + route)
		}
	}
	if diff := cmp.Diff(w.seen(w.untried), w.seen(w.tried)); diff != "" {
		w.fatal("what nodes see (-without a trial +after one):\n" + diff)
	}
}

// Each round has its own servers, because a server limits how often a node may report and
// log in.
func TestRevertedPolicyLeavesNoTrace(t *testing.T) {
	const round = 40
	random := rand.New(rand.NewPCG(uint64(*trials), 5))
	var withdrawn, approvedOnTrial, granted int
	for done := 0; done < *trials; done += round {
		w := &twins{Rand: random, t: t, tried: open(t), untried: open(t)}
		w.both("begin", func(s service) error {
			put(t, s, make([]mesh.Node, undoNodes)...)
			commit(t, s, mesh.UserPut{User: &mesh.User{ID: 2, Name: "bob"}}, mesh.UserPut{User: &mesh.User{ID: 3, Name: "carol"}})
			return nil
		})
		for range round {
			before, after := w.try()
			approvedOnTrial += len(before)
			for route := range before {
				if _, ok := after[route]; !ok {
					withdrawn++
				}
			}
		}
		granted += w.granted
	}
	if withdrawn < *trials/2 {
		t.Errorf("only %d of %d routes were withdrawn in %d trials", withdrawn, approvedOnTrial, *trials)
	}
	if granted < *trials/8 {
		t.Errorf("only %d requests for tags were granted in %d trials", granted, *trials)
	}
	t.Logf("%d of %d routes withdrawn and %d requests for tags granted in %d trials", withdrawn, approvedOnTrial, granted, *trials)
}

// try tries a policy on one server, reverts it, and compares both. It returns the routes
// that were approved before the revert and after it.
func (w *twins) try() (before, after map[string]bool) {
	w.t.Helper()
	if w.IntN(3) == 0 {
		text := w.policy()
		w.both("policy "+text, func(s service) error {
			_, err := s.Policies.Save(w.t.Context(), admin, draft(text))
			return err
		})
	}
	for range w.IntN(4) {
		w.step()
	}
	trial := w.policy()
	w.steps = append(w.steps, "trial "+trial)
	save(w.t, w.tried, temporary(trial))
	w.onTrial = true
	for range w.IntN(8) {
		w.step()
	}
	w.onTrial = false
	before = approved(w.tried)
	w.steps = append(w.steps, "revert")
	if _, err := w.tried.Policies.Revert(w.t.Context(), admin, nil); err != nil {
		w.t.Fatal(err)
	}
	after = approved(w.tried)
	w.compare()
	for id := mesh.NodeID(1); id <= undoNodes; id++ {
		w.announce(id, networks(id)...)
	}
	if diff := cmp.Diff(approved(w.untried), approved(w.tried)); diff != "" {
		w.fatal("routes when all are announced (-without a trial +after one):\n" + diff)
	}
	w.steps = nil
	return before, after
}
