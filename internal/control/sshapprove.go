package control

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// sessionGrace is how long a session counts as waiting after its node got a response.
// Nodes ask again immediately, or some seconds later if the connection was lost.
const sessionGrace = 15 * time.Second

// maxWaitingPair is how many requests are held for sessions from one node to another, so
// that no single node can keep others from waiting there.
const maxWaitingPair = 16

// SSH implements the use cases for SSH sessions that need approval: by an administrator, or
// by the owner of the source node, who signs in again.
type SSH struct {
	*core
	sessions sessionQueue
}

// WaitingSSH is a session that waits for approval.
type WaitingSSH = ledger.WaitingSSH

// sessionQueue holds the sessions that wait on this replica.
type sessionQueue struct {
	mu  sync.Mutex
	all map[SSHSession]*sessionWait // guarded by mu
}

type sessionWait struct {
	since   mesh.Time
	holding int       // requests that are being held
	left    time.Time // when the last of them got a response
}

// enter adds a request for a session. It fails if too many are held: in total, for one
// destination, or for one pair of nodes. fresh reports whether the session was not waiting
// before.
func (r *sessionQueue) enter(q SSHSession, since mesh.Time) (fresh, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tidy()
	total, same, pair := 0, 0, 0
	for other, w := range r.all {
		held := max(w.holding, 1)
		total += held
		if other.Dst == q.Dst {
			same += held
			if other.Src == q.Src {
				pair += held
			}
		}
	}
	if total >= maxWaiting || same >= maxWaitingOf || pair >= maxWaitingPair {
		return false, false
	}
	if r.all == nil {
		r.all = map[SSHSession]*sessionWait{}
	}
	w, waits := r.all[q]
	if !waits {
		w = &sessionWait{since: since}
		r.all[q] = w
	}
	w.since = min(w.since, since)
	w.holding++
	return !waits, true
}

// leave undoes enter. A session that was decided no longer waits.
func (r *sessionQueue) leave(q SSHSession, decided bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.all[q]
	w.holding--
	w.left = time.Now()
	if decided && w.holding == 0 {
		delete(r.all, q)
	}
}

// forget removes a session that was decided, unless a request for it is held.
func (r *sessionQueue) forget(q SSHSession) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w, ok := r.all[q]; ok && w.holding == 0 {
		delete(r.all, q)
	}
}

// tidy removes the sessions that nobody has asked about for a while.
func (r *sessionQueue) tidy() {
	maps.DeleteFunc(r.all, func(_ SSHSession, w *sessionWait) bool { return w.holding == 0 && time.Since(w.left) > sessionGrace })
}

// list returns all waiting sessions, newest first.
func (r *sessionQueue) list() []WaitingSSH {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tidy()
	list := make([]WaitingSSH, 0, len(r.all))
	for q, w := range r.all {
		list = append(list, WaitingSSH{Code: q.Code(), Src: q.Src, Dst: q.Dst, User: q.User, Since: w.since})
	}
	slices.SortFunc(list, newestSession)
	return list
}

func newestSession(a, b WaitingSSH) int {
	return cmp.Or(cmp.Compare(b.Since, a.Since), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Src, b.Src), cmp.Compare(a.Dst, b.Dst))
}

func sessionOf(l WaitingSSH) SSHSession { return SSHSession{l.Src, l.Dst, l.User} }

// Waiting returns the sessions that wait on this replica, newest first, at most
// maxPublished.
func (s *SSH) Waiting() []WaitingSSH {
	list := s.sessions.list()
	return list[:min(len(list), maxPublished)]
}

// Pending returns the sessions that wait for a decision on any replica, newest first.
// Sessions that started waiting on another replica moments ago may be missing.
func (s *SSH) Pending() []WaitingSSH {
	w, now := s.ledger.World(), s.ledger.Now()
	list := slices.DeleteFunc(s.allWaiting(), func(l WaitingSSH) bool {
		rule := shellRule(w, sessionOf(l))
		return rule == nil || !rule.Check || answerIn(w, sessionOf(l), rule, now) != nil
	})
	slices.SortFunc(list, newestSession)
	return list
}

// allWaiting returns the sessions that wait on any replica, without duplicates, in no
// particular order.
func (s *SSH) allWaiting() []WaitingSSH {
	all := map[SSHSession]WaitingSSH{}
	for _, r := range s.ledger.Cluster().Replicas() {
		for _, l := range r.SSH {
			all[sessionOf(l)] = l
		}
	}
	for _, l := range s.sessions.list() {
		all[sessionOf(l)] = l
	}
	return slices.Collect(maps.Values(all))
}

// find finds a session by its code: one that waits, or one whose decision is still valid,
// so that administrators can change it.
func (s *SSH) find(text string) (SSHSession, error) {
	code := identity.FoldLoginCode(text)
	if code == "" {
		return SSHSession{}, refuse(Invalid, "code", "invalid code %q: use a code such as ABCD-EFGH, from the waiting terminal or from: fairlead ssh list", text)
	}
	found := map[SSHSession]struct{}{}
	for _, l := range s.allWaiting() {
		if l.Code == code {
			found[sessionOf(l)] = struct{}{}
		}
	}
	for g := range s.ledger.World().SSHGrants.All() {
		if q := (SSHSession{g.Src, g.Dst, g.User}); q.Code() == code {
			found[q] = struct{}{}
		}
	}
	for q := range found {
		if len(found) > 1 {
			return q, refuse(Conflict, "code", "several SSH sessions are waiting with the code %s; close one of them first", code)
		}
		return q, nil
	}
	return SSHSession{}, refuse(NotFound, "code",
		"no SSH session is waiting with the code %s; see fairlead ssh list, or fairlead auth list for devices waiting to join", code)
}

