package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
)

func changes() []openapi.Change {
	before := nodes()[1]
	before.GivenName = "web"
	return []openapi.Change{
		{
			ID: "4711-0", At: at("2026-03-01T09:30:00Z"), Verb: "changed", Kind: "node", Object: "2", Before: before, After: nodes()[1],
			Actor: openapi.Actor{Kind: "key", ID: "3", Name: "7Qd0XhVb2mTa", Address: "192.0.2.7", RequestID: "5HJK2QXT7RCA"},
		},
		{ID: "4710-1", At: at("2026-03-01T09:29:00Z"), Verb: "deleted", Kind: "user", Object: "1", Before: alice(), Actor: openapi.Actor{Kind: "local", ID: "1000"}},
		{ID: "9-0", At: at("2026-02-01T08:00:00Z"), Verb: "deleted", Kind: "sshgrant", Object: "12", Before: struct{}{}, Actor: openapi.Actor{Kind: "server"}},
	}
}

func (canned) ListAudit(w http.ResponseWriter, _ *http.Request, _ openapi.ListAuditParams) {
	reply(w, openapi.AuditList{Entries: changes(), Next: "9-0"})
}

// StreamEvents sends all changes once, and then rejects the key.
func (canned) StreamEvents(w http.ResponseWriter, _ *http.Request, p openapi.StreamEventsParams) {
	if p.LastEventID != nil {
		w.WriteHeader(http.StatusUnauthorized)
		reply(w, openapi.Problem{Detail: "Authentication failed: invalid API key"})
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "retry: 1\n\nid: 8-2147483647\n\n: heartbeat\n\n")
	online := openapi.Change{ID: "4712-0", At: at("2026-03-01T09:31:00Z"), Verb: "online", Kind: "node", Object: "2", Actor: openapi.Actor{Kind: "node", ID: "2"}}
	list := append(changes(), online)
	slices.SortFunc(list, func(a, b openapi.Change) int { return a.At.Compare(b.At) })
	for _, c := range list {
		data, _ := json.Marshal(c)
		fmt.Fprintf(w, "id: %s\nevent: %s.%s\ndata: %s\n\n", c.ID, c.Kind, c.Verb, data)
	}
	_, _ = io.WriteString(w, "id: 5000-2147483647\nevent: reset\ndata: {\"revision\":\"5000\"}\n\n")
}

func (canned) ShowNodePresence(w http.ResponseWriter, _ *http.Request, _ string, _ openapi.ShowNodePresenceParams) {
	reply(w, openapi.NodePresence{
		NodeID: "2", From: at("2026-02-28T09:30:00Z"), To: at("2026-03-01T09:30:00Z"), OnlineBefore: true, Transitions: []openapi.Transition{
			{ID: "4000-0", At: at("2026-02-28T10:00:00Z"), Online: false},
			{ID: "4001-0", At: at("2026-02-28T10:00:07Z"), Online: true},
		},
	})
}

// ListPresence returns one node in each of two pages.
func (canned) ListPresence(w http.ResponseWriter, _ *http.Request, p openapi.ListPresenceParams) {
	summary := openapi.PresenceSummary{From: at("2026-02-28T09:30:00Z"), To: at("2026-03-01T09:30:00Z"), Next: "1"}
	summary.Nodes = []openapi.NodeBuckets{{NodeID: "1", Online: []float64{0, 0.01, 0.5, 1}, Changes: 3}}
	if p.Cursor != nil {
		summary.Nodes, summary.Next = []openapi.NodeBuckets{{NodeID: "2", Online: []float64{0, 0, 0, 0}}}, ""
	}
	reply(w, summary)
}
