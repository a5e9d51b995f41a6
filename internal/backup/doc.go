// Package backup copies a whole database: into a file, from a file, or from one engine into the other. All
// three use one logical form, rows of tables, which is the same for both engines; everything specific to an
// engine is in sqlstore.
//
// A backup is JSON, one value per line, compressed with zstd and optionally encrypted with age. A header
// describes it, then come key files, then each table with its rows, and at the end counts and checksums,
// without which it is recognized as truncated. Rows are copied as they are stored: keys stay hashed, and
// sealed values stay sealed.
//
// A key file is a file outside the database without which the database is of little use. A sum is the number
// of rows of a table and their checksum.
//
// The package does not know what rows mean, is not interactive, and starts no goroutine.
package backup
