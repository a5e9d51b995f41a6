// Package openapi is the server side of the admin API: the interface that handlers
// implement, its routing, and the types of its responses, all generated from
// api/openapi.yaml. The types are those of apiclient. The package contains no logic of
// its own. Handlers decode requests themselves, because they also accept older forms that
// the document does not describe.
package openapi
