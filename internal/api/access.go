package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// need is what a key must open for an operation. The zero need is met by nobody.
type need struct {
	noun  mesh.Noun
	least mesh.Role
	// anyone says that no key is asked for, or that every valid one will do.
	anyone bool
}

func reads(n mesh.Noun) need         { return need{noun: n, least: mesh.RoleRead} }
func operates(n mesh.Noun) need      { return need{noun: n, least: mesh.RoleOperator} }
func administrates(n mesh.Noun) need { return need{noun: n, least: mesh.RoleAdmin} }

// needs has a row for each operation, by its pattern in the router. Calls that
// only work something out are for readers, whatever their method.
//
// long: it is the table
func needs() map[string]need {
	return map[string]need{
		"/":                        {anyone: true}, // what is no operation
		"GET /health":              {anyone: true},
		"GET /ready":               {anyone: true},
		"GET /version":             {anyone: true},
		"GET /api/v1/openapi.yaml": {anyone: true},
		"GET /api/v1/docs":         {anyone: true},
		"POST /api/v1/machine":     {anyone: true}, // it shows a pre-auth key of its own
		"GET /api/v1/whoami":       {anyone: true},

		"GET /api/v1/health":        reads(mesh.NounService),
		"GET /api/v1/server":        reads(mesh.NounService),
		"GET /api/v1/debug/digest":  reads(mesh.NounService),
		"GET /api/v1/debug/profile": administrates(mesh.NounService),

		"GET /api/v1/user":                        reads(mesh.NounUsers),
		"POST /api/v1/user":                       operates(mesh.NounUsers),
		"GET /api/v1/user/{id}":                   reads(mesh.NounUsers),
		"DELETE /api/v1/user/{id}":                operates(mesh.NounUsers), // and of nodes and preauthkeys that go too
		"POST /api/v1/user/{id}/rename/{newName}": operates(mesh.NounUsers),
		"POST /api/v1/user/bulk":                  operates(mesh.NounUsers), // likewise

		"GET /api/v1/preauthkey":         reads(mesh.NounPreAuthKeys),
		"POST /api/v1/preauthkey":        administrates(mesh.NounPreAuthKeys),
		"DELETE /api/v1/preauthkey":      administrates(mesh.NounPreAuthKeys),
		"POST /api/v1/preauthkey/expire": administrates(mesh.NounPreAuthKeys),
		"POST /api/v1/preauthkey/bulk":   administrates(mesh.NounPreAuthKeys),

		"GET /api/v1/apikey":             reads(mesh.NounAPIKeys),
		"POST /api/v1/apikey":            administrates(mesh.NounAPIKeys),
		"POST /api/v1/apikey/expire":     administrates(mesh.NounAPIKeys),
		"DELETE /api/v1/apikey/{prefix}": administrates(mesh.NounAPIKeys),

		"GET /api/v1/node":                            reads(mesh.NounNodes),
		"GET /api/v1/node/{nodeId}":                   reads(mesh.NounNodes),
		"DELETE /api/v1/node/{nodeId}":                operates(mesh.NounNodes),
		"POST /api/v1/node/{nodeId}/expire":           operates(mesh.NounNodes),
		"POST /api/v1/node/{nodeId}/rename":           operates(mesh.NounNodes),
		"POST /api/v1/node/{nodeId}/rename/{newName}": operates(mesh.NounNodes),
		"POST /api/v1/node/{nodeId}/tags":             operates(mesh.NounNodes),
		"POST /api/v1/node/{nodeId}/user":             operates(mesh.NounNodes),
		"PUT /api/v1/node/{nodeId}/addresses":         operates(mesh.NounNodes),
		"POST /api/v1/node/expire":                    operates(mesh.NounNodes),
		"POST /api/v1/node/backfillips":               operates(mesh.NounNodes),
		"POST /api/v1/node/bulk":                      operates(mesh.NounNodes), // for approveRoutes also those of routes

		"GET /api/v1/node/{nodeId}/routes":          reads(mesh.NounRoutes),
		"POST /api/v1/node/{nodeId}/approve_routes": operates(mesh.NounRoutes),
		"GET /api/v1/routes":                        reads(mesh.NounRoutes),
		"PATCH /api/v1/routes/{routeId}":            operates(mesh.NounRoutes),
		"DELETE /api/v1/routes/{routeId}":           operates(mesh.NounRoutes),
		"POST /api/v1/routes/{routeId}/enable":      operates(mesh.NounRoutes),
		"POST /api/v1/routes/{routeId}/disable":     operates(mesh.NounRoutes),

		"POST /api/v1/node/register": operates(mesh.NounLogins),
		"GET /api/v1/auth/pending":   reads(mesh.NounLogins),
		"POST /api/v1/auth/register": operates(mesh.NounLogins),
		"POST /api/v1/auth/approve":  operates(mesh.NounLogins),
		"POST /api/v1/auth/reject":   operates(mesh.NounLogins),

		"GET /api/v1/ssh/pending":  reads(mesh.NounSSH),
		"POST /api/v1/ssh/approve": operates(mesh.NounSSH),
		"POST /api/v1/ssh/reject":  operates(mesh.NounSSH),

		"GET /api/v1/dns":    reads(mesh.NounDNS),
		"PATCH /api/v1/dns":  operates(mesh.NounDNS),
		"DELETE /api/v1/dns": operates(mesh.NounDNS),

		"GET /api/v1/policy":                    reads(mesh.NounPolicy),
		"PUT /api/v1/policy":                    administrates(mesh.NounPolicy),
		"POST /api/v1/policy/confirm":           administrates(mesh.NounPolicy),
		"POST /api/v1/policy/revert":            administrates(mesh.NounPolicy),
		"POST /api/v1/policy/rollback":          administrates(mesh.NounPolicy),
		"GET /api/v1/policy/versions":           reads(mesh.NounPolicy),
		"GET /api/v1/policy/versions/{version}": reads(mesh.NounPolicy),
		"POST /api/v1/policy/check":             reads(mesh.NounPolicy),
		"GET /api/v1/policy/diff":               reads(mesh.NounPolicy),
		"POST /api/v1/policy/preview":           reads(mesh.NounPolicy),
		"GET /api/v1/policy/why":                reads(mesh.NounPolicy),
		"POST /api/v1/policy/why":               reads(mesh.NounPolicy),
		"POST /api/v1/policy/access":            reads(mesh.NounPolicy),
		"POST /api/v1/policy/test":              reads(mesh.NounPolicy),

		"GET /api/v1/audit":                    reads(mesh.NounHistory),
		"GET /api/v1/events":                   reads(mesh.NounHistory),
		"GET /api/v1/presence":                 reads(mesh.NounHistory),
		"GET /api/v1/node/{nodeId}/presence":   reads(mesh.NounHistory),
		"GET /api/v1/routes/history":           reads(mesh.NounHistory),
		"GET /api/v1/routes/{routeId}/history": reads(mesh.NounHistory),

		"GET /api/v1/webhooks":                                          reads(mesh.NounWebhooks),
		"POST /api/v1/webhooks":                                         administrates(mesh.NounWebhooks), // and readers of history
		"GET /api/v1/webhooks/{webhookId}":                              reads(mesh.NounWebhooks),
		"PATCH /api/v1/webhooks/{webhookId}":                            administrates(mesh.NounWebhooks), // likewise for url and events
		"DELETE /api/v1/webhooks/{webhookId}":                           administrates(mesh.NounWebhooks),
		"POST /api/v1/webhooks/{webhookId}/rotate":                      administrates(mesh.NounWebhooks),
		"POST /api/v1/webhooks/{webhookId}/test":                        operates(mesh.NounWebhooks),
		"GET /api/v1/webhooks/{webhookId}/failed":                       reads(mesh.NounWebhooks),
		"POST /api/v1/webhooks/{webhookId}/failed/{failedId}/redeliver": operates(mesh.NounWebhooks),
	}
}

