package control

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// Nodes implements the use cases for existing nodes; Joins adds new ones.
type Nodes struct {
	*core
	quotas Quotas
}

// FindNode finds a node by id, name, full DNS name or address. A number is always an id,
// even if it is also the name of a node.
func FindNode(s *mesh.Snapshot, ref string) (*mesh.Node, error) {
	if id, err := strconv.ParseInt(ref, 10, 64); err == nil {
		if n, ok := s.Nodes.Get(mesh.NodeID(id)); ok {
			return n, nil
		}
	} else if addr, err := netip.ParseAddr(ref); err == nil {
		if n, ok := s.Nodes.ByAddr(addr.Unmap()); ok {
			return n, nil
		}
	} else if n, ok := s.NodeNamed(ref); ok {
		return n, nil
	}
	return nil, ErrNoNode(ref)
}

// ErrNoNode returns the refusal for a node that does not exist.
func ErrNoNode(ref string) error {
	return refuse(NotFound, "node", "unknown node %q; list nodes with: fairlead nodes list", ref)
}

// change applies a change to a copy of a node, commits it if anything changed, and returns
// the node before and after. If ifRevision is given, here and in all methods that change a
// node, the node must have this NodeRevision.
func (s *Nodes) change(ctx context.Context, a mesh.Actor, ref, ifRevision string,
	change func(w *policy.World, now mesh.Time, n *mesh.Node) (changed bool, err error),
) (before, after *mesh.Node, err error) {
	c, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (none nodeChange, _ []mesh.Event, _ error) {
		was, err := nodeAt(w.Snapshot, a, ref, ifRevision)
		if err != nil {
			return none, nil, err
		}
		n := *was
		changed, err := change(w, now, &n)
		if err != nil || !changed {
			return nodeChange{was, was}, nil, err
		}
		n.UpdatedAt = now
		return nodeChange{was, &n}, []mesh.Event{mesh.NodePut{Node: &n}}, nil
	})
	return c.before, c.after, err
}

// Delete deletes a node. Its device must join again.
func (s *Nodes) Delete(ctx context.Context, a mesh.Actor, ref, ifRevision string) error {
	node, err := commit(ctx, s.core, a, func(w *policy.World, _ mesh.Time) (*mesh.Node, []mesh.Event, error) {
		node, err := nodeAt(w.Snapshot, a, ref, ifRevision)
		if err != nil {
			return nil, nil, err
		}
		return node, []mesh.Event{mesh.NodeGone{ID: node.ID}}, nil
	})
	if err != nil {
		return err
	}
	s.logFor(a).Info("node deleted", "node", node.ID, "name", node.Name, "user", s.ownerName(node))
	return nil
}

// nodeName matches a DNS label in lower case.
var nodeName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func checkNodeName(path, name string) error {
	if !nodeName.MatchString(name) {
		return refuse(Invalid, path, "invalid node name %q: use at most 63 letters, digits and hyphens, with no hyphen at either end", name)
	}
	if strings.Trim(name, "0123456789") == "" {
		return refuse(Invalid, path, "invalid node name %q: it looks like a node id; add a letter", name)
	}
	return nil
}

// Rename sets a node's name in the mesh's DNS, which then no longer follows its hostname.
// An empty name makes it follow the hostname again.
func (s *Nodes) Rename(ctx context.Context, a mesh.Actor, ref, name, ifRevision string) (*mesh.Node, error) {
	name = strings.ToLower(name)
	if name != "" {
		if err := checkNodeName("newName", name); err != nil {
			return nil, err
		}
	}
	before, after, err := s.change(ctx, a, ref, ifRevision, func(w *policy.World, _ mesh.Time, n *mesh.Node) (bool, error) {
		return decideRename(w, a, n, name)
	})
	if err != nil {
		return nil, err
	}
	if after.Name != before.Name {
		s.logFor(a).Info("node renamed", "node", after.ID, "name", after.Name, "was", before.Name)
	}
	return after, nil
}

