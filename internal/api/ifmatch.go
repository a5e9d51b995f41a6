package api

import (
	"net/http"
	"regexp"
)

const matchHeader = "If-Match"

// oneETag matches an ETag from a response, which a proxy may have weakened, or * for any.
var oneETag = regexp.MustCompile(`^(\*|(W/)?"[^"]*")$`)

// checkCondition refuses an If-Match that the operation would ignore: its sender relies on
// the change not being made if the object has changed.
func checkCondition(r *http.Request, op operation) error {
	values, given := r.Header[matchHeader]
	switch {
	case !given, r.Method == http.MethodGet, r.Method == http.MethodHead:
		return nil
	case !op.conditional:
		return &badRequest{matchHeader, "this operation does not support " + matchHeader + ": nothing was changed; send the request without it"}
	case len(values) != 1 || !oneETag.MatchString(values[0]):
		return &badRequest{matchHeader, matchHeader + " must be a single ETag in quotes, or *"}
	}
	return nil
}
