// Package cli is the command line of Fairlead: a client of the admin API that reaches the server over its
// local socket or, with an address and an API key, from anywhere. It contains no rules of the network: the
// server decides what a command may do. Only backup, restore and db open the database, through package
// backup.
//
// A tool is one run of the command line: its environment and the global flags. A lifetime is a duration from
// now, which is sent to the server as a time. A picture is everything that a list command prints at one
// time; a watched list draws a new picture when it differs from the last. A mask removes secrets from texts
// that leave the machine.
//
// It imports config, policy, backup and apiclient, and starts no goroutine.
package cli
