package mesh_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

// model is the simplest structure that can hold the same data.
type model struct {
	users  map[mesh.UserID]mesh.User
	nodes  map[mesh.NodeID]mesh.Node
	pre    map[mesh.KeyID]mesh.PreAuthKey
	api    map[mesh.KeyID]mesh.APIKey
	ssh    map[mesh.SSHGrantID]mesh.SSHGrant
	ses    map[mesh.SessionID]mesh.Session
	groups map[mesh.GroupID]mesh.Group
	facts  map[mesh.NodeID]mesh.Facts

	policy mesh.Policy
	hooks  map[mesh.WebhookID]mesh.Webhook
	relays map[mesh.RelayID]mesh.Relay
}

func newModel() *model {
	return &model{
		users: map[mesh.UserID]mesh.User{}, nodes: map[mesh.NodeID]mesh.Node{},
		pre: map[mesh.KeyID]mesh.PreAuthKey{}, api: map[mesh.KeyID]mesh.APIKey{}, ssh: map[mesh.SSHGrantID]mesh.SSHGrant{},
		hooks: map[mesh.WebhookID]mesh.Webhook{}, relays: map[mesh.RelayID]mesh.Relay{},
		facts: map[mesh.NodeID]mesh.Facts{}, ses: map[mesh.SessionID]mesh.Session{}, groups: map[mesh.GroupID]mesh.Group{},
	}
}

// long: it has a case for each kind of event
func (m *model) apply(e mesh.Event) {
	change := func(id mesh.NodeID, f func(*mesh.Node)) {
		if n, ok := m.nodes[id]; ok {
			f(&n)
			m.nodes[id] = n
		}
	}
	switch e := e.(type) {
	case mesh.UserPut:
		m.users[e.User.ID] = *e.User
	case mesh.UserGone:
		delete(m.users, e.ID)
	case mesh.NodePut:
		n := *e.Node
		n.Net, n.Presence = m.nodes[n.ID].Net, m.nodes[n.ID].Presence
		m.nodes[n.ID] = n
	case mesh.NodeGone:
		delete(m.nodes, e.ID)
		delete(m.facts, e.ID)
	case mesh.NodeNet:
		change(e.ID, func(n *mesh.Node) { n.Net = e.Net })
	case mesh.Online:
		change(e.ID, func(n *mesh.Node) {
			n.Presence = mesh.Presence{Online: true, Replica: e.Replica, Conn: e.Conn, LastSeen: e.At}
		})
	case mesh.Offline:
		change(e.ID, func(n *mesh.Node) { n.Presence = mesh.Presence{LastSeen: e.At} })
	case mesh.PreAuthKeyPut:
		k := *e.Key
		k.LastUse = m.pre[k.ID].LastUse
		m.pre[k.ID] = k
	case mesh.PreAuthKeyGone:
		delete(m.pre, e.ID)
	case mesh.APIKeyPut:
		k := *e.Key
		k.LastUse = m.api[k.ID].LastUse
		m.api[k.ID] = k
	case mesh.APIKeyGone:
		delete(m.api, e.ID)
	case mesh.SessionPut:
		v := *e.Session
		v.LastUse = m.ses[v.ID].LastUse
		m.ses[v.ID] = v
	case mesh.SessionGone:
		delete(m.ses, e.ID)
	case mesh.GroupPut:
		m.groups[e.Group.ID] = *e.Group
	case mesh.GroupGone:
		delete(m.groups, e.ID)
	case mesh.SessionUsed:
		v := m.ses[e.ID]
		v.LastUse = e.Use
		m.ses[e.ID] = v
	case mesh.PolicyPut:
		m.policy = *e.Policy
	case mesh.SSHGrantPut:
		m.ssh[e.Grant.ID] = *e.Grant
	case mesh.SSHGrantGone:
		delete(m.ssh, e.ID)
	case mesh.WebhookPut:
		w := *e.Webhook
		w.Progress = m.hooks[w.ID].Progress
		m.hooks[w.ID] = w
	case mesh.WebhookGone:
		delete(m.hooks, e.ID)
	case mesh.WebhookMoved:
		if w, ok := m.hooks[e.ID]; ok {
			w.Progress = e.Progress
			m.hooks[e.ID] = w
		}
	case mesh.RelayPut:
		r := *e.Relay
		r.Report = m.relays[r.ID].Report
		m.relays[r.ID] = r
	case mesh.RelayGone:
		delete(m.relays, e.ID)
	case mesh.RelayReported:
		if r, ok := m.relays[e.ID]; ok {
			r.Report = e.Report
			m.relays[e.ID] = r
		}
	case mesh.NodeFacts:
		m.facts[e.Facts.Node] = *e.Facts
	case mesh.PreAuthKeyUsed:
		k := m.pre[e.ID]
		k.LastUse = e.Use
		m.pre[e.ID] = k
	case mesh.APIKeyUsed:
		k := m.api[e.ID]
		k.LastUse = e.Use
		m.api[e.ID] = k
	}
}

