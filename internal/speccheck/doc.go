// Package speccheck keeps the list of all that was specified and decided about
// the product, rows.yaml, and the tests that prove it.
//
// It proves nothing itself: it sees to it that every row has a test, that the
// test exists, and that docs/spec-coverage.md shows it.
package speccheck
