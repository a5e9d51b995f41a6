// Package openapi is the administration API as Go sees it from the server's
// side: the interface that handlers implement, its routing, and the types of its
// answers, all generated from api/openapi.yaml. The types are those of apiclient. It
// holds no behaviour of its own, and requests are decoded by the handlers, because they
// accept older forms than the document describes.
package openapi
