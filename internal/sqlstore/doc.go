// Package sqlstore keeps the tables and the log in SQLite, for one process, or
// in PostgreSQL, for one or many. Rows are mapped in one place for both: rows.go
// writes them and load.go reads them. What differs between the engines is in
// postgres.go with pool.go, and in sqlite.go. Raw, in raw.go and tables.go, is for
// those who copy a database whole: it has tables and rows and no log.
//
// It knows rows and transactions, not what they mean: it imports store and
// mesh and never policy, ledger or control. Watch is the only method that
// keeps running; the caller owns it.
package sqlstore
