package api

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// logins handles the operations on devices that wait for approval.
type logins struct {
	*core
	control *control.Logins
}

// ListPendingLogins implements GET /api/v1/auth/pending.
func (s *logins) ListPendingLogins(w http.ResponseWriter, _ *http.Request) {
	out := openapi.PendingLoginList{Logins: []openapi.PendingLogin{}}
	for _, l := range s.control.Pending() {
		out.Logins = append(out.Logins, openapi.PendingLogin{
			Code: l.Code, MachineKey: l.MachineKey.String(), NodeKey: l.NodeKey.String(), Hostname: l.Hostname, OS: l.OS, Address: l.Addr, Tags: list(l.Tags), Since: l.Since.Time(),
		})
	}
	reply(w, s.ledger.World().Snapshot, out)
}

// ApproveLogin implements POST /api/v1/auth/approve.
func (s *logins) ApproveLogin(w http.ResponseWriter, r *http.Request) {
	var in openapi.LoginApprovalRequest
	if err := decode(w, r, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	s.approve(w, r, in.User, in.AuthID)
}

// RegisterLogin implements POST /api/v1/auth/register.
func (s *logins) RegisterLogin(w http.ResponseWriter, r *http.Request) { s.ApproveLogin(w, r) }

// RegisterNode implements POST /api/v1/node/register.
func (s *logins) RegisterNode(w http.ResponseWriter, r *http.Request, p openapi.RegisterNodeParams) {
	var in openapi.NodeRegistration
	if err := decode(w, r, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	s.approve(w, r, cmp.Or(or(in.User), or(p.User)), cmp.Or(or(in.Key), or(p.Key)))
}

func (s *logins) approve(w http.ResponseWriter, r *http.Request, user, auth string) {
	login, node, err := s.control.Approve(r.Context(), actor(r), user, auth)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	out := openapi.LoginApproval{Login: loginShape(snap, login)}
	if node != nil {
		shape := nodeShape(snap, node, s.ledger.Now())
		out.Node = &shape
	}
	reply(w, snap, out)
}

// replayLoginApproval uses the login in the receipt: the stored one is deleted once the device
// has received the decision.
func (*logins) replayLoginApproval(c replayed) (any, error) {
	var login mesh.Login
	if err := json.Unmarshal([]byte(c.receipt.Answer), &login); err != nil {
		return nil, err
	}
	out := openapi.LoginApproval{Login: loginShape(c.snap, &login)}
	if n, ok := c.snap.Nodes.ByKey(login.NodeKey); ok {
		shape := nodeShape(c.snap, n, c.now)
		out.Node = &shape
	}
	return out, nil
}

// RejectLogin implements POST /api/v1/auth/reject.
func (s *logins) RejectLogin(w http.ResponseWriter, r *http.Request) {
	var in openapi.LoginRejectionRequest
	err := decode(w, r, &in)
	if err == nil {
		_, err = s.control.Reject(r.Context(), actor(r), in.AuthID, or(in.Reason))
	}
	s.done(w, r, err)
}
