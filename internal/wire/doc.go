// Package wire speaks to clients: it takes over their connections, proves who
// they are, decodes what they ask, calls one use case and encodes the answer. It
// also serves the few pages that people see who have nothing but a client.
//
// It decides nothing, and it streams no maps: that is package stream. It imports
// control, stream, ledger (to read), identity and mesh. Each connection has its
// goroutine; Close ends them all and waits for them.
//
// A connection is an HTTP request that is upgraded to the clients' own encrypted
// transport, Noise, and carries HTTP/2 inside. Noise proves the machine key of
// the client; every node key that it names is checked against that.
package wire
