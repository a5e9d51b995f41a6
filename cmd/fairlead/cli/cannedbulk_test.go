package cli

import (
	"encoding/json"
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
)

// cannedBulk refuses the ID 12 and accepts all others.
func cannedBulk(r *http.Request, done func(id string, refused *openapi.BulkError)) {
	var in struct{ Ids []string }
	_ = json.NewDecoder(r.Body).Decode(&in)
	for _, id := range in.Ids {
		if id == "12" {
			done(id, &openapi.BulkError{Code: 5, Message: "it is gone; look at the list"})
		} else {
			done(id, nil)
		}
	}
}

func (canned) ChangeNodes(w http.ResponseWriter, r *http.Request) {
	out := openapi.NodeBulkResults{Results: []openapi.NodeBulkResult{}}
	cannedBulk(r, func(id string, refused *openapi.BulkError) {
		out.Results = append(out.Results, openapi.NodeBulkResult{ID: id, Ok: refused == nil, Error: refused})
	})
	reply(w, out)
}

func (canned) ChangePreAuthKeys(w http.ResponseWriter, r *http.Request) {
	out := openapi.BulkResults{Results: []openapi.BulkResult{}}
	cannedBulk(r, func(id string, refused *openapi.BulkError) {
		out.Results = append(out.Results, openapi.BulkResult{ID: id, Ok: refused == nil, Error: refused})
	})
	reply(w, out)
}

func (c canned) ChangeUsers(w http.ResponseWriter, r *http.Request) { c.ChangePreAuthKeys(w, r) }
