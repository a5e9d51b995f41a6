package control

import (
	"context"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// CommitPolicyFile makes the text of the policy file the policy. A text that is
// not a policy is refused, and the one in force stays.
func (s *Service) CommitPolicyFile(ctx context.Context, text string) error {
	if _, problems := policy.Parse([]byte(text)); len(problems) > 0 {
		s.log.Error("policy file not loaded: what was in force stays", "problems", strings.ReplaceAll(problems.Error(), "\n", "; "))
		return nil
	}
	_, err := s.ledger.Commit(ctx, mesh.Actor{Kind: mesh.ActorServer}, func(w *policy.World, now mesh.Time) ([]mesh.Event, error) {
		if old, ok := w.Policy(); ok && old.Source == "file" && old.Text == text {
			return nil, nil
		}
		return []mesh.Event{mesh.PolicyPut{Policy: &mesh.Policy{
			Version: w.Counters.Policy + 1, Text: text, Source: "file", Author: "policy file", SavedAt: now,
		}}}, nil
	})
	return err
}
