package api

import (
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/scim"
)

// scimHandler returns the handler for an identity provider that pushes users and groups. It needs an API
// key that may change everything in the scope scim.
func (s *Server) scimHandler() http.Handler {
	return s.verified(s.authenticated(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !access(r).Allows(mesh.NounSCIM, mesh.RoleAdmin) {
			scim.Refuse(w, http.StatusForbidden, "this requires an API key with the role admin, and with the scope scim if it has scopes")
			return
		}
		s.scim.ServeHTTP(w, r)
	})))
}

// scimActor returns who sent a request, which is never idempotent.
func scimActor(r *http.Request) mesh.Actor {
	a, _ := r.Context().Value(actorKey{}).(mesh.Actor)
	return a
}
