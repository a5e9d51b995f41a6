// Package apitest holds the API to its document: every answer that a test meets
// is checked against it, and a document is compared with the one that was
// promised before.
//
// It is for tests alone and no part of a binary.
package apitest
