package scim

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// group is what a provider sends about a group.
type group struct {
	DisplayName string   `json:"displayName"`
	ExternalID  *string  `json:"externalId"`
	Members     []member `json:"members"`
}

type member struct {
	Value   string `json:"value"`
	Display string `json:"display,omitempty"`
	Ref     string `json:"$ref,omitempty"`
}

func idsOf(members []member) (ids []mesh.UserID, err error) {
	for _, m := range members {
		id, err := strconv.ParseInt(m.Value, 10, 64)
		if err != nil {
			return nil, invalid("invalidValue", "the value of a member must be the id of a user")
		}
		ids = append(ids, mesh.UserID(id))
	}
	return ids, nil
}

func membersIn(value json.RawMessage) ([]mesh.UserID, error) {
	var all []member
	if len(value) > 0 && json.Unmarshal(value, &all) != nil {
		var one member
		if json.Unmarshal(value, &one) != nil {
			return nil, invalid("invalidValue", "members must be a list of objects with a value")
		}
		all = []member{one}
	}
	return idsOf(all)
}

func (s *Server) groupShape(snap *mesh.Snapshot, g *mesh.Group, members bool) any {
	shape := map[string]any{
		"schemas": []string{schemaGroup}, "id": g.ID.String(), "displayName": g.DisplayName, "meta": s.meta("Group", "Groups", g.ID.String(), g.CreatedAt),
	}
	if g.ExternalID != "" {
		shape["externalId"] = g.ExternalID
	}
	if members {
		all := []member{}
		for _, id := range control.MembersOf(snap, g) {
			u, _ := snap.Users.Get(id)
			all = append(all, member{Value: id.String(), Display: control.DirectoryName(u), Ref: s.ServerURL + Path + "Users/" + id.String()})
		}
		shape["members"] = all
	}
	return shape
}

func withMembers(r *http.Request) bool {
	return !slices.ContainsFunc(strings.Split(r.URL.Query().Get("excludedAttributes"), ","), func(name string) bool {
		return strings.EqualFold(strings.TrimSpace(name), "members")
	})
}

func groupID(r *http.Request) (mesh.GroupID, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || id <= 0 {
		return 0, notFound()
	}
	return mesh.GroupID(id), nil
}

func (s *Server) listGroups(w http.ResponseWriter, r *http.Request) error {
	p, err := pageOf(r)
	if err != nil {
		return err
	}
	f, err := filterOf(r, "displayName", "externalId", "id")
	if err != nil {
		return err
	}
	var all []*mesh.Group
	snap := s.Ledger.World().Snapshot
	for g := range snap.Groups.All() {
		switch {
		case f.attribute == "displayName" && !strings.EqualFold(g.DisplayName, f.value),
			f.attribute == "externalId" && (f.value == "" || g.ExternalID != f.value),
			f.attribute == "id" && g.ID.String() != f.value:
		default:
			all = append(all, g)
		}
	}
	return list(w, p, all, func(g *mesh.Group) any { return s.groupShape(snap, g, withMembers(r)) })
}

func (s *Server) showGroup(w http.ResponseWriter, r *http.Request) error {
	id, err := groupID(r)
	if err != nil {
		return err
	}
	snap := s.Ledger.World().Snapshot
	g, ok := snap.Groups.Get(id)
	if !ok {
		return notFound()
	}
	write(w, http.StatusOK, s.groupShape(snap, g, withMembers(r)))
	return nil
}

func (s *Server) createGroup(w http.ResponseWriter, r *http.Request) error {
	g, err := s.putGroup(w, r, 0)
	if err != nil {
		return err
	}
	w.Header().Set("Location", s.ServerURL+Path+"Groups/"+g.ID.String())
	write(w, http.StatusCreated, s.groupShape(s.Ledger.World().Snapshot, g, true))
	return nil
}

func (s *Server) replaceGroup(w http.ResponseWriter, r *http.Request) error {
	id, err := groupID(r)
	if err != nil {
		return err
	}
	g, err := s.putGroup(w, r, id)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, s.groupShape(s.Ledger.World().Snapshot, g, true))
	return nil
}

func (s *Server) putGroup(w http.ResponseWriter, r *http.Request, id mesh.GroupID) (*mesh.Group, error) {
	var in group
	if err := decode(w, r, &in); err != nil {
		return nil, err
	}
	members, err := idsOf(in.Members)
	if err != nil {
		return nil, err
	}
	return s.Directory.PutGroup(r.Context(), s.Actor(r), id, func(g *control.DirectoryGroup) error {
		if g.DisplayName, g.Members = in.DisplayName, members; in.ExternalID != nil {
			g.ExternalID = *in.ExternalID
		}
		return nil
	})
}

func (s *Server) patchGroup(w http.ResponseWriter, r *http.Request) error {
	id, err := groupID(r)
	if err != nil {
		return err
	}
	changes, err := patchOf(w, r)
	if err != nil {
		return err
	}
	_, err = s.Directory.PutGroup(r.Context(), s.Actor(r), id, func(g *control.DirectoryGroup) error {
		for _, o := range changes {
			if err := o.each(func(path string, value json.RawMessage) error { return patchGroup(g, o.Op, path, value) }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent) // the group may be large
	return nil
}

// patchGroup changes one attribute. Attributes that the server does not store are ignored.
func patchGroup(g *control.DirectoryGroup, op, path string, value json.RawMessage) (err error) {
	path = strings.TrimPrefix(path, schemaGroup+":")
	// One member is removed as members[value eq "7"].
	if condition, ok := strings.CutPrefix(strings.ToLower(path), "members["); ok {
		var id string
		fields := strings.Fields(strings.TrimSuffix(condition, "]"))
		if op != "remove" || len(fields) != 3 || fields[0] != "value" || fields[1] != "eq" || json.Unmarshal([]byte(fields[2]), &id) != nil {
			return invalid("invalidPath", `use a path of the form: members[value eq "id"], to remove a member`)
		}
		g.Members = slices.DeleteFunc(g.Members, func(user mesh.UserID) bool { return user.String() == id })
		return nil
	}
	switch strings.ToLower(path) {
	case "displayname":
		g.DisplayName, err = text(value)
	case "externalid":
		g.ExternalID, err = text(value)
	case "members":
		ids, err := membersIn(value)
		switch {
		case err != nil:
			return err
		case op == "add":
			g.Members = append(g.Members, ids...)
		case op == "remove" && len(value) > 0:
			slices.Sort(ids)
			g.Members = slices.DeleteFunc(g.Members, func(user mesh.UserID) bool {
				_, found := slices.BinarySearch(ids, user)
				return found
			})
		default:
			g.Members = ids
		}
	}
	return err
}

func (s *Server) deleteGroup(w http.ResponseWriter, r *http.Request) error {
	id, err := groupID(r)
	if err == nil {
		err = s.Directory.DeleteGroup(r.Context(), s.Actor(r), id)
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}
