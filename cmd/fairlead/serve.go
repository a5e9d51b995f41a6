package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/cmd/fairlead/cli"
)

// serve is the command that runs the service until it is told to stop. The
// global flag --config names its configuration.
func serve(cli.Build) *cobra.Command {
	return &cobra.Command{
		Use:     "serve",
		Short:   "Run the service",
		Example: "  fairlead serve --config /etc/fairlead/config.yaml",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("this build has no service; use a later one")
		},
	}
}
