// Package apidocs makes the page that people read from the API's document: one
// HTML file without scripts that loads nothing from elsewhere. It renders the parts
// of OpenAPI and Markdown that the document uses and is no general renderer of either.
//
// It imports nothing of ours.
package apidocs
