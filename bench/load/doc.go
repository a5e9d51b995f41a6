// Package load holds what a server may cost under many nodes. Its tests start
// fairlead on a durable PostgreSQL, load it with bench/meshbench and print a
// table of figures and limits. It is not a library, and it does not look for
// the cause of a cost: that is the work of a profile.
//
// Two kinds of limits are held: multiples of what the reference of meshbench
// needs for the same on the same machine, and the absolute figures promised for
// nodes that do nothing and for lists of nodes. CPU time is compared, never
// duration, because other programs on the machine stretch only the latter; the
// exception is how long a list takes.
//
// Unless flags say otherwise the meshes are small enough for every change:
// make load-short. The real sizes are make load, make load-10k, make load-lists
// and make quiet.
package load
