package api

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

const (
	defaultBuckets   = 48
	maxBuckets       = 288
	maxPresenceNodes = 500
	// presenceChunk is how many nodes are read at a time: a node that flaps has thousands of
	// transitions, which the summary does not need to keep.
	presenceChunk = 50
)

// presences handles the operations that show when nodes were online.
type presences struct {
	*core
	history *control.History
}

// ShowNodePresence implements GET /api/v1/node/{nodeId}/presence.
func (s *presences) ShowNodePresence(w http.ResponseWriter, r *http.Request, nodeID string, p openapi.ShowNodePresenceParams) {
	from, to, err := control.PresencePeriod(momentOf(p.From), momentOf(p.To), s.ledger.Now())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	node, snap, err := s.findNode(r, nodeID)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	all, err := s.history.Presence(r.Context(), []mesh.NodeID{node.ID}, from, to)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	out := openapi.NodePresence{NodeID: node.ID.String(), From: from.Time(), To: to.Time(), Transitions: []openapi.Transition{}}
	for _, presence := range all {
		out.From, out.OnlineBefore = knownSince(node, presence, from, to).Time(), presence.Before
		for _, t := range presence.Transitions {
			out.Transitions = append(out.Transitions, openapi.Transition{ID: t.Position.String(), At: t.At.Time(), Online: t.Online})
		}
	}
	reply(w, snap, out)
}

// knownSince returns the start of the time for which a node's presence is known: it does not
// count as offline before it joined. If its first transition is earlier than its creation,
// the transition counts, since the clocks of replicas differ.
func knownSince(n *mesh.Node, p history.Presence, from, to mesh.Time) mesh.Time {
	if p.Before {
		return from
	}
	began := min(max(from, n.CreatedAt), to)
	if len(p.Transitions) > 0 {
		began = min(began, p.Transitions[0].At)
	}
	return began
}

// ListPresence implements GET /api/v1/presence.
func (s *presences) ListPresence(w http.ResponseWriter, r *http.Request, p openapi.ListPresenceParams) {
	from, to, err := control.PresencePeriod(momentOf(p.From), momentOf(p.To), s.ledger.Now())
	buckets := defaultBuckets
	if p.Buckets != nil {
		buckets = *p.Buckets
	}
	if err == nil && (buckets < 1 || buckets > maxBuckets) {
		err = &badRequest{"buckets", fmt.Sprintf("buckets must be from 1 to %d", maxBuckets)}
	}
	var nodes []mesh.NodeID
	snap := s.ledger.World().Snapshot
	if err == nil {
		nodes, snap, err = s.presenceNodes(r, snap, p)
	}
	out := openapi.PresenceSummary{From: from.Time(), To: to.Time(), Nodes: []openapi.NodeBuckets{}}
	if len(nodes) > maxPresenceNodes {
		nodes = nodes[:maxPresenceNodes]
		out.Next = nodes[maxPresenceNodes-1].String()
	}
	for chunk := range slices.Chunk(nodes, presenceChunk) {
		if err != nil {
			break
		}
		var all []history.Presence
		all, err = s.history.Presence(r.Context(), chunk, from, to)
		for _, presence := range all {
			shares := openapi.NodeBuckets{NodeID: presence.Node.String(), Changes: presence.Changes()}
			for _, b := range presence.Buckets(from, to, buckets) {
				shares.Online = append(shares.Online, b.Online)
			}
			out.Nodes = append(out.Nodes, shares)
		}
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, snap, out)
}

// presenceNodes returns the nodes to summarize, sorted and without duplicates. If the request
// names none, there may be more than fit into one response.
func (s *presences) presenceNodes(r *http.Request, snap *mesh.Snapshot, p openapi.ListPresenceParams) (ids []mesh.NodeID, _ *mesh.Snapshot, err error) {
	var after int64
	if or(p.Cursor) != "" {
		if after, err = strconv.ParseInt(*p.Cursor, 10, 64); err != nil || after < 0 {
			return nil, nil, &badRequest{"cursor", "cursor must be a node id"}
		}
	}
	names := words(p.Node)
	if len(names) > maxPresenceNodes {
		return nil, nil, &badRequest{"node", fmt.Sprintf("node must list at most %d nodes", maxPresenceNodes)}
	}
	for _, name := range names {
		var n *mesh.Node
		if n, snap, err = s.findNode(r, name); err != nil {
			return nil, nil, err
		}
		ids = append(ids, n.ID)
	}
	if len(names) == 0 {
		for n := range snap.Nodes.All() {
			ids = append(ids, n.ID)
		}
	}
	ids = slices.DeleteFunc(ids, func(id mesh.NodeID) bool { return int64(id) <= after })
	slices.Sort(ids)
	return slices.Compact(ids), snap, nil
}
