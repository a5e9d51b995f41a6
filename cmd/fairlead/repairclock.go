package main

import (
	"context"

	"github.com/fairlead-mesh/fairlead/cmd/fairlead/cli"
	"github.com/fairlead-mesh/fairlead/internal/app"
	"github.com/fairlead-mesh/fairlead/internal/config"
)

// repairClock sets the time of a database back for package cli, which does not open databases itself.
func repairClock(ctx context.Context, c *config.Config, agree func(cli.ClockRepair) error) (cli.ClockRepair, error) {
	shape := func(r app.ClockRepair) cli.ClockRepair {
		return cli.ClockRepair{Was: r.Was.Time(), Now: r.Now.Time(), Valid: r.Valid, Revoked: r.Revoked, Late: r.Late, Lost: r.Lost, Changes: r.Changes}
	}
	done, err := app.RepairClock(ctx, c, func(r app.ClockRepair) error { return agree(shape(r)) })
	return shape(done), err
}
