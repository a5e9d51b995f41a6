// Package spelling finds the name that was probably meant. It is not a search: it only compares the letters
// of names.
package spelling
