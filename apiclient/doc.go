// Package apiclient is a Go client for Fairlead's admin API, generated from
// api/openapi.yaml. It is not a client of the mesh itself and does not depend on the
// server's internals; the server uses its types.
//
// The methods of [ClientWithResponses] return an error only if no response could be read;
// check the status of the response for everything else. To read your own write from
// another replica, pass the Mesh-Revision header of the write's response back as
// Mesh-Min-Revision with a [RequestEditorFn].
//
// It imports no other package of this module.
package apiclient
