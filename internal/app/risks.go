package app

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/periodic"
)

// riskLook is how often the settings of the database are read again, so that a warning disappears after they
// are corrected.
const riskLook = 5 * time.Minute

// risks tracks the unsafe settings of the database.
type risks struct {
	read  func(context.Context) ([]string, error)
	log   *slog.Logger
	found atomic.Pointer[[]string]
}

// look reads the settings and logs those that are newly unsafe. If it cannot read them, it keeps the previous
// result.
func (r *risks) look(ctx context.Context) {
	before := r.warnings()
	now, err := r.read(ctx)
	if err != nil {
		if ctx.Err() == nil {
			r.log.Warn("cannot read PostgreSQL settings", "error", err)
		}
		return
	}
	r.found.Store(&now)
	for _, risk := range now {
		if !slices.Contains(before, risk) {
			r.log.Warn("unsafe PostgreSQL setting", "risk", risk)
		}
	}
}

// warnings returns what /health reports about the settings.
func (r *risks) warnings() []string {
	if found := r.found.Load(); found != nil {
		return *found
	}
	return nil
}

// Run calls look periodically until ctx ends.
func (r *risks) Run(ctx context.Context) error {
	r.look(ctx)
	return periodic.Run(ctx, riskLook, func() { r.look(ctx) })
}
