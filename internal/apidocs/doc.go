// Package apidocs renders openapi.yaml as a page for people: one HTML file without scripts that loads nothing
// else. It supports the parts of OpenAPI and Markdown that the document uses and is not a general renderer of
// either.
//
// It imports no other package of this module.
package apidocs
