// Package sqlstore stores the tables and the log in SQLite, for one process, or in PostgreSQL, for one or
// more. Rows are mapped in one place for both engines: record.go binds structs to columns, schema.go says
// which struct is stored where, and load.go reads them. The differences between the engines are in
// postgres.go with pool.go, and in sqlite.go. Raw, in raw.go and tables.go, is for copying a whole database:
// it has tables and rows but no log.
//
// It handles rows and transactions, not their meaning: it imports store and mesh and never policy, ledger or
// control. Watch is the only method that keeps running; the caller owns it.
package sqlstore
