// Package apispec contains the description of the admin API: openapi.yaml, written by
// hand, from which the server's interface, the Go client and the TypeScript types are
// generated. It contains no logic.
//
// An API change starts in openapi.yaml. Then "go generate ./api" writes
// internal/api/openapi, apiclient and the operation tables of internal/api and
// console/bff, and "npm --prefix api run generate" (after "npm --prefix api ci") writes
// types.d.ts. Generated files are checked in.
//
// It imports no other package of this module.
package apispec
