package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

const (
	// answerLifetime is how long a decision is kept for a device that is asleep.
	answerLifetime = 15 * time.Minute
	// joinWait is how long Approve waits for the node. A device that is waiting joins
	// immediately.
	joinWait  = 3 * time.Second
	maxReason = 256
)

// Pending returns the devices that wait for approval on any replica, newest first. Devices
// that started waiting on another replica moments ago may be missing.
func (s *Logins) Pending() []WaitingLogin { return s.pending(s.Waiting()) }

// pending adds the devices that wait on other replicas to list, and removes those that have
// been decided.
func (s *Logins) pending(list []WaitingLogin) []WaitingLogin {
	for _, r := range s.ledger.Cluster().Replicas() {
		list = append(list, r.Logins...)
	}
	w, now := s.ledger.World(), s.ledger.Now()
	list = slices.DeleteFunc(list, func(l WaitingLogin) bool {
		answer, answered := w.Logins.ByNodeKey(l.NodeKey)
		_, joined := w.Nodes.ByKey(l.NodeKey)
		return answered && !answer.Until.Reached(now) || joined
	})
	slices.SortFunc(list, func(a, b WaitingLogin) int {
		return cmp.Or(cmp.Compare(b.Since, a.Since), cmp.Compare(a.Code, b.Code), a.NodeKey.Compare(b.NodeKey))
	})
	return slices.CompactFunc(list, func(a, b WaitingLogin) bool { return a.Code == b.Code && a.NodeKey == b.NodeKey })
}

// find finds a device by its code, its login link or the link's token. A link works even if
// the device waits on another replica or is not connected. A code is looked up among all
// devices that wait here, however many there are.
func (s *Logins) find(auth string) (WaitingLogin, error) {
	if code := identity.FoldLoginCode(auth); code != "" {
		return s.findCode(code, "")
	}
	if long, code := identity.FoldLongLoginCode(auth); long != "" {
		return s.findCode(code, long)
	}
	if s.sealer == nil {
		return WaitingLogin{}, refuse(Invalid, "authId", "this server does not use login links")
	}
	l, ok := s.sealer.OpenLogin(auth)
	switch {
	case !ok:
		return WaitingLogin{}, refuse(Invalid, "authId", "invalid code or login link; copy the code, such as ABCD-EFGH, or the link from the login page of the device")
	case l.Expired(s.ledger.Now()):
		return WaitingLogin{}, refuse(NotFound, "authId", "the login link has expired; start the login on the device again")
	}
	return WaitingLogin{
		Code: identity.LoginCode(auth), LongCode: identity.LongLoginCode(auth), MachineKey: l.MachineKey, NodeKey: l.NodeKey, Hostname: l.Hostname, OS: l.OS,
		Tags: s.Tags(l.NodeKey), Since: l.IssuedAt,
	}, nil
}

// findCode finds a device by its code and, if given, by its long code as well.
func (s *Logins) findCode(code, long string) (WaitingLogin, error) {
	isOther := func(l WaitingLogin) bool { return l.Code != code || long != "" && l.LongCode != long }
	pending := slices.DeleteFunc(s.pending(s.waiting.list()), isOther)
	switch len(pending) {
	case 0:
		if before, ok := s.waiting.recall(code, s.ledger.Now()); ok && !isOther(before) {
			return before, nil
		}
		if _, err := s.ssh.find(code); err == nil && long == "" {
			return WaitingLogin{}, refuse(NotFound, "authId", "%[1]s is the code of an SSH session, not of a device; approve it with: fairlead ssh approve %[1]s", code)
		}
		return WaitingLogin{}, refuse(NotFound, "authId",
			"no device is waiting with the code %s: it has already joined, or has stopped waiting. Check fairlead nodes list and fairlead auth list, or use the full login link", code)
	case 1:
		return pending[0], nil
	}
	return WaitingLogin{}, refuse(Conflict, "authId", "several devices are waiting with the code %s; use the full login link instead", code)
}