// check compares every value and every index of s with the model.
//
// long: it has a part for each noun
func (m *model) check(t *testing.T, s *mesh.Snapshot) {
	t.Helper()
	if s.Nodes.Len() != len(m.nodes) || s.Users.Len() != len(m.users) {
		t.Fatalf("rev %d: %d nodes and %d users, want %d and %d", s.Rev, s.Nodes.Len(), s.Users.Len(), len(m.nodes), len(m.users))
	}
	online, owned, last := 0, map[mesh.UserID]int{}, mesh.NodeID(0)
	for n := range s.Nodes.All() {
		if n.ID <= last {
			t.Fatalf("nodes out of order: %d after %d", n.ID, last)
		}
		last = n.ID
		if !reflect.DeepEqual(*n, m.nodes[n.ID]) {
			t.Fatalf("rev %d: node differs\ngot  %+v\nwant %+v", s.Rev, *n, m.nodes[n.ID])
		}
		if n.Presence.Online {
			online++
		}
		if n.Owner != 0 {
			owned[n.Owner]++
		}
		for _, find := range []func() (*mesh.Node, bool){
			func() (*mesh.Node, bool) { return s.Nodes.ByKey(n.NodeKey) },
			func() (*mesh.Node, bool) { return s.Nodes.ByName(n.Name) },
			func() (*mesh.Node, bool) { return s.Nodes.ByAddr(n.IPv4) },
			func() (*mesh.Node, bool) { return s.Nodes.ByAddr(n.IPv6) },
		} {
			if got, ok := find(); !ok || got != n {
				t.Fatalf("rev %d: an index does not lead to node %d", s.Rev, n.ID)
			}
		}
		if !slices.Contains(s.Nodes.ByMachine(n.MachineKey), n) {
			t.Fatalf("rev %d: machine index does not lead to node %d", s.Rev, n.ID)
		}
	}
	if s.Nodes.OnlineCount() != online {
		t.Fatalf("rev %d: %d online, want %d", s.Rev, s.Nodes.OnlineCount(), online)
	}
	m.checkUsers(t, s, owned)
	for id, k := range m.pre {
		if got, ok := s.PreAuthKeys.ByPrefix(k.Prefix); !ok || got.ID != id || !reflect.DeepEqual(*got, k) {
			t.Fatalf("rev %d: pre-auth key %d differs", s.Rev, id)
		}
	}
	for id, k := range m.api {
		if got, ok := s.APIKeys.ByPrefix(k.Prefix); !ok || got.ID != id || !reflect.DeepEqual(*got, k) {
			t.Fatalf("rev %d: API key %d differs", s.Rev, id)
		}
	}
	for id, v := range m.groups {
		if got, ok := s.Groups.Get(id); !ok || !reflect.DeepEqual(*got, v) || s.Groups.Len() != len(m.groups) {
			t.Fatalf("rev %d: group %d differs", s.Rev, id)
		}
	}
	for id, v := range m.ses {
		if got, ok := s.Sessions.ByPrefix(v.Prefix); !ok || got.ID != id || *got != v || s.Sessions.Len() != len(m.ses) {
			t.Fatalf("rev %d: session %d differs", s.Rev, id)
		}
	}
	if got, ok := s.Policy(); ok && *got != m.policy || !ok && m.policy.Version != 0 {
		t.Fatalf("rev %d: the policy is %+v, want %+v", s.Rev, got, m.policy)
	}
	for g := range s.SSHGrants.All() {
		if got, ok := s.SSHGrants.For(g.Src, g.Dst, g.User); !ok || got != g || *g != m.ssh[g.ID] {
			t.Fatalf("rev %d: SSH grant %d differs", s.Rev, g.ID)
		}
	}
	for id, g := range m.ssh {
		if got, ok := s.SSHGrants.For(g.Src, g.Dst, g.User); !ok || got.ID != id {
			t.Fatalf("rev %d: SSH grant %d is not found", s.Rev, id)
		}
	}
	for id, w := range m.hooks {
		if got, ok := s.Webhooks.Get(id); !ok || !reflect.DeepEqual(*got, w) || s.Webhooks.Len() != len(m.hooks) {
			t.Fatalf("rev %d: webhook %d differs", s.Rev, id)
		}
	}
	for id, r := range m.relays {
		if got, ok := s.Relays.ByPrefix(r.Prefix); !ok || got.ID != id || *got != r || s.Relays.Len() != len(m.relays) {
			t.Fatalf("rev %d: relay %d differs", s.Rev, id)
		}
	}
	m.checkFacts(t, s)
}

