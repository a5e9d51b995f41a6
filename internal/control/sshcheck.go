package control

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

const (
	// sshHold is how long a node waits before it asks again. It then prints a progress line
	// for the user. That is also how it notices that the user has given up: otherwise it
	// would keep asking forever.
	sshHold = time.Minute
	// sshPatience is how long a session waits for an administrator in total.
	sshPatience = 30 * time.Minute
	// sshAnswerLifetime is how long an approval waits for a single session, and how long a
	// rejection is repeated to users who try again.
	sshAnswerLifetime = time.Minute
	// sshRejectionLifetime is how long the owner of the device cannot approve a session that
	// an administrator rejected.
	sshRejectionLifetime = 24 * time.Hour
	maxSSHUser           = 256

	rejectedSession = "an administrator rejected this session"
)

// SSHSession identifies what an approval is for: source node, destination node and user
// name. Several actual sessions may share one.
type SSHSession struct {
	Src, Dst mesh.NodeID
	User     string // on the operating system of Dst
}

// Code returns the code by which people refer to a session. It is derived from the session,
// so it is the same on every replica and after a restart.
func (q SSHSession) Code() string {
	return identity.Code(fmt.Sprintf("ssh %d %d %s", q.Src, q.Dst, q.User))
}

// SSHAsk is a node's question whether a session may begin on it.
type SSHAsk struct {
	SSHSession
	MachineKey key.MachinePublic // machine key of the node that asks
	// Since is copied from the last response; it is zero in the first request.
	Since mesh.Time
	// SignIn is followed by the code where people sign in to approve a session. It is empty
	// if nobody can sign in.
	SignIn string
}

// SSHVerdict tells a node what to do with a session.
type SSHVerdict int

// The verdicts.
const (
	SSHAskAgain SSHVerdict = iota
	SSHAccept
	SSHReject
)

// SSHAnswer is the response to an SSHAsk.
type SSHAnswer struct {
	Verdict SSHVerdict
	Message string    // for the user of the session
	Since   mesh.Time // for the next request
}

// sshLine formats a line for the user of a session.
func sshLine(format string, args ...any) string {
	return "fairlead: " + fmt.Sprintf(format, args...) + "\r\n"
}

// Check decides whether a session may begin. If the policy requires an approval, the first
// call says so immediately. Later calls return when an administrator has decided on any
// replica, or after sshHold.
func (s *SSH) Check(ctx context.Context, a mesh.Actor, q SSHAsk) (SSHAnswer, error) {
	n, err := s.findTarget(ctx, q)
	if err != nil {
		return SSHAnswer{}, err
	}
	a.Kind, a.ID, a.Name = mesh.ActorNode, n.ID.String(), n.Name
	if err := checkText("the user", q.User, maxSSHUser); err != nil {
		return SSHAnswer{Verdict: SSHReject, Message: sshLine("%v", err)}, nil
	}
	now := s.ledger.Now()
	since := q.Since
	if since <= 0 || since > now {
		since = now
	}
	answer, done, err := s.decided(ctx, a, s.ledger.World(), q.SSHSession)
	switch {
	case err != nil:
		return SSHAnswer{}, err
	case done:
	case now.Sub(since) >= sshPatience:
		done, answer = true, s.deny(a, q.SSHSession, "nobody approved this session in time")
	}
	if done {
		s.sessions.forget(q.SSHSession)
		return answer, nil
	}
	fresh, ok := s.sessions.enter(q.SSHSession, since)
	if !ok {
		return s.deny(a, q.SSHSession, "too many sessions are waiting for approval; try again later"), nil
	}
	defer func() { s.sessions.leave(q.SSHSession, answer.Verdict != SSHAskAgain) }()
	if fresh {
		s.logSession(a, q.SSHSession).Info("SSH session waiting for approval", "code", q.Code())
	}
	if q.Since == 0 {
		return SSHAnswer{Message: s.invite(q), Since: since}, nil
	}
	answer, err = s.wait(ctx, a, q.SSHSession)
	answer.Since = since
	return answer, err
}

// invite tells the user of a session how it is approved.
func (s *SSH) invite(q SSHAsk) string {
	if src, ok := s.ledger.World().Nodes.Get(q.Src); ok && !src.Tagged() && q.SignIn != "" {
		return sshLine("to approve this session, sign in:") + sshLine("  %s%s", q.SignIn, q.Code()) +
			sshLine("or ask an administrator to run: fairlead ssh approve %s", q.Code())
	}
	return sshLine("an administrator must approve this session with the code %s:", q.Code()) + sshLine("  fairlead ssh approve %s", q.Code())
}

// wait waits for a decision about a session.
func (s *SSH) wait(ctx context.Context, a mesh.Actor, q SSHSession) (SSHAnswer, error) {
	enough := time.NewTimer(sshHold)
	defer enough.Stop()
	var basis policy.Basis
	var grant *mesh.SSHGrant
	for {
		at := s.ledger.Cursor()
		w := s.ledger.World() // not older than the cursor
		if b, g := w.Basis(), grantIn(w, q); g != grant || !b.Same(basis) {
			basis, grant = b, g
			if answer, done, err := s.decided(ctx, a, w, q); done || err != nil {
				return answer, err
			}
		}
		select {
		case <-at.More():
		case <-enough.C:
			return SSHAnswer{Message: sshLine("still waiting for approval; the code is %s", q.Code())}, nil
		case <-ctx.Done():
			return SSHAnswer{}, ctx.Err()
		}
	}
}

