package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

// reader is the part of the ledger that handlers use. Changes go through the use cases.
type reader interface {
	World() *policy.World
	Now() mesh.Time
	Sync(context.Context) error
	Confirm(context.Context, mesh.Revision) error
}

// core is what all handlers share: access to the newest state of the network, and error
// responses. It has no exported methods, so that embedding it adds no operations.
type core struct {
	ledger     reader
	log        *slog.Logger
	refusals   *identity.RefusalLog
	operations map[string]operation // by pattern
	current    map[string]current   // by the Path of a refusal for a stale If-Match
}

// current returns an object as it is now, and its ETag. The object is nil if it no longer
// exists, or if the caller may not see it.
type current func(a mesh.Actor, snap *mesh.Snapshot, object string) (shape any, revision string)

var errAbsent = errors.New("object not found")

// lookup finds an object in the newest snapshot. Before it fails with errAbsent, it catches
// up with the database: another replica may just have created the object.
func lookup[T any](ctx context.Context, l reader, find func(*mesh.Snapshot) (T, bool)) (v T, snap *mesh.Snapshot, err error) {
	snap = l.World().Snapshot
	v, ok := find(snap)
	if ok {
		return v, snap, nil
	}
	if err := l.Sync(ctx); err != nil {
		return v, nil, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	snap = l.World().Snapshot
	if v, ok = find(snap); !ok {
		return v, nil, errAbsent
	}
	return v, snap, nil
}

// search is lookup for a find function that returns its own error.
func search[T any](r *http.Request, l reader, find func(*mesh.Snapshot) (T, error)) (T, *mesh.Snapshot, error) {
	var refusal error
	v, snap, err := lookup(r.Context(), l, func(snap *mesh.Snapshot) (v T, ok bool) {
		v, refusal = find(snap)
		return v, refusal == nil
	})
	if errors.Is(err, errAbsent) {
		err = refusal
	}
	return v, snap, err
}

// done responds to a request whose operation returns only an error.
func (s *core) done(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	reply(w, s.ledger.World().Snapshot, openapi.Empty{})
}
