// Command meshbench loads a coordination server with many virtual nodes and
// reports what that costs the server. A virtual node speaks the client's
// protocol (Noise, HTTP/2, register, map) and has no data plane, so thousands
// fit into one process. It knows the server by its URL and auth keys only.
//
// Its refserver command is a server reduced to the wire: what this machine can
// do at best, the limit that others are measured against.
//
// It is not a conformance test: a node looks for the peers it must be told of
// and skips everything else in a map. It imports nothing of this module.
//
// Words: a node has converged when it was told of all its peers; the nodes are
// settled when no message but keep-alives came for a while; a change is one new
// endpoint of a node, whose address carries the number of the change.
package main
