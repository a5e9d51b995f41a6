package control

import (
	"context"
	"fmt"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// maxVersions is how many versions of the policy one answer holds.
const maxVersions = 100

// Policies returns versions of the policy below before, newest first; zero means
// from the newest, and for limit as many as there may be.
func (s *Service) Policies(ctx context.Context, before mesh.PolicyVersion, limit int) ([]mesh.Policy, error) {
	if before < 0 {
		return nil, refuse(Invalid, "before", "before must be a version of the policy")
	}
	if limit < 0 || limit > maxVersions {
		return nil, refuse(Invalid, "limit", "limit must be from 1 to %d", maxVersions)
	}
	if limit == 0 {
		limit = maxVersions
	}
	return s.ledger.Policies(ctx, before, limit)
}

// PolicyVersion returns one version of the policy.
func (s *Service) PolicyVersion(ctx context.Context, v mesh.PolicyVersion) (*mesh.Policy, error) {
	if v > s.ledger.World().Counters.Policy { // another replica may have just saved it
		if err := s.ledger.Sync(ctx); err != nil {
			return nil, err
		}
	}
	if v < 1 || v > s.ledger.World().Counters.Policy {
		return nil, refuse(NotFound, "version", "the policy never had version %v; list the versions with: fairlead policy history", v)
	}
	return s.ledger.PolicyVersion(ctx, v)
}

// DiffPolicies compares two versions line by line, in the form of diff -u. Nothing
// comes before the first version, which is what from zero means; to zero means
// the newest.
func (s *Service) DiffPolicies(ctx context.Context, from, to mesh.PolicyVersion) (string, error) {
	name := func(v mesh.PolicyVersion) string { return fmt.Sprintf("version %v", v) }
	if to == 0 {
		to = s.ledger.World().Counters.Policy
	}
	var before, after string
	for _, side := range []struct {
		version mesh.PolicyVersion
		text    *string
	}{{from, &before}, {to, &after}} {
		if side.version == 0 {
			continue
		}
		p, err := s.PolicyVersion(ctx, side.version)
		if err != nil {
			return "", err
		}
		*side.text = p.Text
	}
	return policy.Diff(name(from), name(to), before, after), nil
}
