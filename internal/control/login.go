package control

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

const (
	// loginPoll is how long a client is left waiting before it asks again:
	// shorter than what proxies and balancers allow an answer to take.
	loginPoll = 4 * time.Minute
	// Devices that may wait on one replica, in all and from one network. If all
	// places are taken, the neighbourhood that has most gives one up. The rest
	// gets the same link again at once: clients ask less and less often then, and
	// find their answer.
	maxWaiting   = 1024
	maxWaitingOf = 64
	// maxPublished is how many of them other replicas hear of.
	maxPublished = 100
	// maxShownTags is how many tags of a device are kept while it waits. Nobody
	// knows it yet; the rest are looked at when it joins.
	maxShownTags = 8
)

// WaitingLogin is a device that asked to join without a key, and waits.
type WaitingLogin = ledger.WaitingLogin

// Logins are the use cases of devices that join without a pre-auth key and wait for
// an administrator's approval.
type Logins struct {
	*core
	ssh       *SSH // to recognize the code of an SSH session
	sealer    *identity.LoginSealer
	serverURL string
	waiting   loginQueue
}

// loginQueue holds the devices that wait on this replica. It forgets them when they
// leave: a stranger leaves no trace.
type loginQueue struct {
	mu      sync.Mutex
	all     map[*WaitingLogin]*place // guarded by mu
	entered uint64                   // guarded by mu; how many ever did
	// answered are the devices that administrators answered here of late, by
	// code: who types one again is told what became of it.
	answered map[string]answeredLogin // guarded by mu
}

type answeredLogin struct {
	device WaitingLogin
	until  mesh.Time
}

// place is that of one who waits.
type place struct {
	network, neighbourhood string
	number                 uint64        // those who came later have higher ones
	lost                   chan struct{} // closed when another gets the place
}

// remember keeps a device that was answered for as long as its answer.
func (r *loginQueue) remember(device WaitingLogin, now, until mesh.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.answered, func(_ string, l answeredLogin) bool { return l.until.Reached(now) })
	if r.answered == nil {
		r.answered = map[string]answeredLogin{}
	}
	r.answered[device.Code] = answeredLogin{device, until}
}

// recall returns the device that was answered of late by its code.
func (r *loginQueue) recall(code string, now mesh.Time) (WaitingLogin, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, ok := r.answered[code]
	return l.device, ok && !l.until.Reached(now)
}

// enter returns a channel that is closed if the device must give up its place,
// or false if there is none for it.
func (r *loginQueue) enter(l *WaitingLogin) (lost <-chan struct{}, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &place{network: identity.Network(l.Addr), neighbourhood: identity.Neighbourhood(l.Addr), number: r.entered, lost: make(chan struct{})}
	same := 0
	for _, other := range r.all {
		if other.network == p.network {
			same++
		}
	}
	if same >= maxWaitingOf || len(r.all) >= maxWaiting && !r.evict(p.neighbourhood) {
		return nil, false
	}
	if r.all == nil {
		r.all = map[*WaitingLogin]*place{}
	}
	r.all[l] = p
	r.entered++
	return p.lost, true
}

// evict takes the place of the newest device in the neighbourhood that has
// most, so that nobody who has many networks can fill the room. It fails if none
// would have more than that of the newcomer.
func (r *loginQueue) evict(newcomer string) bool {
	devices := map[string]int{newcomer: 1}
	for _, p := range r.all {
		devices[p.neighbourhood]++
	}
	var out *WaitingLogin
	for l, p := range r.all {
		n := devices[p.neighbourhood]
		if n <= devices[newcomer] {
			continue
		}
		if out == nil || cmp.Or(cmp.Compare(n, devices[r.all[out].neighbourhood]), cmp.Compare(p.number, r.all[out].number)) > 0 {
			out = l
		}
	}
	if out == nil {
		return false
	}
	close(r.all[out].lost)
	delete(r.all, out)
	return true
}

func (r *loginQueue) leave(l *WaitingLogin) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, l)
}

