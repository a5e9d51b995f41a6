// Package clienttest runs unmodified Tailscale clients for tests: it builds exact versions, starts their
// daemons with or without a network device, and creates private networks of network namespaces for them. It
// is not for production code, and knows only the URL of our server.
//
// No client can reach the outside. On the host it runs without a network device, with everything disabled
// that would look for other servers, and under a group that the firewall confines to loopback (seal.sh). With
// a device it runs in a namespace without a route to the outside and with its own /etc and /run.
//
// Everything it starts is stopped at the end of the test, or when the test's process dies.
package clienttest
