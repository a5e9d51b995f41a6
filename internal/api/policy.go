package api

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/explain"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// maxPolicyBody holds the largest policy however its characters are escaped.
const maxPolicyBody = 8 << 20

// noPolicy has the words by which tools know that none was saved yet.
const noPolicy = "acl policy not found: everyone may reach everyone until a policy is saved"

// GetPolicy implements GET /api/v1/policy.
func (s *Server) GetPolicy(w http.ResponseWriter, r *http.Request) {
	snap := s.ledger.World().Snapshot
	p, ok := snap.Policy()
	if !ok || p.Text == "" {
		w.Header().Set("ETag", etag(snap.Counters.Policy.String()))
		s.fail(w, r, &control.Refusal{Reason: control.NotFound, Text: noPolicy})
		return
	}
	s.replyPolicy(w, r, p, nil)
}

// ifMatch reads the version that must be in force; nil means any.
func ifMatch(header *string) (*mesh.PolicyVersion, error) {
	text := strings.TrimSpace(or(header))
	if text == "" || text == "*" {
		return nil, nil
	}
	v, err := strconv.ParseInt(strings.Trim(strings.TrimPrefix(text, "W/"), `"`), 10, 64)
	if err != nil || v < 0 {
		return nil, &badRequest{"If-Match", `If-Match must be the ETag of a policy, such as "7", or *`}
	}
	version := mesh.PolicyVersion(v)
	return &version, nil
}

// policyDraft is what both operations that save a policy have in common.
func policyDraft(header, reason, within *string) (in control.PolicyDraft, err error) {
	if in.IfVersion, err = ifMatch(header); err != nil {
		return in, err
	}
	if or(within) != "" {
		if in.ConfirmWithin, err = time.ParseDuration(*within); err != nil {
			return in, &badRequest{"confirmWithin", "confirmWithin must be a time such as 5m or 1h30m"}
		}
	}
	in.Reason = or(reason)
	return in, nil
}

// SetPolicy implements PUT /api/v1/policy.
func (s *Server) SetPolicy(w http.ResponseWriter, r *http.Request, p openapi.SetPolicyParams) {
	var in openapi.PolicyDraft
	err := decodeOrNone(w, r, maxPolicyBody, &in, "policy", func() bool { return in.Policy == nil })
	var draft control.PolicyDraft
	if err == nil {
		draft, err = policyDraft(p.IfMatch, in.Reason, in.ConfirmWithin)
	}
	var saved *mesh.Policy
	if err == nil {
		draft.Text = or(in.Policy)
		saved, err = s.control.Policies.Save(r.Context(), actor(r), draft)
	}
	s.replyPolicyAs(w, r, saved, err, s.savedShape)
}

// RollbackPolicy implements POST /api/v1/policy/rollback.
func (s *Server) RollbackPolicy(w http.ResponseWriter, r *http.Request, p openapi.RollbackPolicyParams) {
	var in openapi.PolicyRollback
	err := decode(w, r, &in)
	var draft control.PolicyDraft
	if err == nil {
		draft, err = policyDraft(p.IfMatch, in.Reason, in.ConfirmWithin)
	}
	var version mesh.PolicyVersion
	if err == nil {
		version, err = policyVersion("version", in.Version)
	}
	var saved *mesh.Policy
	if err == nil {
		saved, err = s.control.Policies.Rollback(r.Context(), actor(r), version, draft)
	}
	s.replyPolicyAs(w, r, saved, err, s.savedShape)
}

func policyVersion(name, text string) (mesh.PolicyVersion, error) {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < 0 {
		return 0, &badRequest{name, name + " must be a version of the policy, such as 7"}
	}
	return mesh.PolicyVersion(v), nil
}

func (s *Server) replyPolicy(w http.ResponseWriter, r *http.Request, p *mesh.Policy, err error) {
	s.replyPolicyAs(w, r, p, err, s.policyShape)
}

func (s *Server) replyPolicyAs(w http.ResponseWriter, r *http.Request, p *mesh.Policy, err error, shape func(*mesh.Policy) openapi.Policy) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("ETag", etag(p.Version.String()))
	reply(w, s.ledger.World().Snapshot, shape(p))
}

// ConfirmPolicy implements POST /api/v1/policy/confirm.
func (s *Server) ConfirmPolicy(w http.ResponseWriter, r *http.Request, p openapi.ConfirmPolicyParams) {
	version, err := ifMatch(p.IfMatch)
	var decided *mesh.Policy
	if err == nil {
		decided, err = s.control.Policies.Confirm(r.Context(), actor(r), version)
	}
	s.replyPolicy(w, r, decided, err)
}

// RevertPolicy implements POST /api/v1/policy/revert.
func (s *Server) RevertPolicy(w http.ResponseWriter, r *http.Request, p openapi.RevertPolicyParams) {
	version, err := ifMatch(p.IfMatch)
	var decided *mesh.Policy
	if err == nil {
		decided, err = s.control.Policies.Revert(r.Context(), actor(r), version)
	}
	s.replyPolicy(w, r, decided, err)
}

