// Package apiclient is a Go client of Fairlead's administration API, generated
// from api/openapi.yaml. It is not a client of the mesh itself and knows nothing
// of the server's inside; the server uses its types.
//
// The methods of [ClientWithResponses] return an error only if no answer could be
// read; look at the status of the answer for everything else. To read your own
// write from another replica, pass the Mesh-Revision header of the write's
// answer back as Mesh-Min-Revision with a [RequestEditorFn].
//
// It imports nothing of ours.
package apiclient