// findTarget returns the node that asks. It refuses machines that ask for another node.
func (s *SSH) findTarget(ctx context.Context, q SSHAsk) (*mesh.Node, error) {
	known := func() bool {
		w := s.ledger.World()
		_, src := w.Nodes.Get(q.Src)
		_, dst := w.Nodes.Get(q.Dst)
		return src && dst
	}
	if !known() {
		// Another replica may have just registered it.
		if err := s.ledger.Sync(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
		}
	}
	n, ok := s.ledger.World().Nodes.Get(q.Dst)
	switch {
	case !ok:
		return nil, refuse(NotFound, "dst", "unknown node %s", q.Dst)
	case n.MachineKey != q.MachineKey:
		return nil, refuse(Denied, "dst", "node %s belongs to another machine", q.Dst)
	}
	return n, nil
}

// decided returns the response for a session that the policy or an administrator has
// decided on. done is false if it must wait.
func (s *SSH) decided(ctx context.Context, a mesh.Actor, w *policy.World, q SSHSession) (answer SSHAnswer, done bool, err error) {
	accept := SSHAnswer{Verdict: SSHAccept}
	rule := shellRule(w, q)
	switch {
	case rule == nil:
		return s.deny(a, q, "no policy rule allows this session"), true, nil
	case !rule.Check:
		return accept, true, nil
	}
	switch g := answerIn(w, q, rule, s.ledger.Now()); {
	case g == nil:
		return SSHAnswer{}, false, nil
	case g.Rejected:
		return s.deny(a, q, rejectedSession), true, nil
	case rule.CheckPeriod > 0:
		return accept, true, nil
	}
	return s.use(ctx, a, q)
}

// use consumes the approval of a single session, unless another session has done so.
func (s *SSH) use(ctx context.Context, a mesh.Actor, q SSHSession) (answer SSHAnswer, taken bool, err error) {
	taken, err = commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (bool, []mesh.Event, error) {
		rule := shellRule(w, q)
		if rule == nil || !rule.Check {
			return false, nil, nil
		}
		g := answerIn(w, q, rule, now)
		if g == nil || g.Rejected {
			return false, nil, nil
		}
		return true, []mesh.Event{mesh.SSHGrantGone{ID: g.ID}}, nil
	})
	if err != nil || !taken {
		return SSHAnswer{}, false, err
	}
	return SSHAnswer{Verdict: SSHAccept}, true, nil
}

// shellRule returns the first rule that matches a session, or nil if none does.
func shellRule(w *policy.World, q SSHSession) *lang.SSHRule {
	src, known := w.Nodes.Get(q.Src)
	dst, found := w.Nodes.Get(q.Dst)
	if !known || !found || src.CutOff() || src.NeedsApproval {
		return nil
	}
	for _, shell := range w.Shells(w.Class(dst), dst.Owner) {
		if admits(shell, src) && mayBecome(shell.Users, q.User) {
			return shell.SSHRule
		}
	}
	return nil
}

func admits(shell policy.Shell, src *mesh.Node) bool {
	if src.Tagged() {
		return slices.ContainsFunc(src.Addrs(), func(addr netip.Addr) bool { return slices.Contains(shell.Addrs, addr) })
	}
	return slices.ContainsFunc(shell.People, func(u *mesh.User) bool { return u.ID == src.Owner })
}

func mayBecome(users []string, user string) bool {
	switch user {
	case "":
		return false
	case "root":
		return slices.Contains(users, user)
	}
	return slices.Contains(users, user) || slices.Contains(users, lang.NonRoot)
}

func grantIn(w *policy.World, q SSHSession) *mesh.SSHGrant {
	g, _ := w.SSHGrants.For(q.Src, q.Dst, q.User)
	return g
}

// answerIn returns the valid decision on a session, or nil if there is none. If a rule's
// period became shorter, that applies to earlier approvals too.
func answerIn(w *policy.World, q SSHSession, rule *lang.SSHRule, now mesh.Time) *mesh.SSHGrant {
	g := grantIn(w, q)
	period := approvalPeriod(rule)
	if g != nil && g.Rejected {
		period = sshAnswerLifetime
	}
	if g == nil || g.Until.Reached(now) || g.GrantedAt.Add(period).Reached(now) {
		return nil
	}
	return g
}

func approvalPeriod(rule *lang.SSHRule) time.Duration {
	return cmp.Or(rule.CheckPeriod, sshAnswerLifetime)
}

// deny returns the rejection of a session with the reason, and logs it.
func (s *SSH) deny(a mesh.Actor, q SSHSession, why string) SSHAnswer {
	if s.refusals.Admit(a.Addr) {
		rule := why
		if r := shellRule(s.ledger.World(), q); r != nil {
			rule = fmt.Sprintf("ssh, line %d: %s", r.Line, why)
		}
		s.logSession(a, q).Warn("ACL denied", "rule", rule)
	}
	return SSHAnswer{Verdict: SSHReject, Message: sshLine("%s", why)}
}

// logSession returns a logger that names a session.
func (s *SSH) logSession(a mesh.Actor, q SSHSession) *slog.Logger {
	var node, user, target string
	w := s.ledger.World()
	if n, ok := w.Nodes.Get(q.Src); ok {
		node, user = n.Name, s.ownerName(n)
		if n.Tagged() {
			user = strings.Join(n.Tags, ",")
		}
	}
	if n, ok := w.Nodes.Get(q.Dst); ok {
		target = n.Name
	}
	return s.logFor(a).With("node", node, "user", user, "target", target, "ssh_user", q.User)
}
