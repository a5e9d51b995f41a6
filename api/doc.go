// Package apispec holds the description of the administration API: openapi.yaml,
// written by hand, from which the server's interface, the Go client and the
// TypeScript types are generated. It holds no behaviour.
//
// An API change begins in openapi.yaml. Then "go generate ./api" writes
// internal/api/openapi, apiclient and the tables of operations of internal/api and
// console/bff, and "npm --prefix api run generate" (after "npm --prefix api ci")
// writes types.d.ts. Generated files are checked in.
//
// It imports nothing of ours.
package apispec
