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
func (s *Server) ListUsers(w http.ResponseWriter, _ *http.Request, p openapi.ListUsersParams) {
	snap := s.ledger.World().Snapshot
	var keep func(*mesh.User) bool
	switch {
	case or(p.Name) != "":
		keep = func(u *mesh.User) bool { return mesh.FoldName(u.Name) == mesh.FoldName(*p.Name) }
	case or(p.Email) != "":
		keep = func(u *mesh.User) bool { return u.Email == *p.Email }
	case or(p.ID) != "":
		keep = func(u *mesh.User) bool { return u.ID.String() == *p.ID }
	default:
		s.replyAllUsers(w, snap)
		return
	}
	users := []openapi.User{}
	for u := range snap.Users() {
		if keep(u) {
			users = append(users, userShape(snap, u))
		}
	}
	reply(w, snap, openapi.UserList{Users: users})
}

func (s *Server) replyAllUsers(w http.ResponseWriter, snap *mesh.Snapshot) {
	list := s.users.Load()
	if list == nil || !list.of.SameIdentities(snap) {
		users := make([]openapi.User, 0, snap.UserCount())
		for u := range snap.Users() {
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
	u, err := s.control.CreateUser(r.Context(), actor(r), control.NewUser{
		Name: in.Name, DisplayName: or(in.DisplayName), Email: or(in.Email), PictureURL: or(in.PictureURL),
	})
	s.replyUser(w, r, u, err)
}

func (s *Server) replyUser(w http.ResponseWriter, r *http.Request, u *mesh.User, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	reply(w, snap, openapi.UserResult{User: userShape(snap, u)})
}

// DeleteUser implements DELETE /api/v1/user/{id}.
func (s *Server) DeleteUser(w http.ResponseWriter, r *http.Request, id openapi.UserRef) {
	nodes, err := s.control.DeleteUser(r.Context(), actor(r), id)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, s.ledger.World().Snapshot, openapi.UserDeletion{DeletedNodes: nodes})
}

// RenameUser implements POST /api/v1/user/{id}/rename/{newName}.
func (s *Server) RenameUser(w http.ResponseWriter, r *http.Request, id openapi.UserRef, newName string) {
	u, err := s.control.RenameUser(r.Context(), actor(r), id, newName)
	s.replyUser(w, r, u, err)
}
