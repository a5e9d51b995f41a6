package api

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// ShowNode implements GET /api/v1/node/{nodeId}.
func (s *Server) ShowNode(w http.ResponseWriter, r *http.Request, nodeID string) {
	n, snap, err := s.findNode(r, nodeID)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("ETag", etag(control.NodeRevision(n)))
	reply(w, snap, openapi.NodeResult{Node: s.nodeWithHost(snap, n)})
}

func (s *Server) nodeWithHost(snap *mesh.Snapshot, n *mesh.Node) openapi.Node {
	shape := nodeShape(snap, n, s.ledger.Now())
	shape.Host = hostShape(n, s.control.Observations.Facts(n.ID), snap.Regions())
	return shape
}

func (s *Server) replyNodeIn(w http.ResponseWriter, snap *mesh.Snapshot, n *mesh.Node) {
	w.Header().Set("ETag", etag(control.NodeRevision(n)))
	reply(w, snap, openapi.NodeResult{Node: nodeShape(snap, n, s.ledger.Now())})
}

func (s *Server) findNode(r *http.Request, ref string) (*mesh.Node, *mesh.Snapshot, error) {
	return search(r, s.ledger, func(snap *mesh.Snapshot) (*mesh.Node, error) { return control.FindNode(snap, ref) })
}

func (s *Server) replyNode(w http.ResponseWriter, r *http.Request, n *mesh.Node, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.replyNodeIn(w, s.ledger.World().Snapshot, n)
}

// DeleteNode implements DELETE /api/v1/node/{nodeId}.
func (s *Server) DeleteNode(w http.ResponseWriter, r *http.Request, nodeID string, p openapi.DeleteNodeParams) {
	s.done(w, r, s.control.Nodes.Delete(r.Context(), actor(r), nodeID, ifRevision(p.IfMatch)))
}

// ExpireNode implements POST /api/v1/node/{nodeId}/expire. A time that tools
// send as unset means now.
func (s *Server) ExpireNode(w http.ResponseWriter, r *http.Request, nodeID string, p openapi.ExpireNodeParams) {
	var in openapi.NodeExpiryChange
	err := decodeKnown(w, r, &in)
	if err == nil && in.Expiry == nil && or(p.Expiry) != "" {
		at, bad := time.Parse(time.RFC3339, *p.Expiry)
		if bad != nil {
			err = &badRequest{"expiry", "expiry must be a time such as 2027-01-31T12:00:00Z"}
		}
		in.Expiry = &at
	}
	var n *mesh.Node
	if err == nil {
		n, err = s.control.Nodes.Expire(r.Context(), actor(r), nodeID, expiration(in.Expiry, or(in.DisableExpiry) || or(p.DisableExpiry)), ifRevision(p.IfMatch))
	}
	s.replyNode(w, r, n, err)
}

// expiration is what the two members mean together.
func expiration(at *time.Time, never bool) control.Expiration {
	return control.Expiration{At: or(at), Never: never}
}

// ExpireNodes implements POST /api/v1/node/expire.
func (s *Server) ExpireNodes(w http.ResponseWriter, r *http.Request) {
	var in openapi.NodeSelection
	var out openapi.NodesExpiry
	err := decode(w, r, &in)
	if err == nil {
		out.Expired, out.AlreadyExpired, err = s.control.Nodes.ExpireMany(r.Context(), actor(r), control.NodeSelection{
			All: or(in.All), AllOffline: or(in.AllOffline), Nodes: in.Nodes,
		})
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, s.ledger.World().Snapshot, out)
}

// BackfillNodeIPs implements POST /api/v1/node/backfillips. Every node has both
// addresses from the moment it joins.
func (s *Server) BackfillNodeIPs(w http.ResponseWriter, r *http.Request, p openapi.BackfillNodeIPsParams) {
	if !or(p.Confirmed) {
		s.fail(w, r, &badRequest{"confirmed", "not confirmed: send confirmed=true"})
		return
	}
	reply(w, s.ledger.World().Snapshot, openapi.NodeIPChanges{Changes: []string{}})
}