func decideRename(w *policy.World, a mesh.Actor, n *mesh.Node, name string) (changed bool, err error) {
	was, wasRenamed := n.Name, n.Renamed
	if n.Renamed = name != ""; n.Renamed {
		n.Name = name
	} else {
		n.Name = w.UniqueName(n.Hostname, n.ID)
	}
	if holder, taken := w.Nodes.ByName(n.Name); taken && holder.ID != n.ID {
		if !OwnsNode(a, holder) {
			return false, refuse(Conflict, "newName", "the name %q is taken; choose another name", n.Name)
		}
		return false, refuse(Conflict, "newName", "node %s already has the name %q; rename that node first, or choose another name", holder.ID, n.Name)
	}
	if _, reserved := w.Reservations.ByName(n.Name); reserved && n.Name != was {
		return false, errReserved("newName", n.Name)
	}
	return n.Name != was || n.Renamed != wasRenamed, nil
}

// Tag sets the tags of a node, which replace its user or its earlier tags. A node that
// belonged to a user no longer expires.
func (s *Nodes) Tag(ctx context.Context, a mesh.Actor, ref string, tags []string, ifRevision string) (*mesh.Node, error) {
	tags, err := checkTags("tags", tags)
	if err != nil {
		return nil, err
	}
	if len(tags) == 0 {
		return nil, errLastTag()
	}
	before, after, err := s.change(ctx, a, ref, ifRevision, func(w *policy.World, now mesh.Time, n *mesh.Node) (bool, error) {
		changed, err := decideTag(w, n, tags)
		return keepRoutes(w, now, n) || changed, err
	})
	if err != nil {
		return nil, err
	}
	if !slices.Equal(after.Tags, before.Tags) {
		s.logRoutes(a, before, after)
		s.logFor(a).Info("node tagged", "node", after.ID, "name", after.Name, "tags", after.Tags, "was", before.Tags, "user", s.ownerName(before))
	}
	return after, nil
}

func errLastTag() error {
	return refuse(Invalid, "tags", "cannot remove the last tag of a node; delete the node and let it join again with a pre-auth key of a user")
}

func decideTag(w *policy.World, n *mesh.Node, tags []string) (changed bool, err error) {
	if err := checkTagsKnown(w, "tags", tags); err != nil {
		return false, err
	}
	return setTags(n, tags), nil
}

// setTags sets the tags of a node. A node that had none loses its owner and its expiry.
func setTags(n *mesh.Node, tags []string) (changed bool) {
	if slices.Equal(n.Tags, tags) {
		return false
	}
	if !n.Tagged() {
		n.Owner, n.CreatedBy = 0, n.Owner
		n.Expiry, n.KeyExpired = 0, false
	}
	n.Tags = tags
	return true
}

// Move transfers a node to another user.
func (s *Nodes) Move(ctx context.Context, a mesh.Actor, ref, user, ifRevision string) (*mesh.Node, error) {
	if user == "" {
		return nil, refuse(Invalid, "user", "user is required: the name or id of the new owner")
	}
	before, after, err := s.change(ctx, a, ref, ifRevision, func(w *policy.World, now mesh.Time, n *mesh.Node) (bool, error) {
		owner, err := FindUser(w.Snapshot, user)
		if err != nil {
			return false, err
		}
		if n.Tagged() {
			return false, refuse(Conflict, "user", "node %s is tagged and has no owner; let it join again with a pre-auth key of %s", n.Name, owner.Name)
		}
		if err := s.quotas.checkUser(w, n.ID, owner.ID); err != nil {
			return false, err
		}
		changed := n.Owner != owner.ID
		n.Owner = owner.ID
		return keepRoutes(w, now, n) || changed, nil
	})
	if err != nil {
		return nil, err
	}
	if after.Owner != before.Owner {
		s.logRoutes(a, before, after)
		s.logFor(a).Info("node moved", "node", after.ID, "name", after.Name, "user", s.ownerName(after), "was", s.ownerName(before))
	}
	return after, nil
}

// Expiration is when a node must authenticate again: at a time, never, or, if it is zero,
// now. A time in the past means now too.
type Expiration struct {
	At    time.Time
	Never bool
}

