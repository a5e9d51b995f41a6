package api

import (
	"sync"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// A view holds everything that the API's form of an object is built from. Values in a snapshot
// never change, so equal views give equal results, even if they come from different snapshots.
type (
	userView struct {
		user  *mesh.User // nil for nobody
		nodes int        // number of nodes that the user owns
	}
	preAuthKeyView struct {
		key     *mesh.PreAuthKey // nil for none
		user    userView
		expired bool
	}
	nodeView struct {
		node             *mesh.Node
		owner, createdBy userView
		key              preAuthKeyView
		expired          bool
	}
)

func viewUser(s *mesh.Snapshot, id mesh.UserID) (v userView) {
	if u, ok := s.Users.Get(id); ok {
		v = userView{u, s.Nodes.OwnedCount(id)}
	}
	return v
}

func viewPreAuthKey(s *mesh.Snapshot, k *mesh.PreAuthKey, at mesh.Time) preAuthKeyView {
	return preAuthKeyView{key: k, user: viewUser(s, k.User), expired: k.Expiry.Reached(at)}
}

func viewNode(s *mesh.Snapshot, n *mesh.Node, at mesh.Time) nodeView {
	v := nodeView{node: n, owner: viewUser(s, n.Owner), createdBy: viewUser(s, n.CreatedBy), expired: n.Expired(at)}
	if k, ok := s.PreAuthKeys.Get(n.PreAuthKey); ok {
		v.key = viewPreAuthKey(s, k, at)
	}
	return v
}

func (v userView) shape() *openapi.User {
	u := v.user
	if u == nil {
		return nil
	}
	return &openapi.User{
		ID: u.ID.String(), Name: u.Name, CreatedAt: moment(u.CreatedAt), DisplayName: u.DisplayName, Email: u.Email,
		Provider: u.Provider, ProviderID: u.ProviderID, ProfilePicURL: u.ProfilePicURL, NodeCount: v.nodes, AssignedRole: unlessEmpty(string(u.Role)),
		SuspendedAt: moment(u.SuspendedAt), SuspendedBy: unlessEmpty(string(u.SuspendedBy)),
		SuspensionHeldAt: moment(u.HeldAt), SuspensionHeldBy: unlessEmpty(string(u.HeldBy)),
	}
}

// unlessEmpty returns an optional field of a response, which is omitted if it is empty.
func unlessEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (v preAuthKeyView) shape() *openapi.PreAuthKey {
	k := v.key
	if k == nil {
		return nil
	}
	return &openapi.PreAuthKey{
		ID: k.ID.String(), Key: identity.Mask(identity.KindPreAuth, k.Prefix), User: v.user.shape(), Description: k.Description, Reusable: k.Reusable,
		Ephemeral: k.Ephemeral, PreApproved: k.PreApproved, Used: k.Used,
		Expired: v.expired, Expiration: k.Expiry.Time(), CreatedAt: k.CreatedAt.Time(), ACLTags: list(k.Tags),
		Uses: k.LastUse.Count, LastUsed: moment(k.LastUse.At), LastUsedFrom: k.LastUse.From,
	}
}

func (v nodeView) shape() openapi.Node {
	n := v.node
	tags := list(n.Tags)
	shape := openapi.Node{
		ID: n.ID.String(), MachineKey: n.MachineKey.String(), NodeKey: n.NodeKey.String(), DiscoKey: discoKey(n),
		IPAddresses: texts(n.Addrs()), Name: n.Hostname, Hostname: n.Hostname, GivenName: n.Name, User: v.owner.shape(),
		CreatedBy: v.createdBy.shape(), PreAuthKey: v.key.shape(), LastSeen: n.Seen().Time(), Expiry: moment(n.Expiry), Expired: v.expired, NeedsApproval: n.NeedsApproval, Ephemeral: n.Ephemeral,
		CreatedAt: n.CreatedAt.Time(), UpdatedAt: n.UpdatedAt.Time(), RegisterMethod: registerMethod(n.Method), Online: n.Presence.Online,
		OS: n.OS, Arch: n.Arch, ClientVersion: n.ClientVersion,
		Tags: tags, ForcedTags: tags, ValidTags: tags, InvalidTags: []string{},
		AvailableRoutes: texts(n.RoutableIPs), ApprovedRoutes: []string{}, SubnetRoutes: []string{}, RoutePreferences: map[string]int{},
	}
	for _, r := range n.AllRoutes {
		if r.Enabled {
			shape.ApprovedRoutes = append(shape.ApprovedRoutes, r.Prefix.String())
		}
		if (control.NodeRoute{Node: n, Route: r}).Primary() {
			shape.SubnetRoutes = append(shape.SubnetRoutes, r.Prefix.String())
		}
		if r.Preference != 0 {
			shape.RoutePreferences[r.Prefix.String()] = r.Preference
		}
	}
	if n.Tagged() {
		shape.User = taggedDevices()
	}
	if n.Note.Text != "" {
		shape.Note = &openapi.NodeNote{Text: n.Note.Text, Author: n.Note.Author, Time: n.Note.At.Time()}
	}
	return shape
}

// nodeCache caches the JSON of each node with the view that it was made from: encoding nodes is
// most of the work of listing them. It has at most one entry per node. Entries of deleted nodes
// are removed when another one is added.
type nodeCache struct {
	mu      sync.RWMutex
	entries map[mesh.NodeID]cachedNode // guarded by mu
}

type cachedNode struct {
	view nodeView
	json []byte
}

// encoded returns a node as JSON. Callers must not change it.
func (c *nodeCache) encoded(s *mesh.Snapshot, n *mesh.Node, at mesh.Time) []byte {
	view := viewNode(s, n, at)
	c.mu.RLock()
	entry := c.entries[n.ID]
	c.mu.RUnlock()
	if entry.json != nil && entry.view == view {
		return entry.json
	}
	entry = cachedNode{view, encoded(view.shape())}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[mesh.NodeID]cachedNode{}
	}
	c.entries[n.ID] = entry
	if len(c.entries) > s.Nodes.Len() {
		for id := range c.entries {
			if _, ok := s.Nodes.Get(id); !ok {
				delete(c.entries, id)
			}
		}
	}
	return entry.json
}
