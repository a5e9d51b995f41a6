// Package explain shows authors of an access policy what it does and why: whether one end
// may reach another and by which rule (Why), who reaches whom (MapOf), what a change would
// do (Preview), whether a policy's own tests pass (RunTests), and what its author may have
// overlooked (Notes).
//
// Nodes do not depend on this package. They get what package policy decides; tests check
// that both agree.
//
// It is pure and keeps no state.
package explain
