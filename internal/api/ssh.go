package api

import (
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// sshSessions handles the operations on SSH sessions that wait for approval.
type sshSessions struct {
	*core
	control *control.SSH
}

// ListPendingSSH implements GET /api/v1/ssh/pending.
func (s *sshSessions) ListPendingSSH(w http.ResponseWriter, _ *http.Request) {
	snap := s.ledger.World().Snapshot
	out := openapi.PendingSSHList{Sessions: []openapi.PendingSSH{}}
	for _, l := range s.control.Pending() {
		out.Sessions = append(out.Sessions, openapi.PendingSSH{Code: l.Code, Session: sshSessionShape(snap, l.Src, l.Dst, l.User), Since: l.Since.Time()})
	}
	reply(w, snap, out)
}

// ApproveSSH implements POST /api/v1/ssh/approve.
func (s *sshSessions) ApproveSSH(w http.ResponseWriter, r *http.Request) {
	var in openapi.SSHApprovalRequest
	var g *mesh.SSHGrant
	err := decode(w, r, &in)
	if err == nil {
		g, err = s.control.Approve(r.Context(), actor(r), in.Code)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	reply(w, snap, openapi.SSHApproval{Grant: sshGrantShape(snap, g)})
}

func (*sshSessions) replaySSHApproval(c replayed) (any, error) {
	for g := range c.snap.SSHGrants.All() {
		if g.ID.String() == c.receipt.Object {
			return openapi.SSHApproval{Grant: sshGrantShape(c.snap, g)}, nil
		}
	}
	return nil, errAbsent
}

// RejectSSH implements POST /api/v1/ssh/reject.
func (s *sshSessions) RejectSSH(w http.ResponseWriter, r *http.Request) {
	var in openapi.SSHRejectionRequest
	err := decode(w, r, &in)
	if err == nil {
		_, err = s.control.Reject(r.Context(), actor(r), in.Code, or(in.Reason))
	}
	s.done(w, r, err)
}

// sessionShape names both nodes. The name of a deleted node is empty.
func sshSessionShape(s *mesh.Snapshot, src, dst mesh.NodeID, user string) openapi.SSHSession {
	shape := openapi.SSHSession{SourceID: src.String(), SourceUser: control.TaggedDevices, TargetID: dst.String(), SSHUser: user}
	if n, ok := s.Nodes.Get(src); ok {
		shape.SourceName = n.Name
		if u, ok := s.Users.Get(n.Owner); ok {
			shape.SourceUser = u.Name
		}
	}
	if n, ok := s.Nodes.Get(dst); ok {
		shape.TargetName = n.Name
	}
	return shape
}

func sshGrantShape(s *mesh.Snapshot, g *mesh.SSHGrant) openapi.SSHGrant {
	return openapi.SSHGrant{
		ID: g.ID.String(), Session: sshSessionShape(s, g.Src, g.Dst, g.User), Rejected: g.Rejected, By: g.By,
		GrantedAt: g.GrantedAt.Time(), Until: g.Until.Time(),
	}
}
