package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// operation holds the attributes of an operation in api/openapi.yaml, from which the table
// operations is generated. The zero value is denied to everyone.
type operation struct {
	// role and scope are what an API key needs. If anyone is set, any valid key is
	// sufficient, or none is needed.
	role   mesh.Role
	scope  mesh.Noun
	anyone bool
	// member is set if members may also call the operation, for what they own.
	member bool
	// conditional is set if the operation accepts If-Match.
	conditional bool
	// replay responds to a request that was already executed; nil if the operation accepts
	// no Idempotency-Key.
	replay replay
}

// unmatchedPattern is the router's pattern for requests that match no operation.
const unmatchedPattern = "/"

// permission is a scope and the lowest role that an API key must have.
type permission struct {
	scope mesh.Noun
	role  mesh.Role
}

func reads(n mesh.Noun) permission    { return permission{n, mesh.RoleRead} }
func operates(n mesh.Noun) permission { return permission{n, mesh.RoleOperator} }

// permitted refuses callers without the permission for an operation, and an If-Match that
// the operation does not accept, before the request is read.
func (s *Server) permitted(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != unmatchedPattern {
			op := s.operations[pattern]
			if !op.anyone && !access(r).Allows(op.scope, op.role) {
				if !opensOwn(r, op) {
					s.forbid(w, r, missing(actor(r), access(r), permission{op.scope, op.role}))
					return
				}
				r = asMember(r)
			}
			if err := checkCondition(r, op); err != nil {
				s.fail(w, r, err)
				return
			}
		}
		mux.ServeHTTP(w, r)
	})
}

// opensOwn reports whether the caller is a person who may call the operation for what they
// own, as every person with a role may. If they use an API key, the key must also allow the
// operation.
func opensOwn(r *http.Request, op operation) bool {
	limit, limited := r.Context().Value(keyLimitKey{}).(mesh.Access)
	person := actor(r).User != 0 && access(r).Role.AtLeast(mesh.RoleMember)
	return op.member && person && (!limited || limit.Allows(op.scope, op.role))
}

// asMember limits a request to what the caller owns.
func asMember(r *http.Request) *http.Request {
	a, _ := r.Context().Value(actorKey{}).(mesh.Actor)
	a.Member = true
	return r.WithContext(withActor(r.Context(), a))
}

// foreign reports whether a request failed because the caller may use only their own objects
// but sees those of others, too. For such callers, an object of somebody else is not missing.
func foreign(r *http.Request, refusal *control.Refusal) bool {
	return refusal.Reason == control.NotFound && actor(r).Member && access(r).Role != mesh.RoleMember
}

type keyLimitKey struct{}

// opens reports whether the caller has a permission. If not, it writes the error response.
func (s *core) opens(w http.ResponseWriter, r *http.Request, need permission) bool {
	has := access(r)
	if has.Allows(need.scope, need.role) {
		return true
	}
	s.forbid(w, r, missing(actor(r), has, need))
	return false
}

// missing returns which permission the caller lacks.
func missing(a mesh.Actor, has mesh.Access, need permission) string {
	caller := "the API key"
	if a.Kind == mesh.ActorUser {
		caller = "user " + a.Name
	}
	if all := (mesh.Access{Role: mesh.RoleAdmin, Scopes: has.Scopes}); !all.Allows(need.scope, need.role) {
		return fmt.Sprintf("this operation requires the scope %s; %s has %v", need.scope, caller, has.Scopes)
	}
	return fmt.Sprintf("this operation requires the role %s; %s has %s", need.role, caller, cmp.Or(string(has.Role), "none"))
}

func (s *core) forbid(w http.ResponseWriter, r *http.Request, why string) {
	if a, has := actor(r), access(r); s.refusals.Admit(a.Addr) {
		s.log.Warn("forbidden", "actor", a.String(), "role", has.Role, "scopes", has.Scopes, "addr", a.Addr,
			"method", r.Method, "path", loggedPath(r), "req", a.RequestID)
	}
	writeProblem(w, r, problem(http.StatusForbidden, "Forbidden: "+why))
}

type accessKey struct{}

func withAccess(ctx context.Context, a mesh.Access) context.Context {
	return context.WithValue(ctx, accessKey{}, a)
}

// access returns what the caller may do. The default is nothing.
func access(r *http.Request) mesh.Access {
	a, _ := r.Context().Value(accessKey{}).(mesh.Access)
	return a
}
