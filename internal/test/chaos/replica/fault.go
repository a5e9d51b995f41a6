package main

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/store"
	"github.com/fairlead-mesh/fairlead/internal/test/chaos"
)

// faulty is a store that sometimes violates its contract, so that the test can show that the violation is
// noticed. Without a fault it is the store itself.
type faulty struct {
	store.Store
	fault string
}

var errForgotten = errors.New("rolled back in spite of success")

// Lock implements store.Store.
func (f faulty) Lock(ctx context.Context, after mesh.Revision, batch store.BatchID, fn func(store.Tx) error) error {
	err := f.Store.Lock(ctx, after, batch, func(tx store.Tx) error {
		err := fn(faultyTx{tx, f})
		if err == nil && f.fault == chaos.FaultEarlyAnswer && rand.IntN(50) == 0 {
			return errForgotten
		}
		return err
	})
	if errors.Is(err, errForgotten) {
		return nil
	}
	return err
}

// Tail implements store.Store.
func (f faulty) Tail(ctx context.Context, after store.Point) ([]store.Entry, error) {
	entries, err := f.Store.Tail(ctx, after)
	return f.bend(entries), err
}

type faultyTx struct {
	store.Tx
	faulty
}

func (t faultyTx) Missed() ([]store.Entry, error) {
	entries, err := t.Tx.Missed()
	return t.bend(entries), err
}

// bend applies the fault to entries. It does not change their revisions, because a follower would notice
// a gap.
func (f faulty) bend(entries []store.Entry) []store.Entry {
	switch {
	case f.fault == chaos.FaultDropEntry && len(entries) > 0 && rand.IntN(20) == 0:
		entries[rand.IntN(len(entries))].Events = nil
	case f.fault == chaos.FaultWrongOrder:
		swap(entries)
	}
	return entries
}

// swap exchanges two entries about one node, if there are any; the order of others rarely matters.
func swap(entries []store.Entry) {
	last := map[mesh.NodeID]int{}
	for i, e := range entries {
		_, touched := mesh.Apply(mesh.Empty(), e.Rev, e.Events...)
		for _, id := range touched {
			if j, ok := last[id]; ok {
				entries[j].Events, entries[i].Events = e.Events, entries[j].Events
				return
			}
			last[id] = i
		}
	}
}
