// Package chaos proves that replicas over one PostgreSQL keep their promises
// while processes and the database are killed. Its test starts real processes
// (package replica), kills them under load, and gives what they said and what
// the log holds to a Checker, which must find nothing; and it seeds faults, of
// which the Checker must find each.
//
// It is not for production code. It imports mesh; its tests import what they
// start.
package chaos
