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

// nodes handles the operations that change nodes.
type nodes struct {
	*core
	control *control.Nodes
}

func (s *core) findNode(r *http.Request, ref string) (*mesh.Node, *mesh.Snapshot, error) {
	return search(r, s.ledger, func(snap *mesh.Snapshot) (*mesh.Node, error) { return control.OwnNode(snap, actor(r), ref) })
}

func (s *core) replyNode(w http.ResponseWriter, r *http.Request, n *mesh.Node, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	w.Header().Set("ETag", etag(control.NodeRevision(n)))
	reply(w, snap, openapi.NodeResult{Node: nodeShapeFor(actor(r), snap, n, s.ledger.Now())})
}

func (*nodes) replayNode(c replayed) (any, error) {
	n, err := control.OwnNode(c.snap, actor(c.r), cmp.Or(c.receipt.Object, c.receipt.Answer, c.r.PathValue("nodeId")))
	if err != nil {
		return nil, err
	}
	c.w.Header().Set("ETag", etag(control.NodeRevision(n)))
	return openapi.NodeResult{Node: nodeShapeFor(actor(c.r), c.snap, n, c.now)}, nil
}

// DeleteNode implements DELETE /api/v1/node/{nodeId}.
func (s *nodes) DeleteNode(w http.ResponseWriter, r *http.Request, nodeID string, p openapi.DeleteNodeParams) {
	s.done(w, r, s.control.Delete(r.Context(), actor(r), nodeID, ifRevision(p.IfMatch)))
}

// ExpireNode implements POST /api/v1/node/{nodeId}/expire. Without a time, or with an empty
// one, the node expires now.
func (s *nodes) ExpireNode(w http.ResponseWriter, r *http.Request, nodeID string, p openapi.ExpireNodeParams) {
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
		n, err = s.control.Expire(r.Context(), actor(r), nodeID, expiration(in.Expiry, or(in.DisableExpiry) || or(p.DisableExpiry)), ifRevision(p.IfMatch))
	}
	s.replyNode(w, r, n, err)
}

// expiration combines the two expiry fields of a request.
func expiration(at *time.Time, never bool) control.Expiration {
	return control.Expiration{At: or(at), Never: never}
}

// ExpireNodes implements POST /api/v1/node/expire.
func (s *nodes) ExpireNodes(w http.ResponseWriter, r *http.Request) {
	var in openapi.NodeSelection
	var out openapi.NodesExpiry
	err := decode(w, r, &in)
	if err == nil {
		out.Expired, out.AlreadyExpired, err = s.control.ExpireMany(r.Context(), actor(r), control.NodeSelection{
			All: or(in.All), AllOffline: or(in.AllOffline), Nodes: in.Nodes,
		})
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, s.ledger.World().Snapshot, out)
}

func (*nodes) replayNodesExpiry(c replayed) (any, error) {
	var out openapi.NodesExpiry
	_, err := fmt.Sscan(c.receipt.Answer, &out.Expired, &out.AlreadyExpired)
	return out, err
}

// BackfillNodeIPs implements POST /api/v1/node/backfillips. There is never
// anything to do, because every node gets both addresses when it joins.
func (s *nodes) BackfillNodeIPs(w http.ResponseWriter, r *http.Request, p openapi.BackfillNodeIPsParams) {
	if !or(p.Confirmed) {
		s.fail(w, r, &badRequest{"confirmed", "not confirmed: send confirmed=true"})
		return
	}
	reply(w, s.ledger.World().Snapshot, openapi.NodeIPChanges{Changes: []string{}})
}

// RenameNode implements POST /api/v1/node/{nodeId}/rename/{newName}.
func (s *nodes) RenameNode(w http.ResponseWriter, r *http.Request, nodeID, newName string, p openapi.RenameNodeParams) {
	n, err := s.control.Rename(r.Context(), actor(r), nodeID, newName, ifRevision(p.IfMatch))
	s.replyNode(w, r, n, err)
}

// ResetNodeName implements POST /api/v1/node/{nodeId}/rename.
func (s *nodes) ResetNodeName(w http.ResponseWriter, r *http.Request, nodeID string, p openapi.ResetNodeNameParams) {
	n, err := s.control.Rename(r.Context(), actor(r), nodeID, "", ifRevision(p.IfMatch))
	s.replyNode(w, r, n, err)
}

// TagNode implements POST /api/v1/node/{nodeId}/tags.
func (s *nodes) TagNode(w http.ResponseWriter, r *http.Request, nodeID string, p openapi.TagNodeParams) {
	var in openapi.NodeTagsChange
	var n *mesh.Node
	err := decode(w, r, &in)
	if err == nil {
		n, err = s.control.Tag(r.Context(), actor(r), nodeID, in.Tags, ifRevision(p.IfMatch))
	}
	s.replyNode(w, r, n, err)
}

// MoveNode implements POST /api/v1/node/{nodeId}/user.
func (s *nodes) MoveNode(w http.ResponseWriter, r *http.Request, nodeID string, p openapi.MoveNodeParams) {
	var in openapi.NodeOwnerChange
	var n *mesh.Node
	err := decode(w, r, &in)
	if err == nil {
		n, err = s.control.Move(r.Context(), actor(r), nodeID, cmp.Or(or(in.User), or(p.User)), ifRevision(p.IfMatch))
	}
	s.replyNode(w, r, n, err)
}

// SetNodeAddresses implements PUT /api/v1/node/{nodeId}/addresses.
func (s *nodes) SetNodeAddresses(w http.ResponseWriter, r *http.Request, nodeID string, p openapi.SetNodeAddressesParams) {
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
		n, err = s.control.SetAddresses(r.Context(), actor(r), nodeID, v4, v6, ifRevision(p.IfMatch))
	}
	s.replyNode(w, r, n, err)
}

// SetNodeNote implements PUT /api/v1/node/{nodeId}/note.
func (s *nodes) SetNodeNote(w http.ResponseWriter, r *http.Request, nodeID string, p openapi.SetNodeNoteParams) {
	var in openapi.SetNodeNoteJSONBody
	var n *mesh.Node
	err := decodeKnown(w, r, &in)
	if err == nil {
		n, err = s.control.SetNote(r.Context(), actor(r), nodeID, or(in.Text), ifRevision(p.IfMatch))
	}
	s.replyNode(w, r, n, err)
}

// SetNodeApproval implements PUT /api/v1/node/{nodeId}/approval.
func (s *nodes) SetNodeApproval(w http.ResponseWriter, r *http.Request, nodeID string, p openapi.SetNodeApprovalParams) {
	var in openapi.SetNodeApprovalJSONBody
	var n *mesh.Node
	err := decodeKnown(w, r, &in)
	if err == nil {
		approved := in.Approved == nil || *in.Approved
		n, err = s.control.SetApproval(r.Context(), actor(r), nodeID, approved, ifRevision(p.IfMatch))
	}
	s.replyNode(w, r, n, err)
}

func address(path, text string) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, nil
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, &badRequest{path, fmt.Sprintf("invalid IP address %q", text)}
	}
	return addr.Unmap(), nil
}
