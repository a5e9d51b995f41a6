package api

import (
	"net/http"
	"regexp"
	"slices"
)

const matchHeader = "If-Match"

// oneETag is an ETag as an answer has it, made weak or not by a proxy, or what
// stands for any.
var oneETag = regexp.MustCompile(`^(\*|(W/)?"[^"]*")$`)

// conditional are the changes that can be bound to an ETag, by their patterns in the
// router.
func conditional() []string {
	return []string{
		"DELETE /api/v1/user/{id}",
		"POST /api/v1/user/{id}/rename/{newName}",
		"DELETE /api/v1/node/{nodeId}",
		"POST /api/v1/node/{nodeId}/expire",
		"POST /api/v1/node/{nodeId}/rename",
		"POST /api/v1/node/{nodeId}/rename/{newName}",
		"POST /api/v1/node/{nodeId}/tags",
		"POST /api/v1/node/{nodeId}/user",
		"PUT /api/v1/node/{nodeId}/addresses",
		"POST /api/v1/node/{nodeId}/approve_routes",
		"PATCH /api/v1/routes/{routeId}",
		"DELETE /api/v1/routes/{routeId}",
		"POST /api/v1/routes/{routeId}/enable",
		"POST /api/v1/routes/{routeId}/disable",
		"PATCH /api/v1/dns",
		"DELETE /api/v1/dns",
		"PUT /api/v1/policy",
		"POST /api/v1/policy/confirm",
		"POST /api/v1/policy/revert",
		"POST /api/v1/policy/rollback",
	}
}

// checkCondition refuses an If-Match that would not be kept: who sends one must not
// learn afterwards that the change was made whatever was there.
func (s *Server) checkCondition(r *http.Request, operation string) error {
	values, given := r.Header[matchHeader]
	switch {
	case !given, operation == "/", r.Method == http.MethodGet, r.Method == http.MethodHead:
		return nil
	case !slices.Contains(s.conditional, operation):
		return &badRequest{matchHeader, "this operation takes no " + matchHeader + ", and nothing was done; send the request without it"}
	case len(values) != 1 || !oneETag.MatchString(values[0]):
		return &badRequest{matchHeader, matchHeader + " must be one ETag, in quotes as it came, or *"}
	}
	return nil
}
