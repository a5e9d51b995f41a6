// Package config reads the server's configuration file, applies environment overrides and defaults, and
// reports all problems at once, each with its position.
//
// It holds values only. It opens no database, listens on nothing and checks no file other than the
// configuration and the secret files it names. Whether an address can be bound or a path written is checked
// by the packages that use them.
//
// A key is the dotted path of one setting, such as database.postgres.host. A problem must be fixed before the
// server can start; a warning is about something that is accepted but probably a mistake.
//
// It imports no other package of this module and starts no goroutine.
package config
