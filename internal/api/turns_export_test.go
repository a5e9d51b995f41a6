package api

import "github.com/fairlead-mesh/fairlead/internal/mesh"

// WithoutTurn lets a caller wait for as many drafts as it may.
func (s *Server) WithoutTurn(kind mesh.ActorKind, id string) {
	s.handlers.turns.callers[string(kind)+" "+id] = &caller{own: make(chan struct{}, 1), here: maxKeyDrafts}
}
