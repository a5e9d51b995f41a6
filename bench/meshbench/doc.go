// Command meshbench puts a control server under load with many virtual nodes and reports what that costs the
// server. A virtual node speaks the client's protocol (Noise, HTTP/2, register, map) and has no data plane,
// so thousands fit into one process. It needs only the server's URL and auth keys.
//
// Its refserver command is a server reduced to the wire protocol. It shows the best that this machine can do,
// as a reference for other servers.
//
// It is not a conformance test: a node looks only for the peers that it must get, and skips everything else
// in a map. It imports no other package of this module.
//
// Terms: a node has converged when it has received all its peers; the nodes are settled when no message other
// than keep-alives has arrived for a while; a change is one new endpoint of a node, whose address contains
// the number of the change.
package main