func (m *model) checkUsers(t *testing.T, s *mesh.Snapshot, owned map[mesh.UserID]int) {
	t.Helper()
	for id, u := range m.users {
		if got, ok := s.Users.ByName(u.Name); !ok || got.ID != id {
			t.Fatalf("rev %d: user %q not found by name", s.Rev, u.Name)
		}
		if got, _ := s.Users.Get(id); u.Email != "" && !slices.Contains(s.Users.KnownAs(strings.ToUpper(u.Email)), got) {
			t.Fatalf("rev %d: user %q not found by e-mail", s.Rev, u.Name)
		}
		if got, ok := s.Users.ByProviderID(u.Provider, u.ProviderID); ok != (u.ProviderID != "") || ok && got.ID != id {
			t.Fatalf("rev %d: user %q not found by identity", s.Rev, u.Name)
		}
		if s.Nodes.OwnedCount(id) != owned[id] {
			t.Fatalf("rev %d: user %d owns %d, want %d", s.Rev, id, s.Nodes.OwnedCount(id), owned[id])
		}
	}
}

func (m *model) checkFacts(t *testing.T, s *mesh.Snapshot) {
	t.Helper()
	known := maps.Collect(func(yield func(mesh.NodeID, mesh.Facts) bool) {
		for f := range s.Facts.All() {
			if got, ok := s.Facts.Get(f.Node); !ok || got != f || !yield(f.Node, *f) {
				return
			}
		}
	})
	if diff := cmp.Diff(m.facts, known); diff != "" {
		t.Fatalf("rev %d: facts differ (-want +got):\n%s", s.Rev, diff)
	}
}

func TestSnapshotFollowsPlainMaps(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		m, s := newModel(), mesh.Empty()
		for range 300 {
			evs := mesh.Settle(s, []mesh.Event{meshgen.Event(r, s)})
			for _, e := range evs {
				m.apply(e)
			}
			s, _ = mesh.Apply(s, s.Rev+1, evs...)
		}
		m.check(t, s)
		for n := range s.Nodes.All() {
			if _, ok := s.Users.Get(n.Owner); !ok && n.Owner != 0 {
				t.Fatalf("node %d outlived its owner", n.ID)
			}
		}
		for v := range s.Sessions.All() {
			if _, ok := s.Users.Get(v.User); !ok {
				t.Fatalf("session %d outlived its user", v.ID)
			}
		}
	}
}

func TestOneDraftEqualsManyApplies(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	commands, want := meshgen.History(r, mesh.Empty(), 500)
	d := mesh.Empty().Edit()
	for i, evs := range commands {
		d.Apply(mesh.Revision(i+1), evs...)
	}
	if got := d.Freeze(); got.Digest() != want.Digest() {
		t.Fatal("a batch gives another snapshot than its commands one by one")
	}
}