// permitted lets operations through that the caller's key opens and that can keep
// the caller's condition, before anything of them is read.
func (s *Server) permitted(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, operation := mux.Handler(r)
		if need := s.needs[operation]; !need.anyone && !s.opens(w, r, need) {
			return
		}
		if err := s.checkCondition(r, operation); err != nil {
			s.fail(w, r, err)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// opens refuses callers whose key does not open what is needed.
func (s *Server) opens(w http.ResponseWriter, r *http.Request, need need) bool {
	has := access(r)
	if has.Allows(need.noun, need.least) {
		return true
	}
	s.forbid(w, r, missing(has, need))
	return false
}

// missing says what a key lacks.
func missing(has mesh.Access, need need) string {
	if all := (mesh.Access{Role: mesh.RoleAdmin, Scopes: has.Scopes}); !all.Allows(need.noun, need.least) {
		return fmt.Sprintf("this needs the scope %s; the key has %v", need.noun, has.Scopes)
	}
	return fmt.Sprintf("this needs the role %s; the key has %s", need.least, has.Role)
}

func (s *Server) forbid(w http.ResponseWriter, r *http.Request, why string) {
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

// access is what the caller may do: nothing, unless somebody said otherwise.
func access(r *http.Request) mesh.Access {
	a, _ := r.Context().Value(accessKey{}).(mesh.Access)
	return a
}

// Whoami implements GET /api/v1/whoami.
func (s *Server) Whoami(w http.ResponseWriter, r *http.Request) {
	a, has, snap := actor(r), access(r), s.ledger.World().Snapshot
	out := openapi.Caller{Kind: string(a.Kind), Name: a.Name, Role: openapi.Role(has.Role), Scopes: list(has.Scopes)}
	if a.Kind == mesh.ActorKey {
		if k, ok := snap.APIKeyByPrefix(a.Name); ok {
			out.Name, out.Expiration = identity.Mask(identity.KindAPI, k.Prefix), moment(k.Expiry)
		}
	}
	reply(w, snap, out)
}
