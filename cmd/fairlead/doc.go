// Command fairlead is the coordination service for a private mesh, started with
// "fairlead serve", and the command line that administers it.
//
// It joins the process to the packages that do the work and holds no rules of
// its own: serve.go is the service, package cli everything else.
package main

//go:generate go run . man --markdown ../../docs/cli.md
