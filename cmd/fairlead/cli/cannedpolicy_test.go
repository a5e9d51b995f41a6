package cli

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
)

func cannedPolicy() openapi.Policy {
	return openapi.Policy{
		Policy: "// closed\n{\"acls\": []}\n", UpdatedAt: new(at("2026-03-01T09:30:00Z")), Version: "7", SavedAt: at("2026-03-01T09:30:00Z"),
		Author: "local:ada", Reason: "begin closed", Source: openapi.PolicySourceAPI,
	}
}

func (canned) GetPolicy(w http.ResponseWriter, _ *http.Request) { reply(w, cannedPolicy()) }
func (canned) GetPolicyVersion(w http.ResponseWriter, _ *http.Request, _ string) {
	reply(w, cannedPolicy())
}

func (canned) ConfirmPolicy(w http.ResponseWriter, _ *http.Request, _ openapi.ConfirmPolicyParams) {
	reply(w, cannedPolicy())
}

func (canned) RevertPolicy(w http.ResponseWriter, _ *http.Request, _ openapi.RevertPolicyParams) {
	reply(w, cannedPolicy())
}

func (canned) CheckPolicy(w http.ResponseWriter, _ *http.Request) { reply(w, openapi.PolicyVerdict{}) }

// saved responds with the policy and the deadline that the request asks for.
func saved(w http.ResponseWriter, r *http.Request) {
	p := cannedPolicy()
	var in openapi.PolicyDraft
	if json.NewDecoder(r.Body).Decode(&in) == nil && in.ConfirmWithin != nil {
		p.ConfirmBy, p.RevertTo = new(at("2026-03-01T09:35:00Z")), "6"
	}
	text := ""
	if in.Policy != nil {
		text = *in.Policy
	}
	if strings.Contains(text, "in force already") {
		p = cannedPolicy()
	}
	if strings.Contains(text, "of the file") {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(openapi.Problem{
			Status: 400, Detail: "the policy is a file: edit it", Errors: []openapi.MemberError{{Path: "policy", Message: "the policy is a file: edit it"}},
		})
		return
	}
	if strings.Contains(text, "unlucky") {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(openapi.Problem{Status: 400, Detail: "no", Problems: []openapi.PolicyProblem{{Line: 3, Text: "test on line 3: alice should reach it and does not"}}})
		return
	}
	reply(w, p)
}

func (canned) SetPolicy(w http.ResponseWriter, r *http.Request, _ openapi.SetPolicyParams) {
	saved(w, r)
}

func (canned) RollbackPolicy(w http.ResponseWriter, r *http.Request, _ openapi.RollbackPolicyParams) {
	saved(w, r)
}

func (canned) ListPolicyVersions(w http.ResponseWriter, _ *http.Request, _ openapi.ListPolicyVersionsParams) {
	reply(w, openapi.PolicyVersionList{Versions: []openapi.PolicyVersion{
		{
			Version: "7", SavedAt: at("2026-03-01T09:30:00Z"), Author: "local:ada", Reason: "begin closed", Source: openapi.PolicyVersionSourceAPI,
			ConfirmBy: new(at("2026-03-01T09:35:00Z")), RevertTo: "6",
		},
		{Version: "6", SavedAt: at("2026-02-01T09:30:00Z"), Author: "policy file", Source: openapi.PolicyVersionSourceFile},
		{
			Version: "5", SavedAt: at("2026-02-02T09:30:00Z"), Author: "local:ada", Source: openapi.PolicyVersionSourceAPI, ConfirmBy: new(at("2026-02-02T09:35:00Z")), RevertTo: "4",
		},
	}})
}

func (canned) DiffPolicies(w http.ResponseWriter, _ *http.Request, _ openapi.DiffPoliciesParams) {
	reply(w, openapi.PolicyDiff{From: "6", To: "7", Diff: "--- version 6\n+++ version 7\n@@ -1 +1,2 @@\n+// closed\n {\"acls\": []}\n"})
}

