package cli

import (
	"net/http"

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
