package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// grpcCode is the number that tools of an older API read.
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

func problem(status int, title, detail string) openapi.Problem {
	return openapi.Problem{
		Type: "about:blank", Title: title, Status: status, Detail: detail,
		Code: grpcCode(status), Message: detail, Details: []map[string]any{},
	}
}

func writeProblem(w http.ResponseWriter, p openapi.Problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	writeJSON(w, p.Status, p)
}

// badRequest is a request that cannot be read.
type badRequest struct{ path, text string }

func (b *badRequest) Error() string { return b.text }

func badParameter(err error) error {
	var missing *openapi.RequiredParamError
	if errors.As(err, &missing) {
		return &badRequest{missing.ParamName, "the parameter " + missing.ParamName + " is missing"}
	}
	return &badRequest{"", err.Error()}
}

// fail is the one place where an error becomes a status. An error that is not
// an answer is "internal" to the caller and complete in the log.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var bad *badRequest
	var refusal *control.Refusal
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		writeProblem(w, problem(http.StatusRequestEntityTooLarge, "Too large", "the body is larger than 1 MiB"))
	case errors.As(err, &bad):
		writeProblem(w, member(problem(http.StatusBadRequest, "Bad request", bad.text), bad.path))
	case errors.As(err, &refusal):
		writeProblem(w, refused(refusal))
	case errors.Is(err, mesh.ErrNoAddress):
		s.Log.Error("no address left for a new node", "error", err)
		writeProblem(w, problem(http.StatusConflict, "No address left", err.Error()))
	case errors.Is(err, ledger.ErrUnknownOutcome):
		writeProblem(w, problem(http.StatusServiceUnavailable, "Outcome unknown", "the database did not answer in time; look whether the change is there before you try again"))
	case errors.Is(err, ledger.ErrUnavailable), errors.Is(err, ledger.ErrStopped), errors.Is(err, context.DeadlineExceeded):
		w.Header().Set("Retry-After", "2")
		writeProblem(w, problem(http.StatusServiceUnavailable, "Unavailable", "the database cannot be used now; nothing was changed, try again"))
	case errors.Is(err, context.Canceled): // the caller is gone
	default:
		a := actor(r)
		s.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "actor", a, "req", a.RequestID, "error", err)
		writeProblem(w, problem(http.StatusInternalServerError, "Internal error", "internal error; the log of the service has the details under request "+a.RequestID))
	}
}

func refused(r *control.Refusal) openapi.Problem {
	switch r.Reason {
	case control.NotFound:
		return problem(http.StatusNotFound, "Not found", r.Text)
	case control.Conflict:
		return problem(http.StatusConflict, "Conflict", r.Text)
	case control.BadKey:
		return problem(http.StatusUnauthorized, "Node registration rejected", "Authentication failed: invalid key")
	case control.Denied:
		return problem(http.StatusForbidden, "Node registration rejected", "Forbidden: "+r.Text)
	case control.Invalid:
	}
	return member(problem(http.StatusBadRequest, "Bad request", r.Text), r.Path)
}

func member(p openapi.Problem, path string) openapi.Problem {
	if path != "" {
		p.Errors = []openapi.MemberError{{Path: path, Message: p.Detail}}
	}
	return p
}

// reply answers with what was read at the current revision.
func (s *Server) reply(w http.ResponseWriter, _ *http.Request, body any) {
	w.Header().Set("Mesh-Revision", revision(s.Ledger.World().Rev))
	writeJSON(w, http.StatusOK, body)
}

func revision(r mesh.Revision) string { return strconv.FormatInt(int64(r), 10) }

func writeJSON(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil { // the shapes are ours: this is a fault in them
		status, data = http.StatusInternalServerError, []byte(`{"title":"Internal error"}`)
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	write(w, status, data)
}

func write(w http.ResponseWriter, status int, data []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data) // a caller that is gone needs no answer
}
