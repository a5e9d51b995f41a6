// Package doccheck checks the documentation: links work, commands, flags and make targets exist, and every
// specified error is covered in docs/troubleshooting.md.
//
// It does not run what the documents show; .ci/run does that with the blocks that are marked for it.
package doccheck
