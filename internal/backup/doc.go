// Package backup copies a whole database: into a file, from a file, or from one
// engine into the other. All three go through one logical form, rows of tables,
// in which the engines agree; what is specific to an engine is in sqlstore.
//
// A backup is JSON, one value to a line, compressed with zstd and, if asked
// for, encrypted with age. A header says what it is of, then come key files,
// then each table with its rows, and at the end counts and checksums, without
// which it is recognised as cut. Rows are copied as they are stored: keys stay
// hashes, and what is sealed stays sealed.
//
// A key file is one beside the database that it is of little use without. A sum
// is the number of rows of a table and their checksum.
//
// It does not know what rows mean, asks nobody, and starts no goroutine.
package backup
