// Package meshtest creates a whole mesh for a test: Server is a fairlead process, Node is a virtual node that
// uses the client's protocol, and Balancer is a load balancer for several replicas. It is not for production
// code.
//
// A virtual node has keys, a stream and a view of its peers, but carries no traffic; package clienttest runs
// real clients for that. Hundreds of virtual nodes fit into a process.
//
// Everything that is started is stopped at the end of the test.
package meshtest
