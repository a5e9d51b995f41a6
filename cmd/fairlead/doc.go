// Command fairlead is the Fairlead server, started with "fairlead serve", and the command line that
// administers it.
//
// It connects the process to the packages that do the work and contains no logic of its own: serve.go runs
// the server, and package cli is everything else.
package main

//go:generate go run . man --markdown ../../docs/cli.md
