// Package explain says what follows from an access policy and why, for people who
// write one: whether one end may reach another and by which rule (Why), who reaches
// whom (MapOf), what a change would do (Preview), whether a policy's own tests hold
// (RunTests), and what its author may have overlooked (Notes).
//
// Nodes are not told any of this. They are told what package policy decides; that
// both agree is what its tests are for.
//
// It is pure and keeps nothing.
package explain
