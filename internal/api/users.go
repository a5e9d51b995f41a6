package api

import (
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// userList is the list of all users as it stands between two changes of an
// identity: encoding it would be most of the work of answering with it.
type userList struct {
	of   *mesh.Snapshot
	body []byte
}

// ListUsers implements GET /api/v1/user. Of several filters the first of name,
// email and id counts.
func (s *Server) ListUsers(w http.ResponseWriter, r *http.Request, p openapi.ListUsersParams) {
	part, err := pageOf(p.Limit, p.Cursor)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	wanted := func(*mesh.User) bool { return true }
	switch {
	case or(p.Name) != "":
		wanted = func(u *mesh.User) bool { return mesh.FoldName(u.Name) == mesh.FoldName(*p.Name) }
	case or(p.Email) != "":
		wanted = func(u *mesh.User) bool { return u.Email == *p.Email }
	case or(p.ID) != "":
		wanted = func(u *mesh.User) bool { return u.ID.String() == *p.ID }
	case part == page{}:
		s.replyAllUsers(w, snap)
		return
	}
	lister[*mesh.User, mesh.UserID]{
		name: "users", id: func(u *mesh.User) mesh.UserID { return u.ID },
		encode: func(u *mesh.User) []byte { return encoded(userShape(snap, u)) },
	}.reply(w, snap, part, where(snap.Users.All(), wanted))
}

func (s *Server) replyAllUsers(w http.ResponseWriter, snap *mesh.Snapshot) {
	list := s.users.Load()
	if list == nil || !list.of.SameIdentities(snap) {
		users := make([]openapi.User, 0, snap.Users.Len())
		for u := range snap.Users.All() {
			users = append(users, userShape(snap, u))
		}
		list = &userList{of: snap, body: encoded(openapi.UserList{Users: users})}
		s.users.Store(list)
	}
	replyEncoded(w, snap, list.body)
}

// CreateUser implements POST /api/v1/user.
func (s *Server) CreateUser(w http.ResponseWriter, r *http.Request) {
	var in openapi.UserCreation
	if err := decode(w, r, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	u, err := s.control.Users.Create(r.Context(), actor(r), control.NewUser{
		Name: in.Name, DisplayName: or(in.DisplayName), Email: or(in.Email), PictureURL: or(in.PictureURL),
	})
	s.replyUser(w, r, u, err)
}

func (s *Server) replyUser(w http.ResponseWriter, r *http.Request, u *mesh.User, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	replyUserIn(w, s.ledger.World().Snapshot, u)
}

func replyUserIn(w http.ResponseWriter, snap *mesh.Snapshot, u *mesh.User) {
	w.Header().Set("ETag", etag(control.UserRevision(u)))
	reply(w, snap, openapi.UserResult{User: userShape(snap, u)})
}

// ShowUser implements GET /api/v1/user/{id}.
func (s *Server) ShowUser(w http.ResponseWriter, r *http.Request, id openapi.UserRef) {
	u, snap, err := s.findUser(r, id)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	replyUserIn(w, snap, u)
}

// DeleteUser implements DELETE /api/v1/user/{id}.
func (s *Server) DeleteUser(w http.ResponseWriter, r *http.Request, id openapi.UserRef, p openapi.DeleteUserParams) {
	gone, err := s.control.Users.Delete(r.Context(), actor(r), id, ifRevision(p.IfMatch), or(p.DeleteTagged))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	reply(w, snap, openapi.UserDeletion{DeletedNodes: gone.Nodes, TaggedNodes: taggedShape(snap, r, gone.User)})
}

// taggedShape lists the tagged nodes that deleted users added and that still exist.
// User ids are never reused.
func taggedShape(snap *mesh.Snapshot, r *http.Request, gone ...mesh.UserID) []openapi.TaggedNode {
	out := []openapi.TaggedNode{}
	by := control.TaggedBy(snap)
	for _, user := range gone {
		for _, n := range by[user] {
			node := openapi.TaggedNode{ID: n.ID.String(), Tags: []string{}}
			if access(r).Allows(mesh.NounNodes, mesh.RoleRead) {
				node.Name, node.Tags = n.Name, n.Tags
			}
			out = append(out, node)
		}
	}
	return out
}

// RenameUser implements POST /api/v1/user/{id}/rename/{newName}.
func (s *Server) RenameUser(w http.ResponseWriter, r *http.Request, id openapi.UserRef, newName string, p openapi.RenameUserParams) {
	u, err := s.control.Users.Rename(r.Context(), actor(r), id, newName, ifRevision(p.IfMatch))
	s.replyUser(w, r, u, err)
}
