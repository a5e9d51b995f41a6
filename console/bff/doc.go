// Package bff is the server of the admin console: it answers browsers and speaks
// to the coordination service for them.
//
// People log in with an API key of their own. It lives in an encrypted cookie, so
// a browser never shows it to a script, and every request goes to the service
// with it: the service decides what it may do, its audit names it, and revoking
// it ends the session. What a browser may ask of the service is a table of
// operations; there is no way to send any other path.
//
// It is not a second way into the network: it stores nothing but sign-outs, knows
// no rules of the mesh, and calls the API like any other client.
package bff
