// Package lang parses access policies. Parse returns either a document or what is wrong
// with the text, line by line. It does not apply the policy to the nodes of a mesh: that
// is the task of package policy.
//
// It is pure: it imports mesh for names and nodes, and keeps no state.
package lang
