// Package lang reads the language of access policies. Parse either returns a
// document or says what is wrong with the text, line by line. It knows what a text
// says, not what follows from it for the nodes of a mesh: that is package policy.
//
// It is pure: it imports mesh for names and nodes, and keeps nothing.
package lang
