// Package config reads the service's configuration file, applies environment
// overrides and defaults, and reports every problem at once with its place.
//
// It holds values only. It opens no database, listens on nothing and checks no
// file other than the configuration and the secret files it names; whether an
// address can be bound or a path written is found out by whoever uses it.
//
// A key is the dotted path of one setting, such as database.postgres.host. A
// problem is one thing that must be changed before the service can start; a
// warning is one thing that is accepted but probably not meant.
//
// The package imports nothing else of this module and starts no goroutine.
package config