// CheckPolicy implements POST /api/v1/policy/check.
func (s *Server) CheckPolicy(w http.ResponseWriter, r *http.Request) {
	var in openapi.PolicyText
	err := decodeUpTo(w, r, maxPolicyBody, &in)
	var doc *lang.Doc
	if err == nil && !s.inTurn(w, r, func() { doc, err = s.control.Policies.Check(in.Policy) }) {
		return
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	reply(w, snap, openapi.PolicyVerdict{Warnings: problemShapes(doc.WarningsFor(snap))})
}

// ListPolicyVersions implements GET /api/v1/policy/versions.
func (s *Server) ListPolicyVersions(w http.ResponseWriter, r *http.Request, p openapi.ListPolicyVersionsParams) {
	var before mesh.PolicyVersion
	var limit int
	var err error
	if or(p.Before) != "" {
		before, err = policyVersion("before", *p.Before)
	}
	if or(p.Limit) != "" && err == nil {
		if limit, err = strconv.Atoi(*p.Limit); err != nil || limit < 1 {
			err = &badRequest{"limit", "limit must be a number from 1 to 100"}
		}
	}
	var all []mesh.Policy
	if err == nil {
		all, err = s.control.Policies.Versions(r.Context(), before, limit)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	out := openapi.PolicyVersionList{Versions: []openapi.PolicyVersion{}}
	for i := range all {
		out.Versions = append(out.Versions, policyVersionShape(&all[i]))
	}
	reply(w, s.ledger.World().Snapshot, out)
}

// GetPolicyVersion implements GET /api/v1/policy/versions/{version}.
func (s *Server) GetPolicyVersion(w http.ResponseWriter, r *http.Request, version string) {
	v, err := policyVersion("version", version)
	var p *mesh.Policy
	if err == nil {
		p, err = s.control.Policies.Version(r.Context(), v)
	}
	s.replyPolicy(w, r, p, err)
}

// DiffPolicies implements GET /api/v1/policy/diff.
func (s *Server) DiffPolicies(w http.ResponseWriter, r *http.Request, p openapi.DiffPoliciesParams) {
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
		out.Diff, err = s.control.Policies.Diff(r.Context(), from, to)
	}
	if err == nil && or(p.Effect) {
		var effect *explain.Effect
		var world *policy.World
		if !s.inTurn(w, r, func() { effect, world, err = s.control.Policies.Compare(r.Context(), from, to) }) {
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
func (s *Server) PreviewPolicy(w http.ResponseWriter, r *http.Request) {
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
	if !s.inTurn(w, r, func() { effect, world, err = s.control.Policies.Preview(change) }) {
		return
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, world.Snapshot, effectShape(world.Snapshot, effect))
}

// WhyPolicy implements GET /api/v1/policy/why.
func (s *Server) WhyPolicy(w http.ResponseWriter, r *http.Request, p openapi.WhyPolicyParams) {
	answer, world, err := s.control.Policies.Why(control.PolicyQuestion{From: p.From, To: p.To, Port: or(p.Port), Protocol: or(p.Proto)})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, world.Snapshot, answerShape(world.Snapshot, answer))
}

// AskPolicy implements POST /api/v1/policy/why.
func (s *Server) AskPolicy(w http.ResponseWriter, r *http.Request) {
	var in openapi.PolicyQuestion
	if err := decodeUpTo(w, r, maxPolicyBody, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	question := control.PolicyQuestion{From: in.From, To: in.To, Port: or(in.Port), Protocol: or(in.Proto), Draft: &in.Policy}
	var answer explain.Answer
	var world *policy.World
	var err error
	if !s.inTurn(w, r, func() { answer, world, err = s.control.Policies.Why(question) }) {
		return
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, world.Snapshot, answerShape(world.Snapshot, answer))
}

// MapAccess implements POST /api/v1/policy/access.
func (s *Server) MapAccess(w http.ResponseWriter, r *http.Request) {
	var in openapi.AccessQuestion
	if err := decodeUpTo(w, r, maxPolicyBody, &in); err != nil {
		s.fail(w, r, err)
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
	if !s.inTurn(w, r, func() { m, world, err = s.control.Policies.MapAccess(in.Policy, ask) }) {
		return
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, world.Snapshot, accessShape(m))
}

// TestPolicy implements POST /api/v1/policy/test.
func (s *Server) TestPolicy(w http.ResponseWriter, r *http.Request) {
	var in openapi.PolicyTestRequest
	if err := decodeUpTo(w, r, maxPolicyBody, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	snap := s.ledger.World().Snapshot
	var tests int
	var failures []explain.TestFailure
	var err error
	if !s.inTurn(w, r, func() { tests, failures, err = s.control.Policies.RunTests(or(in.Policy)) }) {
		return
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, snap, openapi.PolicyTestResult{Tests: tests, Failures: failureShapes(failures)})
}
