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
	// loginPoll is how long a client waits before it asks again. It is shorter than the
	// timeouts of proxies and load balancers.
	loginPoll = 4 * time.Minute
	// maxWaiting is how many devices may wait on one replica, and maxWaitingOf how many
	// of them from one network. If the queue is full, the newest device of the
	// neighbourhood (see identity.Neighbourhood) with the most devices loses its place.
	// Devices without a place get the same link again at once. They then poll at growing
	// intervals, so they still learn the decision.
	maxWaiting   = 1024
	maxWaitingOf = 64
	// maxPublished is how many waiting devices are published to other replicas.
	maxPublished = 100
	// maxShownTags is how many tags of a device are kept while it waits. The device is not
	// trusted yet; the rest of its tags are checked when it joins.
	maxShownTags = 8
)

// WaitingLogin is a device that asked to join without a key and waits for approval.
type WaitingLogin = ledger.WaitingLogin

// Logins implements the use cases for devices that join without a pre-auth key and wait for
// an administrator's approval.
type Logins struct {
	*core
	ssh       *SSH // to recognize the code of an SSH session
	sealer    *identity.LoginSealer
	serverURL string
	waiting   loginQueue
}

// loginQueue holds the devices that wait on this replica. A device that leaves is removed
// completely, so that unknown devices use no memory.
type loginQueue struct {
	mu      sync.Mutex
	all     map[*WaitingLogin]*place // guarded by mu
	entered uint64                   // guarded by mu; how many devices ever entered
	// answered holds the devices that were approved or rejected on this replica recently,
	// by code, so that an administrator who enters a code again is told the result.
	answered map[string]answeredLogin // guarded by mu
}

type answeredLogin struct {
	device WaitingLogin
	until  mesh.Time
}

// place is the place of one device in the queue.
type place struct {
	network, neighbourhood string
	number                 uint64        // increases with each device
	lost                   chan struct{} // closed when another device takes the place
}

// remember keeps a decided device for as long as the decision is valid.
func (r *loginQueue) remember(device WaitingLogin, now, until mesh.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.answered, func(_ string, l answeredLogin) bool { return l.until.Reached(now) })
	if r.answered == nil {
		r.answered = map[string]answeredLogin{}
	}
	r.answered[device.Code] = answeredLogin{device, until}
}

// recall returns a recently decided device by its code.
func (r *loginQueue) recall(code string, now mesh.Time) (WaitingLogin, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, ok := r.answered[code]
	return l.device, ok && !l.until.Reached(now)
}

// enter adds a device to the queue. The channel is closed if the device loses its place. ok
// is false if there is no room.
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

// evict removes the newest device of the neighbourhood with the most devices, so that
// nobody who controls many networks can fill the queue. It fails if no neighbourhood has
// more devices than the newcomer's.
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

// list returns all waiting devices, in no particular order.
func (r *loginQueue) list() []WaitingLogin {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]WaitingLogin, 0, len(r.all))
	for l := range r.all {
		list = append(list, *l)
	}
	return list
}

// Waiting returns the devices that wait on this replica, newest first, at most
// maxPublished.
func (s *Logins) Waiting() []WaitingLogin {
	list := s.waiting.list()
	slices.SortFunc(list, func(a, b WaitingLogin) int {
		return cmp.Or(cmp.Compare(b.Since, a.Since), cmp.Compare(a.Code, b.Code))
	})
	// A client that lost its connection may be waiting twice.
	list = slices.CompactFunc(list, func(a, b WaitingLogin) bool { return a.Code == b.Code })
	return list[:min(len(list), maxPublished)]
}

// Tags returns the tags that a device asks for, if it is known to wait: on this replica, or
// on another one since the last heartbeat or earlier.
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

// ownLink reports whether the client waits on a link that was made for it and is still
// valid.
func (s *Logins) ownLink(j Joining) bool {
	if s.sealer == nil || j.Followup == "" {
		return false
	}
	l, ok := s.sealer.OpenLogin(j.Followup)
	return ok && l.MachineKey == j.MachineKey && l.NodeKey == j.NodeKey && !l.Expired(s.ledger.Now())
}

// link returns the link on which an administrator approves the device: its current one, or
// a new one.
func (s *Logins) link(j Joining) (string, error) {
	switch {
	case s.sealer == nil:
		return "", refuse(BadKey, "preAuthKey", "a pre-auth key is required; ask your administrator for one")
	case s.ownLink(j):
		return s.url(identity.LoginToken(j.Followup)), nil
	}
	h := j.Host.bounded()
	return s.url(s.sealer.SealLogin(identity.Login{
		MachineKey: j.MachineKey, NodeKey: j.NodeKey, Hostname: h.Hostname, OS: h.OS, IssuedAt: s.ledger.Now(),
	})), nil
}

func (s *Logins) url(token string) string { return s.serverURL + "/auth/" + token }

// await blocks until an administrator has decided on any replica, loginPoll has passed,
// or the device loses its place. It returns at once if there is no room.
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
	enough := time.NewTimer(loginPoll - rand.N(loginPoll/8)) // so that clients do not all poll at the same time
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

// answersLogin reports whether there is a decision for the client, or its node has
// already joined.
func answersLogin(w *policy.World, now mesh.Time, j Joining) bool {
	if l, ok := w.Logins.ByNodeKey(j.NodeKey); ok && l.MachineKey == j.MachineKey && !l.Until.Reached(now) {
		return true
	}
	_, joined := w.Nodes.ByKey(j.NodeKey)
	return joined
}
