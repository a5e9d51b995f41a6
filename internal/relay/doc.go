// Package relay is the embedded relay, and the loading of relay maps from
// elsewhere.
//
// The protocol and the forwarding of packets are the client's own DERP server;
// this package admits clients, answers STUN, counts and stops. It knows no nodes:
// who may connect is a function it is given. It stores nothing but the relay's
// key; what becomes of a map is decided by whoever takes it.
//
// Words it defines:
//
//   - A relay carries packets between clients that cannot reach each other. It
//     sees their keys and sizes, never what is in them.
//   - A region is a set of relays of which one client uses one; the relay map
//     tells clients which regions there are.
//   - A source is a URL or a file that gives a relay map.
//
// The package imports nothing else of this module. Connections are served on the
// goroutines of the HTTP server; Run belongs to its caller, starts one more for
// STUN, and waits for all of them.
package relay
