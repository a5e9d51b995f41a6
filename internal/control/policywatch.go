package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/explain"
)

const (
	// pendingInterval is the maximum delay until a replica notices an unconfirmed policy.
	pendingInterval = time.Second
	// revertRetry is the pause after a revert that failed because of the database or its
	// clock.
	revertRetry = 200 * time.Millisecond
	// testEvery limits the cost of the tests while tags and users change.
	testEvery = 5 * time.Second
)

// PolicyWatch reverts policies that nobody confirmed in time, and runs the tests of the
// policy in force.
type PolicyWatch struct {
	*core
	file   *PolicyFile
	health policyHealth
}

func newPolicyWatch(c *core, file *PolicyFile, reg prometheus.Registerer) *PolicyWatch {
	w := &PolicyWatch{core: c, file: file}
	reg.MustRegister(w.health.gauge())
	return w
}

// policyHealth holds the problems of the policy in force found by the last check.
type policyHealth struct {
	failures atomic.Pointer[[]explain.TestFailure]
}

func (h *policyHealth) failing() []explain.TestFailure {
	if f := h.failures.Load(); f != nil {
		return *f
	}
	return nil
}

func (h *policyHealth) gauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "mesh_policy_tests_failing", Help: "Tests of the current policy that fail.",
	}, func() float64 { return float64(len(h.failing())) })
}

// Warnings returns what an operator should know about the policy, one line each.
func (s *PolicyWatch) Warnings() (warnings []string) {
	w := s.ledger.World()
	p, _ := w.Policy()
	if len(w.Problems) > 0 {
		warnings = append(warnings, fmt.Sprintf("policy version %v is invalid, so the last valid version is active: %s", p.Version, w.Problems[0]))
	}
	warnings = append(warnings, s.file.warnings(p)...)
	if failures := s.health.failing(); len(failures) > 0 {
		warnings = append(warnings, "policy tests have been failing since tags or users changed: "+(&BadPolicy{Failures: failures}).Error())
	}
	return warnings
}

// RevertUnconfirmed reverts versions of the policy that nobody confirms in time, until ctx
// ends. It runs on every replica; a revert is idempotent.
func (s *PolicyWatch) RevertUnconfirmed(ctx context.Context) error {
	for ctx.Err() == nil {
		wait := pendingInterval
		if p, ok := s.ledger.World().Policy(); ok && p.ConfirmBy != 0 {
			left := p.ConfirmBy.Sub(s.ledger.Now())
			if left <= 0 {
				reason := fmt.Sprintf("version %v was not confirmed within %v", p.Version, p.ConfirmBy.Sub(p.SavedAt))
				if _, err := s.revertTrial(ctx, mesh.Actor{Kind: mesh.ActorServer}, p, reason, p.ConfirmBy); err != nil {
					s.log.Debug("cannot revert the policy, retrying", "version", p.Version, "error", err)
				}
			}
			wait = min(max(left, revertRetry), pendingInterval)
		}
		pause(ctx, wait)
	}
	return nil
}

// RunTests runs the tests of the policy in force whenever the policy, users, tags,
// addresses or routes change, until ctx ends. Failures only cause a warning, because
// whoever changed a user or a node did not edit the policy.
func (s *PolicyWatch) RunTests(ctx context.Context) error {
	var tested *policy.World
	var last string
	for ctx.Err() == nil {
		if w := s.ledger.World(); tested == nil || !w.SameIdentities(tested.Snapshot) || !w.SamePolicy(tested.Snapshot) {
			tested = w
			var failures []explain.TestFailure
			if hasTests(w.Doc) {
				failures = explain.RunTests(w)
			}
			s.health.failures.Store(&failures)
			last = s.logTests(failures, last)
		}
		pause(ctx, testEvery)
	}
	return nil
}

// logTests logs a result that differs from the last one, and returns it as text.
func (s *PolicyWatch) logTests(failures []explain.TestFailure, last string) string {
	texts := make([]string, len(failures))
	for i, f := range failures {
		texts[i] = f.Text
	}
	slices.Sort(texts)
	text := strings.Join(texts, "; ")
	switch text {
	case last:
	case "":
		s.log.Info("policy tests pass again")
	default:
		s.log.Warn("policy tests fail after tags or users changed", "failing", len(failures), "tests", (&BadPolicy{Failures: failures}).Error())
	}
	return text
}