func (e Expiration) check() error {
	switch {
	case e.At.UTC().Year() > maxYear:
		return refuse(Invalid, "expiry", "expiry must not be after the year %d", maxYear)
	case e.Never && mesh.TimeOf(e.At) != 0:
		return refuse(Invalid, "disableExpiry", "specify only one of expiry and disableExpiry")
	}
	return nil
}

// decide applies e to n. A node that has already expired is not expired again.
func (e Expiration) decide(n *mesh.Node, now mesh.Time) (changed bool) {
	was, wasExpired := n.Expiry, n.KeyExpired
	if at := mesh.TimeOf(e.At); e.Never || at > now {
		n.Expiry, n.KeyExpired = at, false
		return n.Expiry != was || wasExpired
	}
	if n.Expired(now) {
		return false
	}
	n.Expiry, n.KeyExpired = now, true
	return true
}

// Expire makes a node authenticate again, now or at the time of e. An expired node is valid
// again at once if that time is in the future.
func (s *Nodes) Expire(ctx context.Context, a mesh.Actor, ref string, e Expiration, ifRevision string) (*mesh.Node, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	before, after, err := s.change(ctx, a, ref, ifRevision, func(_ *policy.World, now mesh.Time, n *mesh.Node) (bool, error) {
		was := *n
		changed := e.decide(n, now)
		return changed, mayExtend(a, &was, n)
	})
	switch {
	case err != nil:
		return nil, err
	case after == before:
	case after.KeyExpired:
		s.logFor(a).Info("node expired", "node", after.ID, "name", after.Name, "user", s.ownerName(after))
	default:
		expiry := "never"
		if after.Expiry != 0 {
			expiry = after.Expiry.Time().Format(time.RFC3339)
		}
		s.logFor(a).Info("node expiry changed", "node", after.ID, "name", after.Name, "user", s.ownerName(after), "expiry", expiry)
	}
	return after, nil
}

// NodeSelection selects all nodes, all that are offline, or some by id, name or address.
type NodeSelection struct {
	All, AllOffline bool
	Nodes           []string
}

func (sel NodeSelection) check() error {
	given := 0
	for _, is := range []bool{sel.All, sel.AllOffline, len(sel.Nodes) > 0} {
		if is {
			given++
		}
	}
	if given != 1 {
		return refuse(Invalid, "", "specify exactly one of nodes, all and allOffline")
	}
	return nil
}

// ExpireMany makes nodes authenticate again. It returns how many it expired and how many
// had expired already. Named nodes expire together, or none of them if one does not exist.
// In a large network it may fail after some nodes have expired; a retry expires the rest.
func (s *Nodes) ExpireMany(ctx context.Context, a mesh.Actor, sel NodeSelection) (expired, already int, err error) {
	if err := sel.check(); err != nil {
		return 0, 0, err
	}
	var done expiryProgress
	for first := true; first || done.More(); first = false {
		next, err := commit(ctx, s.core, a, func(w *policy.World, now mesh.Time) (expiryProgress, []mesh.Event, error) {
			before := done
			if first {
				before.end = w.Counters.Node
			}
			return decideExpireNodes(w, now, a, sel, before)
		})
		if err != nil && done.expired > 0 {
			err = fmt.Errorf("expired %d nodes, then failed: %w", done.expired, err)
		}
		if err != nil {
			return done.expired, done.already, err
		}
		done = next
	}
	s.logFor(a).Info("nodes expired", "nodes", done.expired, "already", done.already, "all", sel.All, "offline", sel.AllOffline)
	return done.expired, done.already, nil
}

// expiryProgress is the progress of an ExpireMany that takes several commits.
type expiryProgress struct {
	expired, already int
	last             mesh.NodeID // all nodes up to this one are done
	end              mesh.NodeID // nodes that join later are not included
}

// Answer returns how many nodes were expired, and how many had expired before.
func (p expiryProgress) Answer() string { return fmt.Sprint(p.expired, p.already) }

// More reports whether another commit has to follow.
func (p expiryProgress) More() bool { return p.last < p.end }

