// Package speccheck maintains the list of everything that was specified and decided about the product,
// rows.yaml, and the tests that prove it.
//
// It proves nothing itself. It checks that every row names a test, that docs/spec-coverage.md shows it and,
// after all other tests, that each of them ran and passed.
package speccheck