// list returns all, in no order.
func (r *loginQueue) list() []WaitingLogin {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]WaitingLogin, 0, len(r.all))
	for l := range r.all {
		list = append(list, *l)
	}
	return list
}

// Waiting returns the devices that wait on this replica, newest first, a
// hundred at most.
func (s *Logins) Waiting() []WaitingLogin {
	list := s.waiting.list()
	slices.SortFunc(list, func(a, b WaitingLogin) int {
		return cmp.Or(cmp.Compare(b.Since, a.Since), cmp.Compare(a.Code, b.Code))
	})
	// A client that lost its connection may wait twice.
	list = slices.CompactFunc(list, func(a, b WaitingLogin) bool { return a.Code == b.Code })
	return list[:min(len(list), maxPublished)]
}

// Tags returns the tags that a device asks for, as far as it is known to
// wait: here, or on another replica for some moments already.
func (s *Logins) Tags(k key.NodePublic) []string {
	for _, l := range s.waiting.list() {
		if l.NodeKey == k {
			return l.Tags
		}
	}
	for _, r := range s.ledger.Cluster().Replicas() {
		for _, l := range r.Logins {
			if l.NodeKey == k {
				return l.Tags
			}
		}
	}
	return nil
}

// ownLink reports whether the client waits on a link that was made for it and
// can still be answered.
func (s *Logins) ownLink(j Joining) bool {
	if s.sealer == nil || j.Followup == "" {
		return false
	}
	l, ok := s.sealer.OpenLogin(j.Followup)
	return ok && l.MachineKey == j.MachineKey && l.NodeKey == j.NodeKey && !l.Expired(s.ledger.Now())
}

// link is where a person lets the device in: the one that it has, or a new one.
func (s *Logins) link(j Joining) (string, error) {
	switch {
	case s.sealer == nil:
		return "", refuse(BadKey, "preAuthKey", "a key is required; ask your administrator for one")
	case s.ownLink(j):
		return s.url(identity.LoginToken(j.Followup)), nil
	}
	h := j.Host.bounded()
	return s.url(s.sealer.SealLogin(identity.Login{
		MachineKey: j.MachineKey, NodeKey: j.NodeKey, Hostname: h.Hostname, OS: h.OS, IssuedAt: s.ledger.Now(),
	})), nil
}

func (s *Logins) url(token string) string { return s.serverURL + "/auth/" + token }

// await blocks until an administrator has answered, on any replica, or it is
// time to ask again.
func (s *Logins) await(ctx context.Context, a mesh.Actor, j Joining) (answered bool, err error) {
	tags, err := checkTags("tags", j.Tags)
	if err != nil {
		return false, err
	}
	l, _ := s.sealer.OpenLogin(j.Followup)
	w := &WaitingLogin{
		Code: identity.LoginCode(j.Followup), LongCode: identity.LongLoginCode(j.Followup), MachineKey: j.MachineKey, NodeKey: j.NodeKey, Hostname: l.Hostname, OS: l.OS, Addr: a.Addr,
		Tags: tags[:min(len(tags), maxShownTags)], Since: l.IssuedAt,
	}
	lost, ok := s.waiting.enter(w)
	if !ok {
		return false, nil
	}
	defer s.waiting.leave(w)
	enough := time.NewTimer(loginPoll - rand.N(loginPoll/8)) // not all at once
	defer enough.Stop()
	for {
		at := s.ledger.Cursor()
		if answersLogin(at.World(), s.ledger.Now(), j) {
			return true, nil
		}
		select {
		case <-at.More():
		case <-enough.C:
			return false, nil
		case <-lost:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// answersLogin reports whether there is something to tell the client.
func answersLogin(w *policy.World, now mesh.Time, j Joining) bool {
	if l, ok := w.Logins.ByNodeKey(j.NodeKey); ok && l.MachineKey == j.MachineKey && !l.Until.Reached(now) {
		return true
	}
	_, joined := w.Nodes.ByKey(j.NodeKey)
	return joined
}
