// Command meshbench loads a control server with many virtual nodes and reports what that costs the server. A
// virtual node speaks the client's protocol (Noise, HTTP/2, register, map) and has no data plane, so
// thousands fit into one process. It needs only the server's URL and auth keys.
//
// Its refserver command is a server reduced to the wire protocol. It shows the best that this machine can do,
// as a reference for other servers.
//
// It is not a conformance test: a node looks for the peers that it must be told about and skips everything
// else in a map. It imports nothing of this module.
//
// Terms: a node has converged when it was told about all its peers; the nodes are settled when no message but
// keep-alives has arrived for a while; a change is one new endpoint of a node, whose address contains the
// number of the change.
package main
