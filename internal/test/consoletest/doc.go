// Package consoletest is the admin console on a stage: a real server, the real
// console, and a mesh that looks like one of a company, with people, routers,
// keys, a policy, a past of thirty days and as many connected nodes as wanted.
//
// It is for looking (TestDemo, behind -demo) and for tests in a browser. It
// holds no rules of the console or of the server.
package consoletest