func TestObjectsCanSwapNamesAndAddresses(t *testing.T) {
	node := func(id mesh.NodeID, name, addr string) mesh.Event {
		return mesh.NodePut{Node: &mesh.Node{ID: id, Name: name, IPv4: netip.MustParseAddr(addr)}}
	}
	user := func(id mesh.UserID, name string) mesh.Event {
		return mesh.UserPut{User: &mesh.User{ID: id, Name: name}}
	}
	s, _ := mesh.Apply(mesh.Empty(), 1, user(1, "ann"), user(2, "bob"), node(1, "a", "100.64.0.1"), node(2, "b", "100.64.0.2"))
	s, _ = mesh.Apply(s, 2, user(1, "bob"), user(2, "ann"), node(1, "b", "100.64.0.2"), node(2, "a", "100.64.0.1"))
	for name, want := range map[string]mesh.NodeID{"a": 2, "b": 1} {
		if n, ok := s.Nodes.ByName(name); !ok || n.ID != want {
			t.Errorf("node %s: %+v, want %d", name, n, want)
		}
	}
	if n, ok := s.Nodes.ByAddr(netip.MustParseAddr("100.64.0.2")); !ok || n.ID != 1 {
		t.Errorf("100.64.0.2: %+v, want node 1", n)
	}
	for name, want := range map[string]mesh.UserID{"ann": 2, "bob": 1} {
		if u, ok := s.Users.ByName(name); !ok || u.ID != want {
			t.Errorf("user %s: %+v, want %d", name, u, want)
		}
	}
}

func TestPublishedSnapshotNeverChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	_, s := meshgen.History(r, mesh.Empty(), 300)
	clone, digest := summary(s), s.Digest()
	meshgen.History(r, s, 300)
	d := s.Edit()
	for i := range 300 {
		d.Apply(s.Rev+mesh.Revision(i)+1, meshgen.Event(r, d.Snapshot()))
	}
	if diff := cmp.Diff(clone, summary(s)); diff != "" || s.Digest() != digest {
		t.Fatalf("editing a draft changed the snapshot below it:\n%s", diff)
	}
}

func summary(s *mesh.Snapshot) []string {
	var out []string
	for n := range s.Nodes.All() {
		out = append(out, fmt.Sprintf("%+v", *n))
	}
	for u := range s.Users.All() {
		out = append(out, fmt.Sprintf("%+v %d", *u, s.Nodes.OwnedCount(u.ID)))
	}
	return out
}

func TestTouchedNamesEveryNodeThatChanged(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	_, s := meshgen.History(r, mesh.Empty(), 200)
	for range 500 {
		evs := mesh.Settle(s, []mesh.Event{meshgen.Event(r, s)})
		next, touched := mesh.Apply(s, s.Rev+1, evs...)
		for id := mesh.NodeID(1); id <= 300; id++ {
			a, _ := s.Nodes.Get(id)
			b, _ := next.Nodes.Get(id)
			if a != b && !slices.Contains(touched, id) {
				t.Fatalf("node %d changed by %+v and is not named", id, evs)
			}
		}
		s = next
	}
}

func TestDigestTellsEveryFieldApart(t *testing.T) {
	base := func() (evs []mesh.Event) {
		for _, e := range mesh.Events() {
			switch e.(type) {
			case mesh.Offline, mesh.DeadLetterPut, mesh.ClockSet, mesh.HistoryReset: // Offline undoes Online; the others are never in a snapshot
			default:
				if !strings.HasSuffix(string(e.Kind()), ".gone") {
					evs = append(evs, meshgen.Fill(e))
				}
			}
		}
		return evs
	}
	digest := func(evs []mesh.Event) string {
		s, _ := mesh.Apply(mesh.Empty(), 1, evs...)
		return s.Digest()
	}
	want := digest(base())
	if digest(base()) != want {
		t.Fatal("equal snapshots have different digests")
	}
	// Replicas of two versions compare digests only if they have the same form.
	const form, known = 3238717867, "f52a878ce668fed5aaeef00bbb1dd84bfa597ab555c1366418fae09a772818c0"
	switch {
	case mesh.DigestForm() != form:
		t.Errorf("nouns have other fields than before: note the form %d and the digest %s here", mesh.DigestForm(), want)
	case want != known:
		t.Errorf("the digest of the same objects is %s now: raise digestVersion", want)
	}
	fields := 0
	for i := range base() {
		for _, path := range leaves(reflect.TypeOf(base()[i])) {
			evs := base()
			v := reflect.New(reflect.TypeOf(evs[i])).Elem()
			v.Set(reflect.ValueOf(evs[i]))
			f := v
			for _, k := range path {
				for f.Kind() == reflect.Pointer {
					f = f.Elem()
				}
				f = f.Field(k)
			}
			if len(path) == 1 && f.Kind() == reflect.Int64 {
				continue // an event about another object changes nothing here
			}
			if !vary(f) {
				t.Errorf("%T field %v was not tried", evs[i], path)
			}
			evs[i] = v.Interface().(mesh.Event)
			if digest(evs) == want {
				t.Errorf("%T field %v does not reach the digest", evs[i], path)
			}
			fields++
		}
	}
	if fields < 120 {
		t.Fatalf("only %d fields were tried", fields)
	}
}

