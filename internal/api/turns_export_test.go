package api

import "github.com/fairlead-mesh/fairlead/internal/mesh"

// WithoutTurn makes a caller wait for as many drafts as it is allowed to.
func (s *Server) WithoutTurn(kind mesh.ActorKind, id string) {
	s.handlers.turns.callers[string(kind)+" "+id] = &caller{own: make(chan struct{}, 1), here: maxKeyDrafts}
}
