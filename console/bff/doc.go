// Package bff is the server of the admin console: it answers browsers and speaks
// to the coordination service for them.
//
// Today it is a place to stand on: its configuration, its health and one page
// that says what works instead. It stores nothing.
package bff
