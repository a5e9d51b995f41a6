// Package policy decides who may reach whom: it applies an access policy to a
// snapshot.
//
// Package lang reads the text of a policy, which may fail. What follows from a
// document cannot fail. Rules depend on the document alone; a World is a snapshot
// with every node sorted into a class by them. Package netmap tells clients what
// follows from it, and package explain tells people.
//
// Its results depend on its arguments alone. Rules and World remember what they
// have found out, behind locks: classes as nodes of a new kind appear, and lists
// that follow from a snapshot. It starts no goroutine.
package policy
