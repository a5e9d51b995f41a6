package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// callerAccess returns what the caller may do. bound is false if nothing limits it, as on
// the local socket. A key or a user that was deleted, and a user who was
// suspended, in the meantime has no permissions.
func (s *core) callerAccess(w *mesh.Snapshot, a mesh.Actor) (has mesh.Access, bound bool) {
	switch a.Kind {
	case mesh.ActorKey:
		if id, err := strconv.ParseInt(a.ID, 10, 64); err == nil {
			if k, ok := w.APIKeys.Get(mesh.KeyID(id)); ok {
				return s.keyAccess(w, k), true
			}
		}
		return mesh.Access{}, true
	case mesh.ActorUser:
		if u, ok := w.Users.Get(a.User); ok {
			return s.personAccess(u), true
		}
		return mesh.Access{}, true
	case mesh.ActorNode, mesh.ActorLocal, mesh.ActorServer, mesh.ActorReplica:
	}
	return mesh.Access{}, false
}

// mayDeleteUser refuses callers that may delete users but not everything that would be
// deleted with this one: nodes and pre-auth keys. The role operator is enough for both.
// tagged holds the nodes to be deleted in addition to the user's own. It also refuses users
// with a higher role.
func (s *core) mayDeleteUser(w *policy.World, a mesh.Actor, u *mesh.User, tagged []*mesh.Node) error {
	has, bound := s.callerAccess(w.Snapshot, a)
	if !bound {
		return nil
	}
	if err := s.mayRemove(w, a, u); err != nil {
		return err
	}
	if !has.Allows(mesh.NounNodes, mesh.RoleOperator) && w.Nodes.OwnedCount(u.ID)+len(tagged) > 0 {
		return errDeletedWithUser(has, u, "nodes", mesh.NounNodes)
	}
	if has.Allows(mesh.NounPreAuthKeys, mesh.RoleOperator) {
		return nil
	}
	for k := range w.PreAuthKeys.All() {
		if k.User == u.ID {
			return errDeletedWithUser(has, u, "pre-auth keys", mesh.NounPreAuthKeys)
		}
	}
	return nil
}

func errDeletedWithUser(has mesh.Access, u *mesh.User, what string, n mesh.Noun) error {
	return refuse(Forbidden, "", "deleting user %s also deletes their %s, which requires the scope %s; the API key has %v", u.Name, what, n, has.Scopes)
}

// mayRevokeKey refuses to expire or delete a key that has more permissions than the caller.
func (s *core) mayRevokeKey(w *policy.World, a mesh.Actor, k *mesh.APIKey) error {
	if has, bound := s.callerAccess(w.Snapshot, a); bound && !has.Covers(s.keyAccess(w.Snapshot, k)) {
		return refuse(Forbidden, "", "an API key cannot revoke a key with more permissions; use a key with at least the permissions of %s, or the local socket", k.Prefix)
	}
	return nil
}

// previousPolicy is the policy that reverting the trial restores.
type previousPolicy struct {
	trial mesh.PolicyVersion // zero if none is on trial
	doc   *lang.Doc
}

// previousPolicy reads the policy before the trial from the history. A decision cannot do
// that, because it has no I/O.
func (s *core) previousPolicy(ctx context.Context) (previousPolicy, error) {
	p, ok := s.ledger.World().Policy()
	if !ok || p.ConfirmBy == 0 {
		return previousPolicy{}, nil
	}
	_, doc, err := s.textBefore(ctx, p)
	return previousPolicy{p.Version, doc}, err
}

// errTrialUnread is returned by a decision that needs the policy that a revert would
// restore.
var errTrialUnread = errors.New("the unconfirmed policy has changed")

// withPreviousPolicy runs do. If do fails with errTrialUnread, it runs again with the
// policy that a revert would restore, so that requests which don't need it cost no
// read from the database.
func (s *core) withPreviousPolicy(ctx context.Context, do func(previousPolicy) error) error {
	var c previousPolicy
	for range 3 {
		err := do(c)
		if !errors.Is(err, errTrialUnread) {
			return err
		}
		if c, err = s.previousPolicy(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: the policy keeps changing; retry", ledger.ErrUnavailable)
}

// mayTag refuses a tag that a device may not request. While a policy is on trial,
// the one that a revert would restore must allow the tag too: a revert could not
// take the tag back, because a node cannot lose its last tag.
func (c previousPolicy) mayTag(w *policy.World, user *mesh.User, k *mesh.PreAuthKey, tag string) error {
	if err := w.Doc.MayTag(user, k, tag); err != nil {
		return refuse(Denied, "tags", "%s", err.Error())
	}
	p, ok := w.Policy()
	switch {
	case !ok || p.ConfirmBy == 0:
		return nil
	case p.Version != c.trial:
		return errTrialUnread
	case c.doc.MayTag(user, k, tag) != nil:
		return refuse(Denied, "tags", "%s", onlyOnTrial(tag, p))
	}
	return nil
}

func onlyOnTrial(tag string, p *mesh.Policy) string {
	return fmt.Sprintf("%s: only policy version %v allows %s, and it is not confirmed yet; confirm it (fairlead policy confirm %v), then retry",
		lang.ErrTagDenied, p.Version, tag, p.Version)
}

// mayChangeNames prevents keys that cannot change the policy from changing who it applies
// to: changing a user from before to after may add or remove the user that a name in the
// policy refers to. before is nil for a new user, after for a deleted one. The policy that
// a revert would restore is checked too.
func (c previousPolicy) mayChangeNames(s *core, w *policy.World, a mesh.Actor, before, after *mesh.User) error {
	has, bound := s.callerAccess(w.Snapshot, a)
	if !bound || has.Allows(mesh.NounPolicy, mesh.RoleAdmin) {
		return nil
	}
	docs := []*lang.Doc{w.Doc}
	if p, ok := w.Policy(); ok && p.ConfirmBy != 0 {
		if p.Version != c.trial {
			return refuse(Conflict, "", "the policy has just changed; retry")
		}
		docs = append(docs, c.doc)
	}
	for _, doc := range docs {
		had, now := doc.Mentions(before), doc.Mentions(after)
		for _, name := range slices.Concat(had, now) {
			if slices.Contains(had, name) != slices.Contains(now, name) {
				return refuse(Forbidden, "", "the policy mentions the user %s, so this changes who it applies to: use an API key that can change the policy (role admin, scope policy), or the local socket", name)
			}
		}
	}
	return nil
}