// Approve lets a session begin, and all equal ones for as long as the policy rule allows.
func (s *SSH) Approve(ctx context.Context, a mesh.Actor, code string) (*mesh.SSHGrant, error) {
	g, err := s.answer(ctx, a, code, false, anyone)
	return g, s.logApproved(a, g, err)
}

// ApproveAs is Approve for a person who has just signed in. id identifies the sign-in, which
// approves once: repeating it changes nothing.
func (s *SSH) ApproveAs(ctx context.Context, a mesh.Actor, code string, person mesh.UserID, id string) error {
	u, ok := s.ledger.World().Users.Get(person)
	if !ok {
		return errSession(code)
	}
	a = PersonActor(a, u)
	a.Once = mesh.SignInOnce("ssh "+u.ID.String(), id, code)
	g, err := s.answer(ctx, a, code, false, func(w *policy.World, q SSHSession) error {
		u, ok := w.Users.Get(person)
		if !ok {
			return errSession(code)
		}
		return s.mayApprove(w, q, u)
	})
	if done := (*ledger.AlreadyDone)(nil); errors.As(err, &done) {
		return nil
	}
	return s.logApproved(a, g, err)
}

// ForPerson returns the session with a code, if the user may approve it.
func (s *SSH) ForPerson(code string, u *mesh.User) (SSHSession, error) {
	q, err := s.find(code)
	if err != nil {
		return q, errSession(code)
	}
	return q, s.mayApprove(s.ledger.World(), q, u)
}

// mayApprove reports whether a user may approve a session: as the owner of the source node,
// unless an administrator has rejected it, or as an operator. Nobody else learns
// whether there is such a session.
func (s *SSH) mayApprove(w *policy.World, q SSHSession, u *mesh.User) error {
	if err := mayHaveSessions(u); err != nil {
		return err
	}
	if s.personAccess(u).Allows(mesh.NounSSH, mesh.RoleOperator) {
		return nil
	}
	src, ok := w.Nodes.Get(q.Src)
	if !ok || src.Tagged() || src.Owner != u.ID {
		return errSession(q.Code())
	}
	if g := grantIn(w, q); g != nil && g.Rejected && !g.Until.Reached(s.ledger.Now()) {
		return refuse(Conflict, "code", rejectedSession)
	}
	return nil
}

func errSession(code string) error {
	return refuse(NotFound, "code", "no SSH session from one of your devices is waiting with the code %s. Only the owner of the device, or an administrator, can approve a session", code)
}

func anyone(*policy.World, SSHSession) error { return nil }

func (s *SSH) logApproved(a mesh.Actor, g *mesh.SSHGrant, err error) error {
	if err == nil {
		s.logSession(a, SSHSession{g.Src, g.Dst, g.User}).Info("SSH session approved", "until", g.Until.Time())
	}
	return err
}

// Reject refuses a session, and all equal ones for a minute. It revokes an earlier
// approval. Sessions that have begun continue.
func (s *SSH) Reject(ctx context.Context, a mesh.Actor, code, reason string) (*mesh.SSHGrant, error) {
	if err := checkText("reason", reason, maxReason); err != nil {
		return nil, err
	}
	a.Reason = cmp.Or(reason, a.Reason)
	g, err := s.answer(ctx, a, code, true, anyone)
	if err != nil {
		return nil, err
	}
	s.logSession(a, SSHSession{g.Src, g.Dst, g.User}).Info("SSH session rejected", "reason", reason)
	return g, nil
}

func (s *SSH) answer(ctx context.Context, a mesh.Actor, code string, rejected bool, may func(*policy.World, SSHSession) error) (*mesh.SSHGrant, error) {
	q, err := s.find(code)
	if err != nil {
		return nil, err
	}
	return commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.SSHGrant, []mesh.Event, error) {
		if err := may(w, q); err != nil {
			return nil, nil, err
		}
		rule := shellRule(w, q)
		if rule == nil || !rule.Check {
			return nil, nil, refuse(Conflict, "code", `the policy has changed: no rule with "action": "check" applies to this session any more`)
		}
		g := &mesh.SSHGrant{
			ID: w.Counters.SSHGrant + 1, Src: q.Src, Dst: q.Dst, User: q.User, Rejected: rejected, By: a.String(),
			GrantedAt: now, Until: now.Add(approvalPeriod(rule)),
		}
		if rejected {
			g.Until = now.Add(sshRejectionLifetime)
		}
		if before := grantIn(w, q); before != nil {
			g.ID = before.ID
		}
		return g, []mesh.Event{mesh.SSHGrantPut{Grant: g}}, nil
	})
}
