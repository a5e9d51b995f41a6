// Package bff is the server of the admin console: it serves browsers and calls the Fairlead server for them.
//
// People sign in with an API key of their own. The key is kept in an encrypted cookie, so that scripts in the
// browser cannot read it. Every request is sent to the server with that key: the server decides what it may
// do and names it in the audit log, and revoking the key ends the session. A browser can call only the
// operations of a table; there is no way to send any other path.
//
// The console is not a second way into the network: it stores nothing but sign-outs, knows no rules of the
// mesh, and uses the API like any other client.
package bff
