// Package explain shows authors of an access policy what it does and why: whether one end
// may reach another and by which rule (Why), who reaches whom (MapOf), what a change would
// do (Preview), whether a policy's own tests pass (RunTests), and what its author may have
// overlooked (Notes).
//
// What nodes are sent does not depend on this package: package policy decides it. Tests
// check that both packages agree.
//
// It is pure and keeps no state.
package explain
