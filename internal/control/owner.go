package control

import (
	"time"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// This file defines what members own. To a member, everything else does not exist: it is
// not found, with the same error as an object that was never there.

// OwnsNode reports whether the caller may use a node. A member owns the nodes without tags
// that belong to them.
func OwnsNode(a mesh.Actor, n *mesh.Node) bool {
	return !a.Member || a.User != 0 && n.Owner == a.User && !n.Tagged()
}

// OwnsPreAuthKey reports whether the caller may use a pre-auth key. A member owns the keys
// with which nodes join as theirs. A key with tags gives other access than the member has.
func OwnsPreAuthKey(a mesh.Actor, k *mesh.PreAuthKey) bool {
	return !a.Member || a.User != 0 && k.User == a.User && len(k.Tags) == 0
}

// OwnsUser reports whether the caller may see a user. A member sees only themselves.
func OwnsUser(a mesh.Actor, u *mesh.User) bool { return !a.Member || a.User != 0 && u.ID == a.User }

// OwnNode is FindNode for a caller.
func OwnNode(s *mesh.Snapshot, a mesh.Actor, ref string) (*mesh.Node, error) {
	n, err := FindNode(s, ref)
	if err == nil && !OwnsNode(a, n) {
		return nil, ErrNoNode(ref)
	}
	return n, err
}

// OwnPreAuthKey is FindPreAuthKey for a caller.
func OwnPreAuthKey(s *mesh.Snapshot, a mesh.Actor, ref string) (*mesh.PreAuthKey, error) {
	k, err := FindPreAuthKey(s, ref)
	if err == nil && !OwnsPreAuthKey(a, k) {
		return nil, ErrNoPreAuthKey(ref)
	}
	return k, err
}

// OwnUser is FindUser for a caller.
func OwnUser(s *mesh.Snapshot, a mesh.Actor, ref string) (*mesh.User, error) {
	u, err := FindUser(s, ref)
	if err == nil && !OwnsUser(a, u) {
		return nil, ErrNoUser(ref)
	}
	return u, err
}

// mayExtend refuses members who would make a node stay authenticated for longer: signing
// in again is what the expiry is for.
func mayExtend(a mesh.Actor, before, after *mesh.Node) error {
	longer := after.Expiry == 0 && before.Expiry != 0 || before.Expiry != 0 && after.Expiry > before.Expiry || before.KeyExpired && !after.KeyExpired
	if a.Member && longer {
		return refuse(Forbidden, "", "members can expire their devices, but not extend the expiry; sign in again on the device, or ask an administrator")
	}
	return nil
}

const (
	// memberKeyLifetime is the maximum lifetime of pre-auth keys that members create. With
	// a longer one, a device could keep its access without a sign-in.
	memberKeyLifetime = 24 * time.Hour
	// memberKeys is how many valid pre-auth keys a member may have.
	memberKeys = 50
)

// mayHaveKey refuses a member's pre-auth key that is valid for too long, or one too many.
func mayHaveKey(w *policy.World, a mesh.Actor, now, end mesh.Time) error {
	if !a.Member {
		return nil
	}
	if end > now.Add(memberKeyLifetime) {
		return refuse(Forbidden, "", "a pre-auth key of a member can be valid for at most %d hours", memberKeyLifetime/time.Hour)
	}
	valid := 0
	for k := range w.PreAuthKeys.All() {
		if k.User == a.User && !k.Expiry.Reached(now) {
			valid++
		}
	}
	if valid >= memberKeys {
		return refuse(Forbidden, "", "you have %d valid pre-auth keys; delete some first", valid)
	}
	return nil
}

// ownKey completes the pre-auth key that a member creates: it is for the member's own
// devices, and gives no more than signing in would.
func ownKey(a mesh.Actor, in NewPreAuthKey) (NewPreAuthKey, error) {
	if !a.Member {
		return in, nil
	}
	if len(in.Tags) > 0 || in.PreApproved {
		return in, refuse(Forbidden, "", "members can create pre-auth keys only for their own devices, without tags and without approval in advance")
	}
	if in.User == "" {
		in.User = a.User.String()
	}
	return in, nil
}
