package recheck

import "context"

// Look asks about everyone whose turn it is.
func (l *Loop) Look(ctx context.Context) { l.look(ctx) }
