// Package config reads the server's configuration file, applies environment overrides and defaults, and
// reports all problems at once, each with its position.
//
// It holds values only. It opens no database and no listener. Load reads no files other than the configuration
// and the secret files it names; Check also reads the certificate. Whether an address can be bound or a path
// written is checked by the packages that use them.
//
// A key is the dotted path of one setting, such as database.postgres.host. A problem must be fixed before the
// server can start; a warning is about something that is accepted but probably a mistake.
//
// From this module it imports only mesh and spelling. It starts no goroutine.
package config
