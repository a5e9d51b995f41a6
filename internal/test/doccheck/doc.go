// Package doccheck keeps the documents true: links lead somewhere, commands, flags
// and make targets exist, and every error that was specified is answered in
// docs/troubleshooting.md.
//
// It does not run what documents show; .ci/run does that with blocks that are
// marked for it.
package doccheck
