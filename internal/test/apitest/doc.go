// Package apitest checks the API against openapi.yaml: every response that a test receives is validated, and
// a document is compared with an earlier one for breaking changes.
//
// It is only for tests and not part of a binary.
package apitest