// decideExpireNodes expires a limited number of the remaining nodes.
func decideExpireNodes(w *policy.World, now mesh.Time, a mesh.Actor, sel NodeSelection, before expiryProgress) (expiryProgress, []mesh.Event, error) {
	done := before
	done.last = before.end
	var evs []mesh.Event
	expire := func(n *mesh.Node) {
		if n.Expired(now) {
			done.already++
			return
		}
		ended := *n
		ended.Expiry, ended.KeyExpired, ended.UpdatedAt = now, true, now
		evs = append(evs, mesh.NodePut{Node: &ended})
		done.expired++
	}
	if len(sel.Nodes) > 0 {
		seen := map[mesh.NodeID]bool{}
		for _, ref := range sel.Nodes {
			n, err := OwnNode(w.Snapshot, a, ref)
			if err != nil {
				return done, nil, err
			}
			if !seen[n.ID] {
				seen[n.ID] = true
				expire(n)
			}
		}
		return done, evs, nil
	}
	for n := range w.Nodes.All() {
		switch {
		case n.ID <= before.last || sel.AllOffline && n.Presence.Online || !OwnsNode(a, n):
			continue
		case n.ID > before.end:
			return done, evs, nil
		case len(evs) == ledger.MaxNodes:
			done.last = n.ID - 1
			return done, evs, nil
		}
		expire(n)
	}
	return done, evs, nil
}

// SetAddresses sets the addresses of a node. An invalid (zero) address leaves the current
// one unchanged.
func (s *Nodes) SetAddresses(ctx context.Context, a mesh.Actor, ref string, v4, v6 netip.Addr, ifRevision string) (*mesh.Node, error) {
	if !v4.IsValid() && !v6.IsValid() {
		return nil, refuse(Invalid, "", "specify ipv4, ipv6 or both")
	}
	before, after, err := s.change(ctx, a, ref, ifRevision, func(w *policy.World, _ mesh.Time, n *mesh.Node) (bool, error) {
		was4, was6 := n.IPv4, n.IPv6
		for _, want := range []struct {
			path   string
			prefix netip.Prefix
			addr   netip.Addr
			of     *netip.Addr
		}{{"ipv4", s.prefixV4, v4, &n.IPv4}, {"ipv6", s.prefixV6, v6, &n.IPv6}} {
			if !want.addr.IsValid() || want.addr == *want.of {
				continue
			}
			if err := addressFree(w, want.path, want.prefix, want.addr); err != nil {
				return false, err
			}
			*want.of = want.addr
		}
		return n.IPv4 != was4 || n.IPv6 != was6, nil
	})
	if err != nil {
		return nil, err
	}
	if after != before {
		s.logFor(a).Info("node addresses changed", "node", after.ID, "name", after.Name, "addresses", after.Addrs(), "was", before.Addrs())
	}
	return after, nil
}

func addressFree(w *policy.World, path string, prefix netip.Prefix, addr netip.Addr) error {
	if !prefix.Contains(addr) {
		return refuse(Invalid, path, "%s is outside %s, the address range of nodes", addr, prefix)
	}
	if holder, taken := w.Nodes.ByAddr(addr); taken {
		return refuse(Conflict, path, "node %s (%s) already has the address %s; change the address of that node first", holder.ID, holder.Name, addr)
	}
	if r, reserved := w.Reservations.ByAddr(addr); reserved {
		return refuse(Conflict, path, "the address %s is reserved for %s; delete the reservation first with: fairlead reservations delete %s", addr, r.Name, r.Name)
	}
	// Only addresses that could be allocated are allowed.
	if next, err := w.NextAddr(prefix, addr.Prev()); err != nil || next != addr {
		return refuse(Invalid, path, "%s is reserved for the network or for clients; choose another address", addr)
	}
	return nil
}

// ownerName returns the name of a node's owner as shown in lists.
func (s *core) ownerName(n *mesh.Node) string {
	if u, ok := s.ledger.World().Users.Get(n.Owner); ok {
		return u.Name
	}
	return TaggedDevices
}
