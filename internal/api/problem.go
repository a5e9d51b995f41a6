package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// grpcCode returns the gRPC status code that tools written for Headscale's API read.
func grpcCode(status int) int {
	switch status {
	case http.StatusBadRequest:
		return 3
	case http.StatusNotFound:
		return 5
	case http.StatusConflict:
		return 6
	case http.StatusForbidden:
		return 7
	case http.StatusPreconditionFailed:
		return 9
	case http.StatusUnauthorized:
		return 16
	}
	return 2
}

func problem(status int, detail string) openapi.Problem {
	return openapi.Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail,
		Code: grpcCode(status), Message: detail, Details: []map[string]any{},
	}
}

// writeProblem sends an error in the media type that the caller reads.
func writeProblem(w http.ResponseWriter, r *http.Request, p openapi.Problem) {
	mediaType := problemType
	if readsOnlyJSON(r) {
		mediaType = jsonType
	}
	write(w, p.Status, mediaType, encoded(p))
}

const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
)

// readsOnlyJSON reports whether a request accepts application/json, but not
// application/problem+json, by name. Tools written for Headscale's API send this,
// and some of them cannot read an error with any other media type.
func readsOnlyJSON(r *http.Request) bool {
	accepts := map[string]bool{}
	for _, list := range r.Header.Values("Accept") {
		for item := range strings.SplitSeq(list, ",") {
			name, params, err := mime.ParseMediaType(item)
			if weight, bad := strconv.ParseFloat(params["q"], 64); err == nil && (bad != nil || weight > 0) {
				accepts[name] = true
			}
		}
	}
	return accepts[jsonType] && !accepts[problemType]
}

// badRequest is the error for a malformed request. path is that of the invalid field.
type badRequest struct{ path, text string }

func (b *badRequest) Error() string { return b.text }

func badParameter(err error) error {
	var missing *openapi.RequiredParamError
	if errors.As(err, &missing) {
		return &badRequest{missing.ParamName, "missing parameter " + missing.ParamName}
	}
	var wrong *openapi.InvalidParamFormatError
	if errors.As(err, &wrong) {
		return &badRequest{wrong.ParamName, "invalid value for parameter " + wrong.ParamName}
	}
	return &badRequest{"", err.Error()}
}

