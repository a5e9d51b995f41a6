// Command upstream stands behind the proxy in its tests, in place of the service or of
// the console: it shows each request as it came out of the proxy, streams, and
// agrees to every upgrade. It is not shipped and knows nothing of a mesh.
package main
