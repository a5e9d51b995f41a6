// Package chaos checks that replicas that share one PostgreSQL keep their guarantees while processes and the
// database are killed. Its test starts real processes (package replica), kills them under load, and passes
// their output and the log to a Checker, which must find nothing. It also seeds faults, each of which the
// Checker must find.
//
// It is not for production code. It imports mesh; its tests import what they start.
package chaos
