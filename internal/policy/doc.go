// Package policy says who may do what, and what the network looks like seen
// through that. Of the policy language it knows groups and tag owners; who may
// reach whom is not told apart yet: everyone may reach everyone.
//
// It keeps nothing and asks nobody: a document is read, which may fail, and
// then only looked at, which may not. It is pure, imports mesh alone and starts
// no goroutine.
package policy
