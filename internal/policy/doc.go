// Package policy is the access policy: it reads the language, says who may reach
// whom and why, what a change of the text would do, and whether its tests hold.
//
// A document is read, which may fail, and then only looked at, which may not.
// Compiled depends on the document alone; a World is a snapshot with every node
// sorted into a class by it. How clients are told is not here but in netmap.
//
// It keeps nothing and asks nobody: it is pure, imports mesh alone and starts no
// goroutine.
package policy
