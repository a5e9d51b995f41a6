// Package h2 serves HTTP/2 to many clients that keep one connection and one long response each. An idle connection has two
// goroutines (one reads frames, one is the handler of the long response), no buffers and no timers: all timeouts are checked by one
// goroutine per server. A handler writes to the connection itself, and what it flushes is one write.
//
// It parses with the framer and the HPACK decoder of golang.org/x/net. It does what RFC 9113 requires of a server and no more: no
// push, no priorities, no trailers, no compression state for responses.
//
// It knows nothing about Noise or about the requests.
package h2
