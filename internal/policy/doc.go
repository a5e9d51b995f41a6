// Package policy decides who may reach whom: it applies an access policy to a snapshot.
//
// Package lang reads the text of a policy, which may fail. Applying a document cannot
// fail. Rules depends only on the document; a World is a snapshot in which Rules has
// assigned every node to a class. Package netmap turns the result into maps for clients,
// and package explain into explanations for people.
//
// Its results depend only on its arguments. Rules and World cache results behind locks:
// classes for new kinds of nodes, and lists derived from a snapshot. It starts no
// goroutine.
package policy
