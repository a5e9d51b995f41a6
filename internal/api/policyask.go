package api

import (
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/explain"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// policyQuestions handles the read-only operations that evaluate policies.
type policyQuestions struct {
	*core
	control *control.Policies
	turns   *turns
}

// CheckPolicy implements POST /api/v1/policy/check.
func (s *policyQuestions) CheckPolicy(w http.ResponseWriter, r *http.Request) {
	var in openapi.PolicyText
	err := decodeUpTo(w, r, maxPolicyBody, &in)
	var doc *lang.Doc
	if err == nil && !s.inTurn(w, r, func() { doc, err = s.control.Check(in.Policy) }) {
		return
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	reply(w, snap, openapi.PolicyVerdict{Warnings: problemShapes(doc.WarningsFor(snap))})
}

// DiffPolicies implements GET /api/v1/policy/diff.
func (s *policyQuestions) DiffPolicies(w http.ResponseWriter, r *http.Request, p openapi.DiffPoliciesParams) {
	snap := s.ledger.World().Snapshot
	to := snap.Counters.Policy
	var err error
	if or(p.To) != "" {
		to, err = policyVersion("to", *p.To)
	}
	from := max(to-1, 0)
	if or(p.From) != "" && err == nil {
		from, err = policyVersion("from", *p.From)
	}
	out := openapi.PolicyDiff{From: from.String(), To: to.String()}
	if err == nil {
		out.Diff, err = s.control.Diff(r.Context(), from, to)
	}
	if err == nil && or(p.Effect) {
		var effect *explain.Effect
		var world *policy.World
		if !s.inTurn(w, r, func() { effect, world, err = s.control.Compare(r.Context(), from, to) }) {
			return
		}
		if effect != nil {
			snap = world.Snapshot
			shape := effectShape(snap, effect)
			out.Effect = &shape
		}
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, snap, out)
}

// PreviewPolicy implements POST /api/v1/policy/preview.
func (s *policyQuestions) PreviewPolicy(w http.ResponseWriter, r *http.Request) {
	var in openapi.PolicyPreviewRequest
	if err := decodeUpTo(w, r, maxPolicyBody, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	change := control.PolicyChange{Text: in.Policy, Viewer: or(in.Viewer)}
	if in.Retag != nil {
		change.Retag, change.Tags = in.Retag.Nodes, in.Retag.Tags
	}
	var effect *explain.Effect
	var world *policy.World
	var err error
	if !s.inTurn(w, r, func() { effect, world, err = s.control.Preview(change) }) {
		return
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, world.Snapshot, effectShape(world.Snapshot, effect))
}

// WhyPolicy implements GET /api/v1/policy/why.
func (s *policyQuestions) WhyPolicy(w http.ResponseWriter, r *http.Request, p openapi.WhyPolicyParams) {
	answer, world, err := s.control.Why(actor(r), control.PolicyQuestion{From: p.From, To: p.To, Port: or(p.Port), Protocol: or(p.Proto)})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, world.Snapshot, answerShape(world.Snapshot, answer))
}

// AskPolicy implements POST /api/v1/policy/why.
func (s *policyQuestions) AskPolicy(w http.ResponseWriter, r *http.Request) {
	var in openapi.PolicyQuestion
	if err := decodeUpTo(w, r, maxPolicyBody, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	question := control.PolicyQuestion{From: in.From, To: in.To, Port: or(in.Port), Protocol: or(in.Proto), Draft: &in.Policy}
	var answer explain.Answer
	var world *policy.World
	var err error
	if !s.inTurn(w, r, func() { answer, world, err = s.control.Why(actor(r), question) }) {
		return
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, world.Snapshot, answerShape(world.Snapshot, answer))
}

// MapAccess implements POST /api/v1/policy/access.
func (s *policyQuestions) MapAccess(w http.ResponseWriter, r *http.Request) {
	var in openapi.AccessQuestion
	if err := decodeUpTo(w, r, maxPolicyBody, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	if a := actor(r); a.Member {
		s.mapOwnAccess(w, r, in)
		return
	}
	by := explain.Detail(or(in.By))
	if by != "" && by != explain.ByGroups && by != explain.ByUsers && by != explain.ByNodes {
		s.fail(w, r, &badRequest{"by", "by must be groups, users or nodes"})
		return
	}
	ask := explain.MapQuestion{From: in.From, To: in.To, By: by}
	var m *explain.AccessMap
	var world *policy.World
	var err error
	if !s.inTurn(w, r, func() { m, world, err = s.control.MapAccess(in.Policy, ask) }) {
		return
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, world.Snapshot, accessShape(m))
}

// mapOwnAccess is MapAccess for a member. Questions about other destinations or policies would
// tell members what exists, and what the policy contains.
func (s *policyQuestions) mapOwnAccess(w http.ResponseWriter, r *http.Request, in openapi.AccessQuestion) {
	if in.Policy != nil || len(in.To) > 0 {
		s.forbid(w, r, "members can ask only what their own devices can reach: send neither policy nor to")
		return
	}
	var m *explain.AccessMap
	var world *policy.World
	var err error
	if !s.inTurn(w, r, func() { m, world, err = s.control.MapOwnAccess(actor(r), in.From) }) {
		return
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, world.Snapshot, accessShape(m))
}

// TestPolicy implements POST /api/v1/policy/test.
func (s *policyQuestions) TestPolicy(w http.ResponseWriter, r *http.Request) {
	var in openapi.PolicyTestRequest
	if err := decodeUpTo(w, r, maxPolicyBody, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	var tests int
	var failures []explain.TestFailure
	var err error
	if !s.inTurn(w, r, func() { tests, failures, err = s.control.RunTests(or(in.Policy)) }) {
		return
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, snap, openapi.PolicyTestResult{Tests: tests, Failures: failureShapes(failures)})
}

// inTurn evaluates a draft when it is the caller's turn. It ends the turn before the response
// is written, because its reader may be slow. If it returns false, it has already written an
// error response.
func (s *policyQuestions) inTurn(w http.ResponseWriter, r *http.Request, look func()) (ok bool) {
	who := actor(r)
	done, refusal := s.turns.take(r.Context(), string(who.Kind)+" "+who.ID)
	if refusal != "" {
		unavailable(w, r, refusal)
		return false
	}
	defer done()
	look()
	return true
}
