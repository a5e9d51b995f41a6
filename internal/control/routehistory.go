package control

import (
	"context"
	"net/netip"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Term is the period in which one node was the primary router of a prefix.
type Term struct {
	history.Leader
	Until mesh.Time // zero if the node is still primary
}

// History returns which nodes were primary for a prefix, newest first. A limit of zero means
// the default.
func (s *Routes) History(ctx context.Context, prefix netip.Prefix, limit int) (terms []Term, err error) {
	if limit, err = rowLimit(limit, maxRows); err != nil {
		return nil, err
	}
	leaders, err := s.history.Leaders(ctx, prefix, limit)
	var until mesh.Time
	for _, l := range leaders {
		terms = append(terms, Term{l, until})
		until = l.At
	}
	return slices.DeleteFunc(terms, func(t Term) bool { return t.Node == 0 }), err
}
