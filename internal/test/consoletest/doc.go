// Package consoletest runs the real admin console and a real server with a mesh that looks like
// that of a company, with people, routers, keys, a policy, thirty days of history and any number of
// connected nodes.
//
// It is for manual inspection (TestDemo, behind -demo) and for browser tests. It implements no
// behaviour of the console or the server.
package consoletest