// fail is the only place where an error is mapped to a status, or to the earlier response
// to the same request. The caller gets no details of an internal error; the log does.
func (s *core) fail(w http.ResponseWriter, r *http.Request, err error) {
	answered, err := s.answeredBefore(w, r, err)
	if answered {
		return
	}
	var bad *badRequest
	var refusal *control.Refusal
	var wrong *control.BadPolicy
	var tooLarge *http.MaxBytesError
	var clocks *ledger.ClockError
	var format *ledger.FormatError
	var many *ledger.TooManyReceipts
	var fast *control.TooFast
	switch {
	case errors.As(err, &tooLarge):
		writeProblem(w, r, problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the request body is larger than %d KiB", tooLarge.Limit>>10)))
	case errors.As(err, &bad):
		writeProblem(w, r, member(problem(http.StatusBadRequest, bad.text), bad.path))
	case errors.Is(err, os.ErrDeadlineExceeded):
		writeProblem(w, r, problem(http.StatusRequestTimeout, "timed out reading the request body"))
	case errors.As(err, &wrong):
		writeProblem(w, r, badPolicy(wrong))
	case errors.As(err, &refusal):
		if op := s.operations[r.Pattern]; foreign(r, refusal) {
			s.forbid(w, r, missing(actor(r), access(r), permission{op.scope, op.role})+"; without it, you can do this only with your own devices and pre-auth keys")
			return
		}
		if refusal.Reason == control.Forbidden {
			s.forbid(w, r, refusal.Text)
			return
		}
		p := refused(refusal)
		if refusal.Reason == control.Stale {
			p.Current = s.showCurrent(w, actor(r), refusal)
		}
		writeProblem(w, r, p)
	case errors.Is(err, mesh.ErrNoAddress):
		s.log.Error("no free address for a new node", "error", err)
		writeProblem(w, r, problem(http.StatusConflict, err.Error()))
	case errors.Is(err, ledger.ErrUnknownOutcome):
		writeProblem(w, r, problem(http.StatusServiceUnavailable, "the database did not answer in time; check whether the change was saved before you try again"))
	case errors.As(err, &many):
		w.Header().Set("Retry-After", strconv.Itoa(1+int(many.Wait.Seconds())))
		writeProblem(w, r, problem(http.StatusTooManyRequests, many.Error()))
	case errors.As(err, &fast):
		w.Header().Set("Retry-After", strconv.Itoa(1+int(fast.After.Seconds())))
		writeProblem(w, r, problem(http.StatusTooManyRequests, fast.Error()))
	case errors.As(err, &clocks):
		w.Header().Set("Retry-After", "60")
		writeProblem(w, r, problem(http.StatusServiceUnavailable, clocks.Error()))
	case errors.As(err, &format):
		w.Header().Set("Retry-After", "60")
		writeProblem(w, r, problem(http.StatusServiceUnavailable, format.Error()))
	case errors.Is(err, ledger.ErrUnavailable), errors.Is(err, ledger.ErrStopped), errors.Is(err, ledger.ErrTooOld), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		w.Header().Set("Retry-After", "2")
		writeProblem(w, r, problem(http.StatusServiceUnavailable, "database unavailable: nothing was changed; try again"))
	default:
		a := actor(r)
		s.log.Error("request failed", "method", r.Method, "path", loggedPath(r), "actor", a.String(), "req", a.RequestID, "error", err)
		writeProblem(w, r, problem(http.StatusInternalServerError, "internal error; see the server log for request "+a.RequestID))
	}
}

// showCurrent returns the object that a stale request should have been based on, and sets
// its ETag. It is nil if the object is gone.
func (s *core) showCurrent(w http.ResponseWriter, a mesh.Actor, stale *control.Refusal) any {
	show, ok := s.current[stale.Path]
	if !ok {
		return nil
	}
	shape, revision := show(a, s.ledger.World().Snapshot, stale.Object)
	if shape != nil {
		w.Header().Set("ETag", etag(revision))
	}
	return shape
}

func etag(revision string) string { return `"` + revision + `"` }

// rejected is the title of problems when a node may not join.
const rejected = "Node registration rejected"

func refused(r *control.Refusal) openapi.Problem {
	switch r.Reason {
	case control.NotFound:
		return problem(http.StatusNotFound, r.Text)
	case control.Conflict:
		return problem(http.StatusConflict, r.Text)
	case control.Stale:
		return problem(http.StatusPreconditionFailed, r.Text)
	case control.BadKey:
		p := problem(http.StatusUnauthorized, "Authentication failed: invalid key")
		p.Title = rejected
		return p
	case control.Denied, control.Suspended:
		p := problem(http.StatusForbidden, "Forbidden: "+r.Text)
		p.Title = rejected
		return p
	case control.Invalid, control.Forbidden: // handled by s.forbid
	}
	return member(problem(http.StatusBadRequest, r.Text), r.Path)
}

func member(p openapi.Problem, path string) openapi.Problem {
	if path != "" {
		p.Errors = []openapi.MemberError{{Path: path, Message: p.Detail}}
	}
	return p
}

const revisionHeader = "Mesh-Revision"

// reply sends a response whose body was built from snap.
func reply(w http.ResponseWriter, snap *mesh.Snapshot, body any) {
	replyEncoded(w, snap, encoded(body))
}

func replyEncoded(w http.ResponseWriter, snap *mesh.Snapshot, body []byte) {
	w.Header().Set(revisionHeader, revision(snap.Rev))
	write(w, http.StatusOK, jsonType, body)
}

func revision(r mesh.Revision) string { return strconv.FormatInt(int64(r), 10) }

// encoded returns body as JSON. It panics if body cannot be encoded, which would be a bug
// in our own types.
func encoded(body any) []byte {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return data
}

func write(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = paced{w}.Write(body) // the caller may have disconnected
}
