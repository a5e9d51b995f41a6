package control

import (
	"context"
	"fmt"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/explain"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
	"github.com/fairlead-mesh/fairlead/internal/textdiff"
)

// Versions returns versions of the policy below before, newest first. A before of zero
// means from the newest, a limit of zero means the default.
func (s *Policies) Versions(ctx context.Context, before mesh.PolicyVersion, limit int) ([]mesh.Policy, error) {
	if before < 0 {
		return nil, refuse(Invalid, "before", "before must be a policy version")
	}
	limit, err := rowLimit(limit, maxVersions)
	if err != nil {
		return nil, err
	}
	return s.history.Policies(ctx, before, limit)
}

// Version returns one version of the policy.
func (s *Policies) Version(ctx context.Context, v mesh.PolicyVersion) (*mesh.Policy, error) {
	if v > s.ledger.World().Counters.Policy { // another replica may have just saved it
		if err := s.ledger.Sync(ctx); err != nil {
			return nil, err
		}
	}
	if v < 1 || v > s.ledger.World().Counters.Policy {
		return nil, refuse(NotFound, "version", "unknown policy version %v; list versions with: fairlead policy history", v)
	}
	return s.history.Policy(ctx, v)
}

// Diff compares two versions line by line, in the format of diff -u. A from of zero means
// no policy, a to of zero means the newest version.
func (s *Policies) Diff(ctx context.Context, from, to mesh.PolicyVersion) (string, error) {
	name := func(v mesh.PolicyVersion) string { return fmt.Sprintf("version %v", v) }
	if to == 0 {
		to = s.ledger.World().Counters.Policy
	}
	before, err := s.text(ctx, from)
	if err != nil {
		return "", err
	}
	after, err := s.text(ctx, to)
	if err != nil {
		return "", err
	}
	return textdiff.Unified(name(from), name(to), before, after), nil
}

// text returns the text of a version. Version zero is empty.
func (s *Policies) text(ctx context.Context, v mesh.PolicyVersion) (string, error) {
	if v == 0 {
		return "", nil
	}
	p, err := s.Version(ctx, v)
	if err != nil {
		return "", err
	}
	return p.Text, nil
}

// Compare returns what one version changed compared to another, on the current nodes, and
// the world it was evaluated in. The effect is nil if this server cannot parse one of the
// texts, which may have been saved by an older server.
func (s *Policies) Compare(ctx context.Context, from, to mesh.PolicyVersion) (*explain.Effect, *policy.World, error) {
	snap := s.ledger.World().Snapshot
	var worlds [2]*policy.World
	for i, version := range []mesh.PolicyVersion{from, to} {
		text, err := s.text(ctx, version)
		if err != nil {
			return nil, nil, err
		}
		var doc *lang.Doc
		if text != "" {
			if doc, err = ReadPolicy(text); err != nil {
				return nil, nil, nil
			}
		}
		worlds[i] = policy.WorldOf(snap, doc)
	}
	return explain.Preview(worlds[0], worlds[1], nil), worlds[1], nil
}
