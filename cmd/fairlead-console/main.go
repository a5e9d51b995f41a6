package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/fairlead-mesh/fairlead/console/bff"
	"github.com/fairlead-mesh/fairlead/console/web"
)

// Set by the linker.
var version = "dev"

const usage = `Usage: fairlead-console [--config FILE] [serve|health|version]

  serve    serve the console (default)
  health   exit with status 0 if the running console is healthy
  version  print the version

The configuration is read from FILE, or from the file that FAIRLEAD_CONSOLE_CONFIG names, or from
/etc/fairlead/console.yaml. Environment variables override it: FAIRLEAD_CONSOLE_ and the name of the key in
upper case, such as FAIRLEAD_CONSOLE_COOKIE_SECRET. With the suffix _FILE, a variable names a file that
contains the value.
`

// usageError is a mistake in how the program was called.
type usageError struct{ error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	var wrong usageError
	switch {
	case errors.As(err, &wrong):
		fmt.Fprintf(os.Stderr, "fairlead-console: %v\n%s", err, usage)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "fairlead-console:", err)
		os.Exit(1)
	}
}

// parse returns the command and the path of the configuration. Flags may come before or after the command.
func parse(args []string) (command, path string, err error) {
	flags := flag.NewFlagSet("fairlead-console", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&path, "config", cmp.Or(os.Getenv("FAIRLEAD_CONSOLE_CONFIG"), "/etc/fairlead/console.yaml"), "")
	if err := flags.Parse(args); err != nil {
		return "", "", err
	}
	command = cmp.Or(flags.Arg(0), "serve")
	if flags.NArg() > 0 {
		if err := flags.Parse(flags.Args()[1:]); err != nil {
			return "", "", err
		}
	}
	if flags.NArg() > 0 {
		return "", "", fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return command, path, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	command, path, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, err := fmt.Fprint(stdout, usage)
		return err
	case err != nil:
		return usageError{err}
	case command == "version":
		_, err := fmt.Fprintln(stdout, version)
		return err
	case command != "serve" && command != "health":
		return usageError{fmt.Errorf("unknown command %q", command)}
	}
	config, err := bff.LoadConfig(path, os.Environ())
	if err != nil {
		return err
	}
	if command == "health" {
		return bff.Probe(ctx, config.ListenAddr)
	}
	server, err := bff.New(config, version, web.Bundle(), bff.NewLogger(stderr, config))
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
