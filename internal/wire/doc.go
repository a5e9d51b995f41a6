// Package wire implements the protocol of the clients: it upgrades their connections, authenticates them,
// decodes their requests, calls one use case for each and encodes the response. It also serves a few pages for
// people who set up or sign in to a client.
//
// It makes no decisions, which is the task of control, and does not stream maps itself, which is the task of
// stream. Each connection has its own goroutine; Close closes all connections and waits for their goroutines.
//
// A connection starts as an HTTP request, which is upgraded to Noise, the clients' encrypted transport, and
// carries HTTP/2 inside. Noise authenticates the machine key of the client; every node key that the client
// names is checked against it.
package wire
