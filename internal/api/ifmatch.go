package api

import (
	"net/http"
	"regexp"
)

const matchHeader = "If-Match"

// oneETag is an ETag as an answer has it, made weak or not by a proxy, or what
// stands for any.
var oneETag = regexp.MustCompile(`^(\*|(W/)?"[^"]*")$`)

// checkCondition refuses an If-Match that would not be kept: who sends one must not
// learn afterwards that the change was made whatever was there.
func checkCondition(r *http.Request, op operation) error {
	values, given := r.Header[matchHeader]
	switch {
	case !given, r.Method == http.MethodGet, r.Method == http.MethodHead:
		return nil
	case !op.conditional:
		return &badRequest{matchHeader, "this operation takes no " + matchHeader + ", and nothing was done; send the request without it"}
	case len(values) != 1 || !oneETag.MatchString(values[0]):
		return &badRequest{matchHeader, matchHeader + " must be one ETag, in quotes as it came, or *"}
	}
	return nil
}
