package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// ListNodes implements GET /api/v1/node.
func (s *Server) ListNodes(w http.ResponseWriter, r *http.Request, p openapi.ListNodesParams) {
	owner, snap, err := s.filterUser(r, p.User)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	at := now()
	replyList(w, snap, "nodes", func(yield func(openapi.Node) bool) {
		for n := range snap.Nodes() {
			if (owner == 0 || n.Owner == owner) && !yield(nodeShape(snap, n, at)) {
				return
			}
		}
	})
}

// ShowNode implements GET /api/v1/node/{nodeId}.
func (s *Server) ShowNode(w http.ResponseWriter, r *http.Request, nodeID string) {
	n, snap, err := lookup(r.Context(), s.ledger, func(snap *mesh.Snapshot) (*mesh.Node, bool) {
		id, err := strconv.ParseInt(nodeID, 10, 64)
		if err != nil {
			return nil, false
		}
		return snap.Node(mesh.NodeID(id))
	})
	if errors.Is(err, errAbsent) {
		err = &control.Refusal{Reason: control.NotFound, Text: fmt.Sprintf("there is no node %q; list them with: fairlead nodes list", nodeID)}
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, snap, openapi.NodeResult{Node: nodeShape(snap, n, now())})
}

// EnrolMachine implements POST /api/v1/machine.
func (s *Server) EnrolMachine(w http.ResponseWriter, r *http.Request) {
	reg, err := registration(w, r)
	var n *mesh.Node
	if err == nil {
		n, err = s.control.Register(r.Context(), actor(r), reg)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	reply(w, snap, openapi.NodeResult{Node: nodeShape(snap, n, now())})
}

func registration(w http.ResponseWriter, r *http.Request) (reg control.Registration, err error) {
	var in openapi.MachineEnrolment
	if err := decode(w, r, &in); err != nil {
		return reg, err
	}
	reg = control.Registration{
		PreAuthKey: in.PreAuthKey, Hostname: in.Hostname, OS: or(in.OS), Arch: or(in.Arch), ClientVersion: or(in.ClientVersion), Tags: in.Tags,
	}
	if err := reg.MachineKey.UnmarshalText([]byte(in.MachineKey)); err != nil {
		return reg, &badRequest{"machineKey", "machineKey must be mkey: and 64 hexadecimal digits"}
	}
	if err := reg.NodeKey.UnmarshalText([]byte(in.NodeKey)); err != nil {
		return reg, &badRequest{"nodeKey", "nodeKey must be nodekey: and 64 hexadecimal digits"}
	}
	for i, text := range in.RoutableIPs {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return reg, &badRequest{fmt.Sprintf("routableIPs[%d]", i), fmt.Sprintf("%q is not a network such as 192.168.7.0/24", text)}
		}
		reg.RoutableIPs = append(reg.RoutableIPs, p)
	}
	return reg, nil
}
