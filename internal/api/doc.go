// Package api is the admin interface over HTTP: it decodes a request, calls one use case or
// reads one snapshot, and encodes the response. Paths, schemas and the handler interface
// come from api/openapi.yaml.
//
// The operations of a noun are the methods of one type, such as users. The type handlers
// embeds all of them, and Server is the HTTP server around it: authentication, permissions,
// idempotency keys and metrics.
//
// It never sees the store. It imports control, identity, ledger (to read) and mesh, and
// starts no goroutine.
package api
