package control

import (
	"context"
	"time"
)

// Look does what Run does at a moment.
func (p *Prober) Look(ctx context.Context, now time.Time) {
	for id, well := range p.look(now) {
		p.judge(ctx, id, well)
	}
}
