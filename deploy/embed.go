// Package deploy contains the files for installations by hand, which fairlead setup installs.
package deploy

import _ "embed"

// ServerUnit is the systemd unit of the server.
//
//go:embed fairlead.service
var ServerUnit []byte

// ExampleConfig is the configuration that packages install. A server that uses it has not been configured yet.
//
//go:embed config.example.yaml
var ExampleConfig []byte
