// Command fairlead-console serves the admin console of a Fairlead service to
// browsers.
//
// It joins the process to package bff and holds no rules of its own.
package main
