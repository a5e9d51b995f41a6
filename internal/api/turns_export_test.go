package api

import "github.com/fairlead-mesh/fairlead/internal/mesh"

// WithoutTurn fills the queue of a caller, so that its next draft is refused.
func (s *Server) WithoutTurn(kind mesh.ActorKind, id string) {
	s.handlers.turns.callers[string(kind)+" "+id] = &caller{own: make(chan struct{}, 1), here: maxKeyDrafts}
}
