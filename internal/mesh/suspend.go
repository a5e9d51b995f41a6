package mesh

// SuspensionSource is what suspended a user.
type SuspensionSource string

// The sources of a suspension.
const (
	// SuspendedByAdmin means that a person did it.
	SuspendedByAdmin SuspensionSource = "admin"
	// SuspendedByRecheck means that the identity provider refused to renew the person's
	// sign-in, and SuspendedByLogout that it did so when it was asked after a logout.
	SuspendedByRecheck SuspensionSource = "recheck"
	SuspendedByLogout  SuspensionSource = "logout"
	// SuspendedBySCIM means that the identity provider said that the user is not active.
	SuspendedBySCIM SuspensionSource = "scim"
)

// Suspended reports whether the user has lost all access for the time being.
func (u *User) Suspended() bool { return u.SuspendedAt != 0 }

// Suspend returns the user as suspended.
func (u User) Suspend(by SuspensionSource, now Time) *User {
	u.SuspendedAt, u.SuspendedBy = now, by
	u.HeldAt, u.HeldBy = 0, ""
	return &u
}

// Restore returns the user as neither suspended nor held.
func (u User) Restore() *User {
	u.SuspendedAt, u.SuspendedBy = 0, ""
	u.HeldAt, u.HeldBy = 0, ""
	return &u
}

// Held reports whether an administrator has to decide whether the user is suspended.
func (u *User) Held() bool { return u.HeldAt != 0 }

// Hold returns the user as one whose suspension an administrator has to decide on.
func (u User) Hold(by SuspensionSource, now Time) *User {
	u.HeldAt, u.HeldBy = now, by
	return &u
}

// settleSuspended adds events that give nodes the SuspendedAt of their owners, if evs change
// either. It is a field of the node because what peers see of a node may change only by an
// event of that node.
func settleSuspended(before *Snapshot, evs []Event) []Event {
	users, puts, gone := map[UserID]*User{}, map[NodeID]*Node{}, map[NodeID]bool{}
	affected := false
	for _, e := range evs {
		switch e := e.(type) {
		case UserPut:
			was, known := before.Users.Get(e.User.ID)
			users[e.User.ID] = e.User
			affected = affected || known && was.SuspendedAt != e.User.SuspendedAt
		case NodePut:
			puts[e.Node.ID] = e.Node
		case NodeGone:
			delete(puts, e.ID)
			gone[e.ID] = true
		}
	}
	settled := evs
	settle := func(n *Node) {
		owner := users[n.Owner]
		if owner == nil {
			owner, _ = before.Users.Get(n.Owner)
		}
		var at Time
		if owner != nil && !n.Tagged() {
			at = owner.SuspendedAt
		}
		if n.SuspendedAt != at {
			c := *n
			c.Net, c.Presence = Net{}, Presence{} // not part of a NodePut
			c.SuspendedAt = at
			settled = append(settled[:len(settled):len(settled)], NodePut{Node: &c})
		}
	}
	for _, e := range evs { // in the order of evs, so that all replicas add the same events
		if e, ok := e.(NodePut); ok && puts[e.Node.ID] == e.Node {
			settle(e.Node)
		}
	}
	if affected {
		for n := range before.Nodes.All() {
			if puts[n.ID] == nil && !gone[n.ID] && users[n.Owner] != nil {
				settle(n)
			}
		}
	}
	return settled
}