// leaves lists the exported fields below t that are not structs of ours, without those that
// have their own events.
func leaves(t reflect.Type) (paths [][]int) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("json") == "-" {
			continue
		}
		in := f.Type
		for in.Kind() == reflect.Pointer {
			in = in.Elem()
		}
		if in.Kind() == reflect.Struct && in.PkgPath() == reflect.TypeFor[mesh.Node]().PkgPath() {
			for _, p := range leaves(in) {
				paths = append(paths, append([]int{i}, p...))
			}
			continue
		}
		paths = append(paths, []int{i})
	}
	return paths
}

func vary(f reflect.Value) bool {
	switch v := f.Addr().Interface().(type) {
	case *netip.Addr:
		*v = netip.MustParseAddr("100.64.200.200")
		return true
	case *mesh.Secret:
		v[0] ^= 1
		return true
	}
	switch f.Kind() {
	case reflect.String:
		f.SetString(f.String() + "x")
	case reflect.Bool:
		f.SetBool(!f.Bool())
	case reflect.Int, reflect.Int64:
		f.SetInt(f.Int() + 1)
	case reflect.Slice, reflect.Struct, reflect.Pointer:
		f.SetZero()
	default:
		return false
	}
	return true
}

func TestEventsSurviveTheLog(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	commands, want := meshgen.History(r, mesh.Empty(), 2000)
	s := mesh.Empty()
	kinds := map[mesh.Kind]bool{}
	for i, evs := range commands {
		data, err := mesh.EncodeEvents(evs)
		if err != nil {
			t.Fatal(err)
		}
		back, err := mesh.DecodeEvents(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(evs, back, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}, netip.AddrPort{}), cmp.Comparer(func(a, b mesh.Event) bool { return reflect.DeepEqual(a, b) })); diff != "" {
			t.Fatal(diff)
		}
		for _, e := range evs {
			kinds[e.Kind()] = true
		}
		s, _ = mesh.Apply(s, mesh.Revision(i+1), back...)
	}
	if s.Digest() != want.Digest() {
		t.Fatal("replaying the log gives another snapshot")
	}
	if len(kinds) != 45 {
		t.Fatalf("only %d kinds were tried", len(kinds))
	}
}

func TestUnknownKindIsToldApartFromDamage(t *testing.T) {
	if _, err := mesh.DecodeEvents([]byte(`[{"k":"node.teleported","d":{}}]`)); !errors.Is(err, mesh.ErrUnknownKind) {
		t.Fatalf("unknown kind: %v", err)
	}
	for _, bad := range []string{``, `{}`, `[{"k":"user.put","d":{}}]`, `[{"k":"node.gone","d":{"id":0}}]`, `[{"k":"node.gone","d":{"id":99999999999}}]`} {
		if _, err := mesh.DecodeEvents([]byte(bad)); err == nil || errors.Is(err, mesh.ErrUnknownKind) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func FuzzDecodeEvents(f *testing.F) {
	commands, _ := meshgen.History(rand.New(rand.NewPCG(1, 2)), mesh.Empty(), 60)
	for _, evs := range commands {
		data, err := mesh.EncodeEvents(evs)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		evs, err := mesh.DecodeEvents(data)
		if err != nil {
			return
		}
		once, err := mesh.EncodeEvents(evs)
		if err != nil {
			t.Fatalf("decoded but cannot be encoded: %v", err)
		}
		again, err := mesh.DecodeEvents(once)
		if err != nil {
			t.Fatalf("encoded but cannot be decoded: %v", err)
		}
		twice, err := mesh.EncodeEvents(again)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("the second round differs: %s and %s (%v)", once, twice, err)
		}
		s, _ := mesh.Apply(mesh.Empty(), 1, evs...)
		if !json.Valid(once) || s.Digest() == "" {
			t.Fatal("unreachable")
		}
	})
}
