// Command upstream is a stand-in for the server or the console in tests of the proxy. It returns
// each request as the proxy passed it on, streams, and accepts every upgrade. It is not shipped and
// contains no mesh logic.
package main
