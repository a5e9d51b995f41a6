package api

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// ChangeNodes implements POST /api/v1/node/bulk.
func (s *nodes) ChangeNodes(w http.ResponseWriter, r *http.Request) {
	var in openapi.NodesChange
	ids, err := bulkIDs(decodeKnown(w, r, &in), in.Ids)
	if in.Action == control.BulkApproveRoutes && !s.opens(w, r, operates(mesh.NounRoutes)) {
		return
	}
	var results []control.BulkResult
	if err == nil {
		results, err = s.control.ChangeMany(r.Context(), actor(r), ids, control.NodesChange{
			Action: string(in.Action), Tags: in.Tags, Expiration: expiration(in.Expiry, or(in.DisableExpiry)),
		})
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	reply(w, snap, nodeBulkShape(actor(r), snap, s.ledger.Now(), results))
}

func (*nodes) replayNodesChange(c replayed) (any, error) {
	results, err := control.ResultsFromReceipt(c.receipt.Answer, control.ErrNoNode)
	return nodeBulkShape(actor(c.r), c.snap, c.now, results), err
}

// ChangePreAuthKeys implements POST /api/v1/preauthkey/bulk.
func (s *preAuthKeys) ChangePreAuthKeys(w http.ResponseWriter, r *http.Request) {
	var in openapi.PreAuthKeysChange
	ids, err := bulkIDs(decode(w, r, &in), in.Ids)
	var results []control.BulkResult
	if err == nil {
		results, err = s.control.ChangeMany(r.Context(), actor(r), ids, string(in.Action))
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, s.ledger.World().Snapshot, bulkShape(results))
}

func (*preAuthKeys) replayPreAuthKeysChange(c replayed) (any, error) {
	results, err := control.ResultsFromReceipt(c.receipt.Answer, control.ErrNoPreAuthKey)
	return bulkShape(results), err
}

// ChangeUsers implements POST /api/v1/user/bulk.
func (s *users) ChangeUsers(w http.ResponseWriter, r *http.Request) {
	var in openapi.UsersChange
	ids, err := bulkIDs(decode(w, r, &in), in.Ids)
	if err == nil && in.Action != control.BulkDelete {
		err = &badRequest{"action", "action must be delete"}
	}
	var results []control.BulkResult
	if err == nil {
		results, err = s.control.DeleteMany(r.Context(), actor(r), ids, or(in.DeleteTagged))
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	reply(w, snap, usersBulkShape(snap, r, results))
}

func (*users) replayUsersChange(c replayed) (any, error) {
	results, err := control.ResultsFromReceipt(c.receipt.Answer, control.ErrNoUser)
	return usersBulkShape(c.snap, c.r, results), err
}

// bulkIDs parses the ids of a request. err is the error of reading its body, which
// takes precedence.
func bulkIDs(err error, texts []string) (ids []int64, _ error) {
	for i, text := range texts {
		id, bad := strconv.ParseInt(text, 10, 64)
		if err == nil && (bad != nil || id < 1) {
			err = &badRequest{fmt.Sprintf("ids[%d]", i), fmt.Sprintf("invalid id %q", text)}
		}
		ids = append(ids, id)
	}
	return ids, err
}

func bulkShape(results []control.BulkResult) openapi.BulkResults {
	out := openapi.BulkResults{Results: []openapi.BulkResult{}}
	for _, r := range results {
		out.Results = append(out.Results, openapi.BulkResult{ID: strconv.FormatInt(r.ID, 10), Ok: r.Refused == nil, Error: bulkError(r.Refused)})
	}
	return out
}

func usersBulkShape(snap *mesh.Snapshot, r *http.Request, results []control.BulkResult) openapi.BulkResults {
	var gone []mesh.UserID
	for _, result := range results {
		if id := mesh.UserID(result.ID); result.Refused == nil && !slices.Contains(gone, id) {
			gone = append(gone, id)
		}
	}
	out := bulkShape(results)
	out.TaggedNodes = taggedShape(snap, r, gone...)
	return out
}

func nodeBulkShape(a mesh.Actor, snap *mesh.Snapshot, at mesh.Time, results []control.BulkResult) openapi.NodeBulkResults {
	out := openapi.NodeBulkResults{Results: []openapi.NodeBulkResult{}}
	for _, r := range results {
		item := openapi.NodeBulkResult{ID: strconv.FormatInt(r.ID, 10), Ok: r.Refused == nil, Error: bulkError(r.Refused)}
		if n, there := snap.Nodes.Get(mesh.NodeID(r.ID)); there && item.Ok && control.OwnsNode(a, n) {
			shape := nodeShapeFor(a, snap, n, at)
			item.Node = &shape
		}
		out.Results = append(out.Results, item)
	}
	return out
}

func bulkError(r *control.Refusal) *openapi.BulkError {
	if r == nil {
		return nil
	}
	p := refused(r)
	return &openapi.BulkError{Code: p.Code, Message: p.Detail}
}
