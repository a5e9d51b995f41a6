// Command replica is one process of the chaos test: the same store, ledger and
// use cases as the service, driven by workers of its own instead of listeners.
// It writes chaos.Message lines and obeys the orders on its standard input; the
// end of that input ends it, so it does not outlive the test.
//
// It is not part of the service. It imports what the service is made of, and
// chaos for the messages.
package main
