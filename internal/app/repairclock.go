package app

import (
	"context"
	"io"
	"os/user"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/fairlead-mesh/fairlead/internal/config"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// ClockRepair describes the effects of setting the time of a database back.
type ClockRepair = control.ClockRepair

// RepairClock sets the time of the configured database back to its clock. For a
// moment this process acts as a replica: with PostgreSQL, others may keep running
// and follow; with SQLite, the server must be stopped. It calls agree first.
func RepairClock(ctx context.Context, c *config.Config, agree func(ClockRepair) error) (done ClockRepair, err error) {
	err = asReplica(ctx, c, "fairlead db repair-clock", func(s *service, a mesh.Actor) (err error) {
		done, err = control.RepairClock(ctx, s.ledger, s.database, a, agree)
		return err
	})
	return done, oneLine(err)
}

// asReplica opens the configured database and runs f. For a moment this process acts as a replica.
func asReplica(ctx context.Context, c *config.Config, reason string, f func(*service, mesh.Actor) error) error {
	s := &service{Options: Options{Config: c}, log: newLogger(io.Discard, c.Log), registry: prometheus.NewRegistry()}
	st, err := s.openStore(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	if err := s.openLedger(ctx, st); err != nil {
		return err
	}
	a := mesh.Actor{Kind: mesh.ActorLocal, Reason: reason}
	if u, err := user.Current(); err == nil {
		a.ID, a.Name = u.Uid, u.Username
	}
	loops, end := context.WithCancel(context.WithoutCancel(ctx))
	g, failed := errgroup.WithContext(loops)
	g.Go(func() error { return s.ledger.Run(failed) })
	err = f(s, a)
	end()
	if stopped := g.Wait(); err == nil {
		err = stopped
	}
	return err
}
