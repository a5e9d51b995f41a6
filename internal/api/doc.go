// Package api is the admin interface over HTTP: it decodes a request, calls one use case or
// reads one snapshot, and encodes the response. Paths, schemas and the handler interface
// come from api/openapi.yaml.
//
// The operations on one kind of object are the methods of one type, such as users. The type
// handlers embeds all of them, and Server is the HTTP server around it: authentication,
// permissions, idempotency keys and metrics.
//
// It has no access to the store: it changes state only through control, and reads it
// from ledger. It starts no goroutine.
package api
