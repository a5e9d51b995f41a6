package ledger

import (
	"context"
	"log/slog"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// maxOldPolicies is how many versions are tried if the newest cannot be parsed.
const maxOldPolicies = 100

// worldOf applies the stored policy to a snapshot that was loaded.
func (l *Ledger) worldOf(ctx context.Context, s *mesh.Snapshot) *policy.World {
	w := policy.NewWorld(s, func() *lang.Doc {
		if w := l.World(); w != nil {
			return w.Doc
		}
		return l.lastGood(ctx, s)
	})
	w.Reserved = l.reserved
	return w
}

// lastGood returns the newest stored policy that can be parsed, or nil if there is none.
func (l *Ledger) lastGood(ctx context.Context, s *mesh.Snapshot) *lang.Doc {
	if l.history == nil {
		return nil
	}
	old, err := l.history.Policies(ctx, s.Counters.Policy, maxOldPolicies)
	if err != nil {
		l.log.Error("cannot read earlier policy versions", "error", err)
		return nil
	}
	for _, p := range old {
		if doc, problems := lang.Parse([]byte(p.Text)); len(problems) == 0 {
			l.log.Warn("using an earlier policy version", "version", p.Version)
			return doc
		}
	}
	return nil
}

// LogPolicy logs which policy is in force when the server starts. The ledger logs
// those that come into force later.
func LogPolicy(log *slog.Logger, w *policy.World) {
	p, ok := w.Policy()
	switch {
	case len(w.Problems) > 0:
		log.Error("policy not loaded: it is invalid, using the last valid version; save one that passes fairlead policy check",
			"version", p.Version, "problems", w.Problems.Error())
	case !ok || p.Text == "":
		log.Info("no policy stored: all nodes can reach each other")
	default:
		log.Info("policy loaded", "version", p.Version, "source", p.Source, "author", p.Author, "rules", len(w.Doc.Rules))
	}
}
