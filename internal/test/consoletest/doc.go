// Package consoletest runs the admin console on a stage: a real server, the real console, and a
// mesh that looks like that of a company, with people, routers, keys, a policy, thirty days of
// history and any number of connected nodes.
//
// It is for manual inspection (TestDemo, behind -demo) and for browser tests. It contains no rules
// of the console or of the server.
package consoletest
