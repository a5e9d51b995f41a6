// Package deploy contains the files for installations by hand, which fairlead setup installs.
package deploy

import _ "embed"

// ServerUnit is the systemd unit of the server.
//
//go:embed fairlead.service
var ServerUnit []byte
