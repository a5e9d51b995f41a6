// Package policy is the access policy of a snapshot: who may reach whom and why,
// what a change of the text would do, and whether its tests hold.
//
// Package lang reads the text, which may fail. What follows from a document cannot
// fail. Rules depend on the document alone; a World is a snapshot with every
// node sorted into a class by it. Package netmap tells clients.
//
// Its results depend on its arguments alone. Rules and World remember what they
// have found out, behind locks: classes as nodes of a new kind appear, and lists
// that follow from a snapshot. It starts no goroutine.
package policy
