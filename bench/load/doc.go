// Package load checks that the cost of a server with many nodes stays within limits. Its tests start fairlead
// with a PostgreSQL that stores its data on disk, load it with bench/meshbench and print a table of figures and
// limits. It is not a library, and it does not look for the cause of a cost: use a profile for that.
//
// There are two kinds of limits: multiples of what the reference server of meshbench needs for the same work
// on the same machine, and the absolute targets for idle nodes and for lists of nodes. CPU time is compared,
// not duration, because other programs on the machine affect only the latter; the exception is the duration
// of a list request.
//
// By default the meshes are small enough to run for every change: make load-short. Full sizes run with make
// load, make load-10k, make load-lists, make load-scim and make quiet.
package load
