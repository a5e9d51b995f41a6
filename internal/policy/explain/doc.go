// Package explain tells people who write an access policy what follows from it and why:
// whether one end may reach another and by which rule (Why), who reaches whom (MapOf), what
// a change would do (Preview), whether a policy's own tests hold (RunTests), and what its
// author may have overlooked (Notes).
//
// Nodes do not use any of this. They get what package policy decides; tests check that both
// agree.
//
// It is pure and keeps no state.
package explain
