// Command fairlead-console serves the admin console of a Fairlead server to browsers.
//
// It connects the process to package bff and contains no logic of its own.
package main
