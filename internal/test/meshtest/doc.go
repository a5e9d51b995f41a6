// Package meshtest makes a whole mesh for a test: Server is a fairlead that
// runs as its own process, Node a virtual node that speaks to it as a client
// does, Balancer the way to several replicas. It is not for production code.
//
// A virtual node has keys, a stream and a picture of its peers, but carries no
// traffic; package clienttest runs real clients for that. Hundreds of them fit
// into a process.
//
// Whatever is started ends with the test.
package meshtest
