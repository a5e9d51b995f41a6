// Package spelling finds the name that somebody probably meant. It is not a
// search: names are compared by their letters alone.
package spelling
