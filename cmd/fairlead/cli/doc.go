// Package cli is the command line of Fairlead: a client of the admin API that reaches the server over its local
// socket or, with an address and an API key, from anywhere. It does not implement the rules of the network: the
// server decides what a command may do. Only backup, restore and db open the database, through package backup.
//
// A tool is one run of the command line: its environment and the global flags. A lifetime is a duration from
// now, which is sent to the server as a time. A picture is the complete output of a list command; a watched
// list draws a new picture when it differs from the last. A mask hides secrets in texts that leave the machine.
//
// From this module it imports apiclient, backup, config, policy, spelling and textdiff. It starts no
// goroutine.
package cli
