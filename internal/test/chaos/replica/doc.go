// Command replica is one process of the chaos test: the same store, ledger and use cases as the server,
// driven by its own workers instead of listeners. It writes chaos.Message lines and follows the orders on its
// standard input. It exits at the end of that input, so it does not outlive the test.
//
// It is not part of the server. It imports the server's packages, and chaos for the messages.
package main
