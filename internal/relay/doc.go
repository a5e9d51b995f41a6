// Package relay implements a relay, inside the server or as a process of its own, and loads relay maps from URLs and files.
//
// Tailscale's own DERP server implements the protocol and forwards packets; this package admits clients,
// responds to STUN requests, exports metrics and shuts down cleanly. It knows nothing about nodes: a function
// in its configuration decides who may connect. It stores only the relay's key, and callers decide what to do
// with a map.
//
// Terms:
//
//   - A relay forwards packets between clients that cannot reach each other
//     directly. It sees their keys and sizes, never their content.
//   - A region is a set of relays of which a client uses one; the relay map
//     tells clients which regions there are.
//   - A source is a URL or a file that contains a relay map.
//
// From this module the package imports only guard and identity. Connections are served on the goroutines of the
// HTTP server. Run starts one more goroutine for STUN, and waits for all of them.
package relay