func (canned) PreviewPolicy(w http.ResponseWriter, r *http.Request) {
	failing := []openapi.PolicyTestFailure{}
	var in openapi.PolicyPreviewRequest
	text := ""
	if json.NewDecoder(r.Body).Decode(&in) == nil && in.Policy != nil {
		text = *in.Policy
	}
	if strings.Contains(text, "unlucky") {
		failing = append(failing, openapi.PolicyTestFailure{Line: 3, Src: "alice", Dst: "it", Want: "accept", Text: "test on line 3: alice should reach it and does not"})
	}
	if strings.Contains(text, "nobody") {
		reply(w, openapi.PolicyEffect{Lost: 6, Losers: 1})
		return
	}
	laptop, db, router := openapi.NodeName{ID: "1", Name: "alices-laptop"}, openapi.NodeName{ID: "2", Name: "db-1"}, openapi.NodeName{ID: "3", Name: "gw"}
	people := openapi.Principals{Names: []string{"alice", "bob", "carol", "dave"}, Count: 12}
	reply(w, openapi.PolicyEffect{
		Lost: 12, Gained: 1, Changed: 3, Losing: 14, Gaining: 2, Unchanged: 485, Losers: 4, LosersOnline: 2, MoreShifts: 2,
		Shifts: []openapi.PolicyShift{{
			From: people, To: openapi.Principals{Names: []string{"tag:db"}, Count: 1}, Pairs: 12, Online: 2, Samples: []openapi.NodePair{{From: laptop, To: db}},
			Lost: []string{"port 22"}, Gained: []string{"port 5432", "UDP port 53"}, LostLines: []int{15, 16}, GainedLines: []int{4},
		}},
		Shells: []openapi.PolicyShellShift{{
			From: openapi.Principals{Names: []string{"alice"}, Count: 1}, To: openapi.Principals{Names: []string{"alice"}, Count: 1}, Own: true, Pairs: 2, Samples: []openapi.NodePair{},
			Lost: []openapi.ShellUser{{Name: "root"}}, Gained: []openapi.ShellUser{{Name: "root", Check: true}}, LostLines: []int{30}, GainedLines: []int{31},
		}},
		Routes: []openapi.PolicyRouteShift{{
			From: people, Through: []openapi.NodeName{router}, Prefix: "10.1.0.0/16", Lost: []string{"all ports"}, Gained: []string{}, LostLines: []int{18}, GainedLines: []int{},
		}},
		Tests:  failing,
		Guards: []openapi.PolicyGuard{{Kind: "unreachable", Text: "no node can reach tag:router on port 22 any more", Nodes: []openapi.NodeName{router}}},
	})
}

func (canned) WhyPolicy(w http.ResponseWriter, _ *http.Request, params openapi.WhyPolicyParams) {
	if params.To == "10.1.2.3" {
		reply(w, openapi.PolicyAnswer{
			Rules: []openapi.PolicyFinding{{Line: 16, List: "acls", Text: "alice is in group:ops (line 4), and 10.1.2.3 is in office"}},
			Notes: []string{"10.1.2.3 is not the address of a node, and no approved route contains it"}, Nearest: []openapi.PolicyFinding{}, At: []openapi.NodeName{},
		})
		return
	}
	if params.Port != nil || params.From == "tag:ci" {
		reply(w, openapi.PolicyAnswer{
			Allowed: true, Rules: []openapi.PolicyFinding{{Line: 16, List: "acls", Comment: "databases", Text: "alice is in group:ops (line 4), db-1 carries tag:db"}},
			Nearest: []openapi.PolicyFinding{}, Notes: []string{}, At: []openapi.NodeName{},
		})
		return
	}
	reply(w, openapi.PolicyAnswer{
		Rules: []openapi.PolicyFinding{}, Notes: []string{"db-1 must sign in again"}, At: []openapi.NodeName{{ID: "3", Name: "gw"}},
		Nearest: []openapi.PolicyFinding{{Line: 15, List: "acls", Text: "port 443 only"}, {Line: 18, List: "grants", Text: "source needs tag:ci"}},
	})
}

func (c canned) AskPolicy(w http.ResponseWriter, r *http.Request) {
	c.WhyPolicy(w, r, openapi.WhyPolicyParams{})
}

func (canned) MapAccess(w http.ResponseWriter, r *http.Request) {
	var in openapi.AccessQuestion
	_ = json.NewDecoder(r.Body).Decode(&in)
	m := openapi.AccessMap{
		From: []openapi.AccessPrincipal{{Kind: "group", Name: "group:ops", Nodes: 3, Online: 2}}, MoreFrom: 1, MoreCells: 4,
		To:    []openapi.AccessPrincipal{{Kind: "tag", Name: "tag:db", Nodes: 8, Online: 7}, {Kind: "group", Name: "group:ops", Nodes: 3, Online: 2}},
		Rules: []openapi.AccessRule{{Line: 14, DraftLine: 14, List: "acls"}, {Line: 15, List: "acls", Change: "removed"}},
		Cells: []openapi.AccessCell{
			{Ports: []string{"ports 22, 5432"}, Pairs: 24, Of: 24, Lost: []string{"UDP port 53"}, ChangedPairs: 24, Rules: []openapi.AccessRuleShare{{Before: 24, After: 24}, {Rule: 1, Before: 24}}},
			{To: 1, Ports: []string{"all ports"}, Pairs: 4, Of: 6, Own: true, Rules: []openapi.AccessRuleShare{{Before: 4, After: 4}}},
		},
	}
	if len(in.From) > 0 {
		m = openapi.AccessMap{}
	}
	reply(w, m)
}

func (canned) TestPolicy(w http.ResponseWriter, r *http.Request) {
	result := openapi.PolicyTestResult{Tests: 3, Failures: []openapi.PolicyTestFailure{}}
	var in openapi.PolicyTestRequest
	if json.NewDecoder(r.Body).Decode(&in) == nil && in.Policy != nil {
		result.Failures = append(result.Failures, openapi.PolicyTestFailure{Line: 21, Src: "alice", Dst: "tag:db:22", Want: "accept", Text: "test on line 21: alice should reach tag:db:22 and does not"})
	}
	reply(w, result)
}
