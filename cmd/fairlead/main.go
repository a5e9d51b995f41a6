package main

import (
	"context"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/fairlead-mesh/fairlead/cmd/fairlead/cli"
)

// Stamped by the linker.
var (
	version   = "dev"
	commit    = "unknown"
	buildTime = "unknown"
)

func main() {
	build := cli.Build{Version: version, Commit: commit, Time: buildTime}
	root := cli.New(cli.Env{
		Stdin:    os.Stdin,
		Stdout:   os.Stdout,
		Stderr:   os.Stderr,
		Terminal: term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd())),
		Environ:  os.Environ(),
		Now:      time.Now,
		Build:    build,
	})
	root.AddCommand(serve(build))
	os.Exit(cli.Execute(context.Background(), root, os.Args[1:]))
}
