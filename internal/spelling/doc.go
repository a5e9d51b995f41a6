// Package spelling finds the known name that a misspelled one probably stands for. It compares only the
// spelling of names, not their meaning.
package spelling
