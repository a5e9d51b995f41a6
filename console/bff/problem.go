package bff

import (
	"encoding/json"
	"net/http"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

// Types of problems that the console reports itself. Problems of the server are passed on unchanged.
const (
	typeSessionEnded   = "session_ended"
	typeUnreachable    = "coordinator_unreachable"
	typeRefused        = "request_refused"
	typeTooManyStreams = "too_many_streams"
	typeNone           = "about:blank"
)

// writeProblem responds with an error in the server's format.
func writeProblem(w http.ResponseWriter, status int, kind, detail string) {
	codes := map[int]int{
		http.StatusBadRequest: 3, http.StatusNotFound: 5, http.StatusForbidden: 7, http.StatusUnauthorized: 16,
	}
	code, ok := codes[status]
	if !ok {
		code = 2
	}
	writeJSON(w, status, "application/problem+json", apiclient.Problem{
		Type: kind, Title: http.StatusText(status), Status: status, Detail: detail,
		Code: code, Message: detail, Details: []map[string]any{},
	})
}

func writeJSON(w http.ResponseWriter, status int, contentType string, v any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // fails only if the browser has disconnected
}

func noSession(w http.ResponseWriter) {
	writeProblem(w, http.StatusUnauthorized, typeSessionEnded, "session missing or expired: sign in again")
}
