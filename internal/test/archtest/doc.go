// Package archtest contains tests about the repository itself: which package may import which, and the shape
// of packages, files and functions. It is not a library; nothing imports it.
//
// A rule that gets in the way is changed here, in the commit that needs it, together with
// docs/ARCHITECTURE.md.
package archtest
