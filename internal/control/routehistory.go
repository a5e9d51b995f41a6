package control

import (
	"context"
	"net/netip"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/history"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

const (
	defaultTerms = 100
	maxTerms     = 1000
)

// Term is the time for which one node led to a prefix.
type Term struct {
	history.Leader
	Until mesh.Time // zero while it lasts
}

// History returns who led to a prefix, newest first. A limit of
// zero means what suits a page.
func (s *Routes) History(ctx context.Context, prefix netip.Prefix, limit int) (terms []Term, err error) {
	if limit < 0 || limit > maxTerms {
		return nil, refuse(Invalid, "limit", "limit must be from 1 to %d", maxTerms)
	}
	if limit == 0 {
		limit = defaultTerms
	}
	leaders, err := s.history.Leaders(ctx, prefix, limit)
	var until mesh.Time
	for _, l := range leaders {
		terms = append(terms, Term{l, until})
		until = l.At
	}
	return slices.DeleteFunc(terms, func(t Term) bool { return t.Node == 0 }), err
}