// RenameNode implements POST /api/v1/node/{nodeId}/rename/{newName}.
func (s *Server) RenameNode(w http.ResponseWriter, r *http.Request, nodeID, newName string, p openapi.RenameNodeParams) {
	n, err := s.control.Nodes.Rename(r.Context(), actor(r), nodeID, newName, ifRevision(p.IfMatch))
	s.replyNode(w, r, n, err)
}

// ResetNodeName implements POST /api/v1/node/{nodeId}/rename.
func (s *Server) ResetNodeName(w http.ResponseWriter, r *http.Request, nodeID string, p openapi.ResetNodeNameParams) {
	n, err := s.control.Nodes.Rename(r.Context(), actor(r), nodeID, "", ifRevision(p.IfMatch))
	s.replyNode(w, r, n, err)
}

// TagNode implements POST /api/v1/node/{nodeId}/tags.
func (s *Server) TagNode(w http.ResponseWriter, r *http.Request, nodeID string, p openapi.TagNodeParams) {
	var in openapi.NodeTagsChange
	var n *mesh.Node
	err := decode(w, r, &in)
	if err == nil {
		n, err = s.control.Nodes.Tag(r.Context(), actor(r), nodeID, in.Tags, ifRevision(p.IfMatch))
	}
	s.replyNode(w, r, n, err)
}

// MoveNode implements POST /api/v1/node/{nodeId}/user.
func (s *Server) MoveNode(w http.ResponseWriter, r *http.Request, nodeID string, p openapi.MoveNodeParams) {
	var in openapi.NodeOwnerChange
	var n *mesh.Node
	err := decode(w, r, &in)
	if err == nil {
		n, err = s.control.Nodes.Move(r.Context(), actor(r), nodeID, cmp.Or(or(in.User), or(p.User)), ifRevision(p.IfMatch))
	}
	s.replyNode(w, r, n, err)
}

// SetNodeAddresses implements PUT /api/v1/node/{nodeId}/addresses.
func (s *Server) SetNodeAddresses(w http.ResponseWriter, r *http.Request, nodeID string, p openapi.SetNodeAddressesParams) {
	var in openapi.NodeAddressesChange
	err := decode(w, r, &in)
	var v4, v6 netip.Addr
	if err == nil {
		v4, err = address("ipv4", or(in.Ipv4))
	}
	if err == nil {
		v6, err = address("ipv6", or(in.Ipv6))
	}
	var n *mesh.Node
	if err == nil {
		n, err = s.control.Nodes.SetAddresses(r.Context(), actor(r), nodeID, v4, v6, ifRevision(p.IfMatch))
	}
	s.replyNode(w, r, n, err)
}

func address(path, text string) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, nil
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, &badRequest{path, fmt.Sprintf("%q is not an address", text)}
	}
	return addr.Unmap(), nil
}

// EnrolMachine implements POST /api/v1/machine.
func (s *Server) EnrolMachine(w http.ResponseWriter, r *http.Request) {
	joining, err := enrolment(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	joined, err := s.control.Joins.Join(r.Context(), actor(r), joining)
	s.replyNode(w, r, joined.Node, err)
}

func enrolment(w http.ResponseWriter, r *http.Request) (j control.Joining, err error) {
	var in openapi.MachineEnrolment
	if err := decode(w, r, &in); err != nil {
		return j, err
	}
	j = control.Joining{
		PreAuthKey: in.PreAuthKey, Tags: in.Tags,
		Host: control.Host{Hostname: in.Hostname, OS: or(in.OS), Arch: or(in.Arch), ClientVersion: or(in.ClientVersion)},
	}
	if err := j.MachineKey.UnmarshalText([]byte(in.MachineKey)); err != nil {
		return j, &badRequest{"machineKey", "machineKey must be mkey: and 64 hexadecimal digits"}
	}
	if err := j.NodeKey.UnmarshalText([]byte(in.NodeKey)); err != nil {
		return j, &badRequest{"nodeKey", "nodeKey must be nodekey: and 64 hexadecimal digits"}
	}
	for i, text := range in.RoutableIPs {
		p, err := network(fmt.Sprintf("routableIPs[%d]", i), text)
		if err != nil {
			return j, err
		}
		j.Host.RoutableIPs = append(j.Host.RoutableIPs, p)
	}
	return j, nil
}
