// Package cli is the command line of Fairlead: a client of the administration
// API that reaches the server over its local socket or, with an address and an
// API key, from anywhere. It holds no rules of the network; what a command may do
// is decided by the server. Only backup, restore and db open the database, by way
// of package backup.
//
// A tool is one run of the command line: the process around it and the global
// flags. A lifetime is a duration from now that the server is told as a time. A
// picture is all that a list command prints at one time; a list that is watched
// draws a new one when it differs from the last. A mask is what a text goes
// through that leaves the machine.
//
// It imports config, policy, backup and apiclient, and starts no goroutine.
package cli
