package api

import (
	"fmt"
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
)

// machines handles the registration of machines by provisioning systems.
type machines struct {
	*core
	control *control.Joins
}

// EnrolMachine implements POST /api/v1/machine.
func (s *machines) EnrolMachine(w http.ResponseWriter, r *http.Request) {
	joining, err := enrolment(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	joined, err := s.control.Join(r.Context(), actor(r), joining)
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
		return j, &badRequest{"machineKey", "machineKey must be mkey: followed by 64 hexadecimal digits"}
	}
	if err := j.NodeKey.UnmarshalText([]byte(in.NodeKey)); err != nil {
		return j, &badRequest{"nodeKey", "nodeKey must be nodekey: followed by 64 hexadecimal digits"}
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
