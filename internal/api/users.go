package api

import (
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// ListUsers implements GET /api/v1/user. Of several filters the first of name,
// email and id counts.
func (s *Server) ListUsers(w http.ResponseWriter, r *http.Request, p openapi.ListUsersParams) {
	snap := s.Ledger.World().Snapshot
	keep := func(*mesh.User) bool { return true }
	switch {
	case or(p.Name) != "":
		keep = func(u *mesh.User) bool { return mesh.FoldName(u.Name) == mesh.FoldName(*p.Name) }
	case or(p.Email) != "":
		keep = func(u *mesh.User) bool { return u.Email == *p.Email }
	case or(p.ID) != "":
		keep = func(u *mesh.User) bool { return u.ID.String() == *p.ID }
	}
	users := make([]openapi.User, 0, snap.UserCount())
	for u := range snap.Users() {
		if keep(u) {
			users = append(users, userShape(snap, u))
		}
	}
	s.reply(w, r, openapi.UserList{Users: users})
}

// CreateUser implements POST /api/v1/user.
func (s *Server) CreateUser(w http.ResponseWriter, r *http.Request) {
	var in openapi.UserCreation
	if err := decode(r, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	u, err := s.Control.CreateUser(r.Context(), actor(r), control.NewUser{
		Name: in.Name, DisplayName: or(in.DisplayName), Email: or(in.Email), PictureURL: or(in.PictureURL),
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.reply(w, r, openapi.UserResult{User: userShape(s.Ledger.World().Snapshot, u)})
}

// DeleteUser implements DELETE /api/v1/user/{id}.
func (s *Server) DeleteUser(w http.ResponseWriter, r *http.Request, id openapi.UserRef) {
	nodes, err := s.Control.DeleteUser(r.Context(), actor(r), id)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.reply(w, r, openapi.UserDeletion{DeletedNodes: nodes})
}

// RenameUser implements POST /api/v1/user/{id}/rename/{newName}.
func (s *Server) RenameUser(w http.ResponseWriter, r *http.Request, id openapi.UserRef, newName string) {
	u, err := s.Control.RenameUser(r.Context(), actor(r), id, newName)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.reply(w, r, openapi.UserResult{User: userShape(s.Ledger.World().Snapshot, u)})
}
