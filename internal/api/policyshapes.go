package api

import (
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy/explain"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

func policyVersionShape(p *mesh.Policy) openapi.PolicyVersion {
	shape := openapi.PolicyVersion{
		Version: p.Version.String(), SavedAt: p.SavedAt.Time(), Author: p.Author, Reason: p.Reason,
		Source: openapi.PolicyVersionSource(p.Source), ConfirmBy: moment(p.ConfirmBy),
	}
	if p.ConfirmBy != 0 {
		shape.RevertTo = p.RevertTo.String()
	}
	return shape
}

// policyShape returns a policy as the API shows it. If the policy comes from a file, it omits
// updatedAt, from which tools conclude that they cannot save the policy.
func (s *policies) policyShape(p *mesh.Policy) openapi.Policy {
	v := policyVersionShape(p)
	shape := openapi.Policy{
		Policy: p.Text, Version: v.Version, SavedAt: v.SavedAt, Author: v.Author, Reason: v.Reason,
		Source: openapi.PolicySource(v.Source), ConfirmBy: v.ConfirmBy, RevertTo: v.RevertTo,
	}
	if !s.control.IsFile() {
		shape.UpdatedAt = &v.SavedAt
	}
	return shape
}

// savedShape is policyShape with warnings, unless another policy is already in force.
func (s *policies) savedShape(p *mesh.Policy) openapi.Policy {
	shape, world := s.policyShape(p), s.ledger.World()
	if now, ok := world.Policy(); ok && now.Version == p.Version {
		shape.Warnings = problemShapes(world.Doc.WarningsFor(world.Snapshot))
	}
	return shape
}

func problemShapes(problems []lang.Problem) []openapi.PolicyProblem {
	var out []openapi.PolicyProblem
	for _, found := range problems {
		out = append(out, openapi.PolicyProblem{Line: found.Line, Column: found.Column, Text: found.Text})
	}
	return out
}

// policyErrorPrefix is the prefix of Headscale's policy errors. Headplane shows errors without it
// as a server failure, and the user loses their edit.
const policyErrorPrefix = "parsing HuJSON: "

// badPolicy returns the problem for an invalid policy, with the lines of errors and failed tests.
func badPolicy(b *control.BadPolicy) openapi.Problem {
	p := member(problem(http.StatusBadRequest, b.Error()), "policy")
	p.Message = policyErrorPrefix + p.Detail
	p.Problems = problemShapes(b.Problems)
	for _, f := range b.Failures {
		p.Problems = append(p.Problems, openapi.PolicyProblem{Line: int(f.Line), Text: f.Text})
	}
	return p
}

func shapes[T, S any](all []T, shape func(T) S) []S {
	out := make([]S, len(all))
	for i, v := range all {
		out[i] = shape(v)
	}
	return out
}

func failureShapes(failures []explain.TestFailure) []openapi.PolicyTestFailure {
	return shapes(failures, func(f explain.TestFailure) openapi.PolicyTestFailure {
		return openapi.PolicyTestFailure{Line: int(f.Line), Src: f.Src, Dst: f.Dst, Want: f.Want, Text: f.Text}
	})
}

// nodeNames looks up the names of nodes.
type nodeNames struct{ snap *mesh.Snapshot }

func (n nodeNames) one(id mesh.NodeID) openapi.NodeName {
	name := openapi.NodeName{ID: id.String()}
	if node, ok := n.snap.Nodes.Get(id); ok {
		name.Name = node.Name
	}
	return name
}

func (n nodeNames) all(ids []mesh.NodeID) []openapi.NodeName { return shapes(ids, n.one) }

func (n nodeNames) pairs(all []explain.NodePair) []openapi.NodePair {
	return shapes(all, func(p explain.NodePair) openapi.NodePair {
		return openapi.NodePair{From: n.one(p.From), To: n.one(p.To)}
	})
}

func answerShape(snap *mesh.Snapshot, a explain.Answer) openapi.PolicyAnswer {
	finding := func(f explain.Finding) openapi.PolicyFinding {
		shape := openapi.PolicyFinding{Line: int(f.Line), List: "acls", Comment: f.Comment, Text: f.Text}
		if f.Grant {
			shape.List = "grants"
		}
		return shape
	}
	return openapi.PolicyAnswer{
		Allowed: a.Allowed, Rules: shapes(a.Rules, finding), Nearest: shapes(a.Nearest, finding), Notes: list(a.Notes), At: nodeNames{snap}.all(a.At),
	}
}

func principalsShape(p explain.Principals) openapi.Principals {
	return openapi.Principals{Names: list(p.Names), Count: p.Count}
}

func serviceTexts(all []lang.Service) []string {
	return shapes(all, func(s lang.Service) string { return s.String() })
}

// lineNumbers converts lines to numbers. It omits the implicit rule of a policy without rules,
// which has no line.
func lineNumbers(all []lang.Line) []int {
	numbers := []int{}
	for _, l := range all {
		if l > 0 {
			numbers = append(numbers, int(l))
		}
	}
	return numbers
}

func effectShape(snap *mesh.Snapshot, e *explain.Effect) openapi.PolicyEffect {
	nodes := nodeNames{snap}
	shellUser := func(u explain.ShellUser) openapi.ShellUser { return openapi.ShellUser{Name: u.Name, Check: u.Check} }
	return openapi.PolicyEffect{
		Lost: e.Lost, Gained: e.Gained, Changed: e.Changed, Unchanged: e.Unchanged, Losing: e.Losing, Gaining: e.Gaining,
		Losers: e.Losers, LosersOnline: e.LosersOnline,
		MoreShifts: e.MoreShifts, MoreShells: e.MoreShells, MoreRoutes: e.MoreRoutes,
		Shifts: shapes(e.Shifts, func(s explain.Shift) openapi.PolicyShift {
			return openapi.PolicyShift{
				From: principalsShape(s.From), To: principalsShape(s.To), Own: s.Own, Pairs: s.Pairs, Samples: nodes.pairs(s.Samples), Online: s.Online,
				Lost: serviceTexts(s.Lost), Gained: serviceTexts(s.Gained), LostLines: lineNumbers(s.LostLines), GainedLines: lineNumbers(s.GainedLines),
			}
		}),
		Shells: shapes(e.Shells, func(s explain.ShellShift) openapi.PolicyShellShift {
			return openapi.PolicyShellShift{
				From: principalsShape(s.From), To: principalsShape(s.To), Own: s.Own, Pairs: s.Pairs, Samples: nodes.pairs(s.Samples),
				Lost: shapes(s.Lost, shellUser), Gained: shapes(s.Gained, shellUser), LostLines: lineNumbers(s.LostLines), GainedLines: lineNumbers(s.GainedLines),
			}
		}),
		Routes: shapes(e.Routes, func(r explain.RouteShift) openapi.PolicyRouteShift {
			return openapi.PolicyRouteShift{
				From: principalsShape(r.From), Through: nodes.all(r.Through), Prefix: r.Prefix.String(),
				Lost: serviceTexts(r.Lost), Gained: serviceTexts(r.Gained), LostLines: lineNumbers(r.LostLines), GainedLines: lineNumbers(r.GainedLines),
			}
		}),
		Tests: failureShapes(e.Tests),
		Guards: shapes(e.Guards, func(g explain.Guard) openapi.PolicyGuard {
			return openapi.PolicyGuard{Kind: string(g.Kind), Text: g.Text, Nodes: nodes.all(g.Nodes)}
		}),
		Notes: list(e.Notes), Truncated: e.Truncated,
	}
}

func accessShape(m *explain.AccessMap) openapi.AccessMap {
	principal := func(p explain.Principal) openapi.AccessPrincipal {
		shape := openapi.AccessPrincipal{Kind: string(p.Kind), Name: p.Name, Nodes: p.Nodes, Online: p.Online, Expired: p.Expired}
		switch {
		case p.Node != 0:
			shape.ID = p.Node.String()
		case p.User != 0:
			shape.ID = p.User.String()
		}
		return shape
	}
	return openapi.AccessMap{
		From: shapes(m.From, principal), To: shapes(m.To, principal), MoreFrom: m.MoreFrom, MoreTo: m.MoreTo, MoreCells: m.MoreCells,
		Cells: shapes(m.Cells, func(c explain.AccessCell) openapi.AccessCell {
			return openapi.AccessCell{
				From: c.From, To: c.To, Ports: serviceTexts(c.Services), Pairs: c.Pairs, Of: c.Of, Own: c.Own, Lost: serviceTexts(c.Lost), Gained: serviceTexts(c.Gained),
				LostPairs: c.LostPairs, GainedPairs: c.GainedPairs, ChangedPairs: c.ChangedPairs,
				Rules: shapes(c.Rules, func(r explain.RuleShare) openapi.AccessRuleShare {
					return openapi.AccessRuleShare{Rule: r.Rule, Before: r.Before, After: r.After}
				}),
			}
		}),
		Rules: shapes(m.Rules, accessRule),
	}
}

func accessRule(r explain.MapRule) openapi.AccessRule {
	shape := openapi.AccessRule{
		Line: int(r.Before), DraftLine: int(r.After), List: "acls", Comment: r.Comment, Via: list(r.Via),
		From: shapes(r.Src, func(t lang.Target) string { return t.Name }),
		To: shapes(r.Dst, func(d lang.Destination) openapi.AccessDestination {
			return openapi.AccessDestination{Name: d.Name, Ports: serviceTexts(d.Services)}
		}),
	}
	if r.Grant {
		shape.List = "grants"
	}
	switch {
	case r.Added:
		shape.Change = "added"
	case r.Removed:
		shape.Change = "removed"
	}
	return shape
}