// Approve lets a device join as a node of user. auth is the device's code, its login link
// or the link's token. The node is nil if the device has not come back for the decision
// yet; the decision is kept for answerLifetime.
func (s *Logins) Approve(ctx context.Context, a mesh.Actor, user, auth string) (*mesh.Login, *mesh.Node, error) {
	if user == "" {
		return nil, nil, refuse(Invalid, "user", "specify the user who will own the node")
	}
	device, err := s.find(auth)
	if err != nil {
		return nil, nil, err
	}
	var out approval
	err = s.withPreviousPolicy(ctx, func(c previousPolicy) (err error) {
		out, err = commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (approval, []mesh.Event, error) {
			owner, err := FindUser(w.Snapshot, user)
			if err != nil {
				return approval{}, nil, err
			}
			if err := checkNotSuspended(owner); err != nil {
				return approval{}, nil, err
			}
			login, err := decideAnswer(w, now, device)
			if err != nil {
				return approval{}, nil, err
			}
			if err := c.mayHaveTags(w, owner, device.Tags); err != nil {
				return approval{}, nil, err
			}
			login.User = owner.ID
			return approval{login, owner}, []mesh.Event{mesh.LoginPut{Login: login}}, nil
		})
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	s.waiting.remember(device, s.ledger.Now(), out.login.Until)
	s.logFor(a).Info("device approved", "machine", shortKey(device.MachineKey), "hostname", device.Hostname, "user", out.owner.Name)
	return out.login, s.awaitNode(ctx, device.NodeKey), nil
}

// approval is an approved login, and the user who will own the node.
type approval struct {
	login *mesh.Login
	owner *mesh.User
}

// Answer returns the login as JSON.
func (a approval) Answer() string {
	text, _ := json.Marshal(a.login) // cannot fail
	return string(text)
}

// mayHaveTags refuses a device that requests a tag it cannot get: its join would be refused
// even after an approval.
func (c previousPolicy) mayHaveTags(w *policy.World, owner *mesh.User, tags []string) error {
	for _, tag := range tags {
		err := c.mayTag(w, owner, nil, tag)
		if err == nil {
			continue
		}
		if errors.Is(err, errTrialUnread) {
			return err
		}
		if p, ok := w.Policy(); ok && w.Doc.MayTag(owner, nil, tag) == nil {
			return refuse(Conflict, "authId", "%s", onlyOnTrial(tag, p))
		}
		return refuse(Conflict, "authId",
			"the device requests %s, which user %s may not assign: change tagOwners in the policy, or run tailscale up on the device without --advertise-tags", tag, owner.Name)
	}
	return nil
}

// Reject tells a device that it may not join, and why.
func (s *Logins) Reject(ctx context.Context, a mesh.Actor, auth, reason string) (*mesh.Login, error) {
	if reason == "" {
		reason = "rejected by an administrator"
	}
	if err := checkText("reason", reason, maxReason); err != nil {
		return nil, err
	}
	device, err := s.find(auth)
	if err != nil {
		return nil, err
	}
	login, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (*mesh.Login, []mesh.Event, error) {
		login, err := decideAnswer(w, now, device)
		if err != nil {
			return nil, nil, err
		}
		login.Rejected = reason
		return login, []mesh.Event{mesh.LoginPut{Login: login}}, nil
	})
	if err != nil {
		return nil, err
	}
	s.waiting.remember(device, s.ledger.Now(), login.Until)
	s.logFor(a).Info("device rejected", "machine", shortKey(device.MachineKey), "hostname", device.Hostname, "reason", reason)
	return login, nil
}

// decideAnswer returns a new decision about a device. It replaces an earlier one that the
// device has not received. It refuses devices that have already joined.
func decideAnswer(w *policy.World, now mesh.Time, device WaitingLogin) (*mesh.Login, error) {
	if n, joined := w.Nodes.ByKey(device.NodeKey); joined {
		return nil, refuse(Conflict, "authId", "the device has already joined as node %s (%s)", n.ID, n.Name)
	}
	login := &mesh.Login{ID: w.Counters.Login + 1, MachineKey: device.MachineKey, NodeKey: device.NodeKey, Until: now.Add(answerLifetime)}
	if before, ok := w.Logins.ByNodeKey(device.NodeKey); ok {
		login.ID = before.ID
	}
	return login, nil
}

// awaitNode returns the node that joins with a key, or nil if none does within joinWait.
func (s *Logins) awaitNode(ctx context.Context, k key.NodePublic) *mesh.Node {
	ctx, cancel := context.WithTimeout(ctx, joinWait)
	defer cancel()
	for {
		at := s.ledger.Cursor()
		if n, ok := at.World().Nodes.ByKey(k); ok {
			return n
		}
		select {
		case <-at.More():
		case <-ctx.Done():
			return nil
		}
	}
}
