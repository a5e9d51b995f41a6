package main

import (
	"context"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/fairlead-mesh/fairlead/cmd/fairlead/cli"
	"github.com/fairlead-mesh/fairlead/internal/app"
)

// Set by the linker.
var (
	version   = "dev"
	commit    = "unknown"
	buildTime = "unknown"
)

func main() {
	build := cli.Build{Version: installedVersion(version), Commit: commit, Time: buildTime}
	root := cli.New(cli.Env{
		Stdin:    os.Stdin,
		Stdout:   os.Stdout,
		Stderr:   os.Stderr,
		Terminal: term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd())),
		Size:     screen,
		Environ:  os.Environ(),
		Now:      time.Now,
		Build:    build,

		Browse:      cli.OpenBrowser,
		RepairClock: repairClock,

		ImportHeadscale: importHeadscale,
		ReadHeadscale:   readHeadscale,
		ExportHeadscale: exportHeadscale,
		CloseWayBack:    app.CloseWayBack,
	})
	root.AddCommand(serve(build), relay(build))
	os.Exit(cli.Execute(context.Background(), root, os.Args[1:]))
}

// installedVersion returns the version of the module if the linker set none, as with go install.
func installedVersion(linked string) string {
	if info, ok := debug.ReadBuildInfo(); ok && linked == "dev" && strings.HasPrefix(info.Main.Version, "v") {
		return info.Main.Version
	}
	return linked
}

// screen returns the size of the terminal on stdout, or zeros if stdout is not a terminal.
func screen() (width, height int) {
	width, height, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0, 0
	}
	return width, height
}
