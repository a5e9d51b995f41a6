// Package chaos checks that a deployment keeps its guarantees while parts of it break.
//
// One test starts small replicas (package replica) that share one PostgreSQL, kills them under load, and passes
// their output and the log to a Checker, which must find nothing. It also seeds faults, each of which the
// Checker must find. A similar test kills a replica on SQLite and inspects its files. Another test breaks a
// whole deployment: server processes, PostgreSQL with a synchronous standby, a balancer, a relay, virtual nodes
// and real clients. Its requests are checked with Linearizable, Revisions and Kept, and its log with a Checker.
//
// It is not for production code. It imports mesh; its tests import what they start.
package chaos
