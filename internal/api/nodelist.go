package api

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// nodeList handles the operations that show nodes.
type nodeList struct {
	*core
	observations *control.Observations
	cache        nodeCache
}

// ListNodes implements GET /api/v1/node.
func (s *nodeList) ListNodes(w http.ResponseWriter, r *http.Request, p openapi.ListNodesParams) {
	part, err := pageOf(p.Limit, p.Cursor)
	var filter nodeFilter
	if err == nil {
		filter, err = s.filterNodes(r, p)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap, at := filter.snap, s.ledger.Now()
	encode := func(n *mesh.Node) []byte { return s.cache.encoded(snap, n, at) }
	a := actor(r)
	if or(p.Host) || a.Member {
		regions := snap.Regions()
		encode = func(n *mesh.Node) []byte {
			shape := nodeShapeFor(a, snap, n, at)
			if or(p.Host) {
				shape.Host = hostShape(n, s.observations.Facts(n.ID), regions)
			}
			return encoded(shape)
		}
	}
	lister[*mesh.Node, mesh.NodeID]{
		name: "nodes", id: func(n *mesh.Node) mesh.NodeID { return n.ID }, encode: encode,
	}.reply(w, snap, part, where(snap.Nodes.All(), func(n *mesh.Node) bool { return control.OwnsNode(a, n) && filter.wants(n) }))
}

// nodeFilter selects nodes of a snapshot. Zero and nil fields match any node.
type nodeFilter struct {
	snap    *mesh.Snapshot
	owner   mesh.UserID
	tag, os string
	online  *bool
	waiting *bool
	route   netip.Prefix
	key     *mesh.PreAuthKey
	text    string // in lower case
}

func (s *nodeList) filterNodes(r *http.Request, p openapi.ListNodesParams) (f nodeFilter, err error) {
	f = nodeFilter{tag: or(p.Tag), os: or(p.OS), online: p.Online, waiting: p.NeedsApproval, text: strings.ToLower(or(p.Search))}
	if f.tag != "" {
		if err := lang.CheckTag(f.tag); err != nil {
			return f, &badRequest{"tag", err.Error()}
		}
	}
	if or(p.Route) != "" {
		if f.route, err = network("route", *p.Route); err != nil {
			return f, err
		}
	}
	if f.owner, f.snap, err = s.filterUser(r, p.User); err != nil || or(p.PreAuthKey) == "" {
		return f, err
	}
	f.key, f.snap, err = search(r, s.ledger, func(snap *mesh.Snapshot) (*mesh.PreAuthKey, error) {
		return control.OwnPreAuthKey(snap, actor(r), *p.PreAuthKey)
	})
	return f, err
}

func (f *nodeFilter) wants(n *mesh.Node) bool {
	return (f.owner == 0 || n.Owner == f.owner) && (f.key == nil || n.PreAuthKey == f.key.ID) &&
		(f.tag == "" || slices.Contains(n.Tags, f.tag)) &&
		(f.os == "" || strings.EqualFold(n.OS, f.os)) &&
		matches(f.online, n.Presence.Online) && matches(f.waiting, n.NeedsApproval) &&
		(!f.route.IsValid() || slices.ContainsFunc(n.AllRoutes, func(r mesh.Route) bool { return r.Prefix == f.route })) &&
		(f.text == "" || f.found(n))
}

// found reports whether a name, a tag, an address or the owner of a node contains the
// text.
func (f *nodeFilter) found(n *mesh.Node) bool {
	words := append([]string{n.Name, n.Hostname}, n.Tags...)
	for _, a := range n.Addrs() {
		words = append(words, a.String())
	}
	if u, ok := f.snap.Users.Get(n.Owner); ok {
		words = append(words, u.Name)
	}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(word), f.text) })
}

// ShowNode implements GET /api/v1/node/{nodeId}.
func (s *nodeList) ShowNode(w http.ResponseWriter, r *http.Request, nodeID string) {
	n, snap, err := s.findNode(r, nodeID)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("ETag", etag(control.NodeRevision(n)))
	reply(w, snap, openapi.NodeResult{Node: s.nodeWithHost(actor(r), snap, n)})
}

func (s *nodeList) nodeWithHost(a mesh.Actor, snap *mesh.Snapshot, n *mesh.Node) openapi.Node {
	shape := nodeShapeFor(a, snap, n, s.ledger.Now())
	shape.Host = hostShape(n, s.observations.Facts(n.ID), snap.Regions())
	return shape
}

// currentNode returns a node for the response to a stale request.
func (s *nodeList) currentNode(a mesh.Actor, snap *mesh.Snapshot, id string) (shape any, revision string) {
	n, err := control.OwnNode(snap, a, id)
	if err != nil {
		return nil, ""
	}
	return s.nodeWithHost(a, snap, n), control.NodeRevision(n)
}
