package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/cmd/fairlead/cli"
	"github.com/fairlead-mesh/fairlead/internal/app"
	"github.com/fairlead-mesh/fairlead/internal/config"
)

// serve returns the command that runs the server until it is told to stop. The global flag --config names its
// configuration.
func serve(build cli.Build) *cobra.Command {
	var newKey bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Run the server until it is stopped.

SIGTERM or SIGINT shuts it down gracefully: it reports itself as unhealthy,
finishes open requests and exits. A second signal stops it immediately. SIGHUP
reloads the policy file, if there is one. Other configuration changes need a
restart.

The server does not start without its private key, by which clients identify
it. The key is in a file next to the database, or encrypted in the database. If
it is lost for good, start once with --new-key. Users, nodes and addresses are
kept, but you must restart every client and give every webhook receiver its new
secret.`,
		Example: "  fairlead serve --config /etc/fairlead/config.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unexpected argument %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := cmd.Flags().GetString("config")
			if err != nil {
				return err
			}
			c, err := config.Load(path, os.Environ())
			if err != nil {
				return err
			}
			return app.Run(stopOnSignal(cmd.Context()), app.Options{
				Config: c, Log: os.Stderr, NewKey: newKey, Reload: hangups(), Build: app.Build{Version: build.Version, Commit: build.Commit, Time: build.Time},
			})
		},
	}
	cmd.Flags().BoolVar(&newKey, "new-key", false, "create a new private key if the server's key is lost")
	return cmd
}

// stopOnSignal cancels the context at the first signal and restores the default handling, so that a second
// signal ends the process. The handling is restored first, because the second signal may be sent as soon as
// the context ends.
func stopOnSignal(ctx context.Context) context.Context {
	signalled, release := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(signalled, func() {
		release()
		cancel()
	})
	return ctx
}

// hangups delivers SIGHUP, which then no longer ends the process.
func hangups() <-chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c
}
