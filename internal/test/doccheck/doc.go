// Package doccheck checks text for people. In the documentation, links work, commands, flags and make targets
// exist, and every specified error is covered in docs/troubleshooting.md. No product text uses the phrases that
// phrases.yaml lists. Texts.Sample draws texts at random for a review of the language.
//
// It does not run what the documents show; .ci/run does that with the blocks that are marked for it.
package doccheck
