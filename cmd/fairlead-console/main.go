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

  serve    serve the console (without a command too)
  health   exit with 0 when a running console answers that it is well
  version  print the version

The configuration is FILE, else the one FAIRLEAD_CONSOLE_CONFIG names, else /etc/fairlead/console.yaml.
FAIRLEAD_CONSOLE_ and the name of a key in upper case wins over the file, such as FAIRLEAD_CONSOLE_COOKIE_SECRET;
with _FILE behind it, it names a file that holds the value.
`

var errUsage = errors.New("wrong usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "fairlead-console:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("fairlead-console", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	path := flags.String("config", cmp.Or(os.Getenv("FAIRLEAD_CONSOLE_CONFIG"), "/etc/fairlead/console.yaml"), "")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		_, err := fmt.Fprint(stdout, usage)
		return err
	} else if err != nil || flags.NArg() > 1 {
		return errUsage
	}
	command := cmp.Or(flags.Arg(0), "serve")
	if command == "version" {
		_, err := fmt.Fprintln(stdout, version)
		return err
	}
	if command != "serve" && command != "health" {
		return errUsage
	}
	config, err := bff.LoadConfig(*path, os.Environ())
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
