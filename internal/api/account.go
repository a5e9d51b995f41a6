package api

import (
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// LinkUser implements PUT /api/v1/user/{id}/account.
func (s *users) LinkUser(w http.ResponseWriter, r *http.Request, id openapi.UserRef, p openapi.LinkUserParams) {
	var in openapi.AccountLink
	var u *mesh.User
	err := decodeKnown(w, r, &in)
	if err == nil {
		u, err = s.control.Link(r.Context(), actor(r), id, in.ProviderID, or(in.Replace), ifRevision(p.IfMatch))
	}
	s.replyUser(w, r, u, err)
}

// UnlinkUser implements DELETE /api/v1/user/{id}/account.
func (s *users) UnlinkUser(w http.ResponseWriter, r *http.Request, id openapi.UserRef, p openapi.UnlinkUserParams) {
	u, err := s.control.Unlink(r.Context(), actor(r), id, ifRevision(p.IfMatch))
	s.replyUser(w, r, u, err)
}
