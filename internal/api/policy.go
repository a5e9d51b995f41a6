package api

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// maxPolicyBody is enough for the largest policy, even if all of its characters are
// escaped.
const maxPolicyBody = 8 << 20

// noPolicy begins with the text by which tools recognize that no policy was saved yet.
const noPolicy = "acl policy not found: all nodes can reach each other until a policy is saved"

// policies handles the operations that save policies and show what was saved.
type policies struct {
	*core
	control *control.Policies
}

// GetPolicy implements GET /api/v1/policy.
func (s *policies) GetPolicy(w http.ResponseWriter, r *http.Request) {
	snap := s.ledger.World().Snapshot
	p, ok := snap.Policy()
	if !ok || p.Text == "" {
		w.Header().Set("ETag", etag(snap.Counters.Policy.String()))
		s.fail(w, r, &control.Refusal{Reason: control.NotFound, Text: noPolicy})
		return
	}
	s.replyPolicy(w, r, p, nil)
}

// ifMatch returns the version of the policy that If-Match requires; nil means any.
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

// policyDraft parses the parameters that both operations that save a policy have in
// common.
func policyDraft(header, reason, within *string) (in control.PolicyDraft, err error) {
	if in.IfVersion, err = ifMatch(header); err != nil {
		return in, err
	}
	if or(within) != "" {
		if in.ConfirmWithin, err = time.ParseDuration(*within); err != nil {
			return in, &badRequest{"confirmWithin", "confirmWithin must be a duration such as 5m or 1h30m"}
		}
	}
	in.Reason = or(reason)
	return in, nil
}

// SetPolicy implements PUT /api/v1/policy.
func (s *policies) SetPolicy(w http.ResponseWriter, r *http.Request, p openapi.SetPolicyParams) {
	var in openapi.PolicyDraft
	err := decodeOrNone(w, r, maxPolicyBody, &in, "policy", func() bool { return in.Policy == nil })
	var draft control.PolicyDraft
	if err == nil {
		draft, err = policyDraft(p.IfMatch, in.Reason, in.ConfirmWithin)
	}
	var saved *mesh.Policy
	if err == nil {
		draft.Text = or(in.Policy)
		saved, err = s.control.Save(r.Context(), actor(r), draft)
	}
	s.replyPolicyAs(w, r, saved, err, s.savedShape)
}

// RollbackPolicy implements POST /api/v1/policy/rollback.
func (s *policies) RollbackPolicy(w http.ResponseWriter, r *http.Request, p openapi.RollbackPolicyParams) {
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
		saved, err = s.control.Rollback(r.Context(), actor(r), version, draft)
	}
	s.replyPolicyAs(w, r, saved, err, s.savedShape)
}

func policyVersion(name, text string) (mesh.PolicyVersion, error) {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < 0 {
		return 0, &badRequest{name, name + " must be a policy version such as 7"}
	}
	return mesh.PolicyVersion(v), nil
}

func (s *policies) replyPolicy(w http.ResponseWriter, r *http.Request, p *mesh.Policy, err error) {
	s.replyPolicyAs(w, r, p, err, s.policyShape)
}

func (s *policies) replyPolicyAs(w http.ResponseWriter, r *http.Request, p *mesh.Policy, err error, shape func(*mesh.Policy) openapi.Policy) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("ETag", etag(p.Version.String()))
	reply(w, s.ledger.World().Snapshot, shape(p))
}

func (s *policies) replayPolicy(c replayed) (any, error)      { return s.replayAs(c, s.policyShape) }
func (s *policies) replaySavedPolicy(c replayed) (any, error) { return s.replayAs(c, s.savedShape) }

func (*policies) replayAs(c replayed, shape func(*mesh.Policy) openapi.Policy) (any, error) {
	p, ok := c.snap.Policy()
	if !ok {
		return nil, errAbsent
	}
	c.w.Header().Set("ETag", etag(p.Version.String()))
	return shape(p), nil
}

// currentPolicy returns the policy in force for the response to a stale request.
func (s *policies) currentPolicy(_ mesh.Actor, snap *mesh.Snapshot, _ string) (shape any, revision string) {
	p, ok := snap.Policy()
	if !ok {
		return nil, ""
	}
	return s.policyShape(p), p.Version.String()
}

// ConfirmPolicy implements POST /api/v1/policy/confirm.
func (s *policies) ConfirmPolicy(w http.ResponseWriter, r *http.Request, p openapi.ConfirmPolicyParams) {
	version, err := ifMatch(p.IfMatch)
	var decided *mesh.Policy
	if err == nil {
		decided, err = s.control.Confirm(r.Context(), actor(r), version)
	}
	s.replyPolicy(w, r, decided, err)
}

// RevertPolicy implements POST /api/v1/policy/revert.
func (s *policies) RevertPolicy(w http.ResponseWriter, r *http.Request, p openapi.RevertPolicyParams) {
	version, err := ifMatch(p.IfMatch)
	var decided *mesh.Policy
	if err == nil {
		decided, err = s.control.Revert(r.Context(), actor(r), version)
	}
	s.replyPolicy(w, r, decided, err)
}

// ListPolicyVersions implements GET /api/v1/policy/versions.
func (s *policies) ListPolicyVersions(w http.ResponseWriter, r *http.Request, p openapi.ListPolicyVersionsParams) {
	var before mesh.PolicyVersion
	var limit *int
	var err error
	if or(p.Before) != "" {
		before, err = policyVersion("before", *p.Before)
	}
	if or(p.Limit) != "" {
		number, _ := strconv.Atoi(*p.Limit) // zero, which is refused, if it is not a number
		limit = &number
	}
	var all []mesh.Policy
	if err == nil {
		all, err = s.control.Versions(r.Context(), before, rowLimit(limit))
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
func (s *policies) GetPolicyVersion(w http.ResponseWriter, r *http.Request, version string) {
	v, err := policyVersion("version", version)
	var p *mesh.Policy
	if err == nil {
		p, err = s.control.Version(r.Context(), v)
	}
	s.replyPolicy(w, r, p, err)
}
