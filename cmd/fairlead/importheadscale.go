package main

import (
	"context"

	"github.com/fairlead-mesh/fairlead/cmd/fairlead/cli"
	"github.com/fairlead-mesh/fairlead/internal/app"
	"github.com/fairlead-mesh/fairlead/internal/config"
	"github.com/fairlead-mesh/fairlead/internal/headscale"
)

// importHeadscale imports from Headscale for package cli, which does not open databases itself.
func importHeadscale(ctx context.Context, c *config.Config, in cli.HeadscaleImport) (cli.HeadscaleReport, error) {
	p := in.Postgres
	r, err := app.ImportHeadscale(ctx, c, app.HeadscaleImport{
		From: in.From, SQLite: in.SQLite, Apply: in.Apply, Compare: in.Compare, KeepWayBack: in.KeepWayBack, Progress: in.Progress,
		Postgres: headscale.Postgres{Host: p.Host, Port: p.Port, Name: p.Name, User: p.User, Pass: p.Pass, SSLMode: p.SSLMode},
	})
	out := cli.HeadscaleReport{
		Source: r.Source, Version: r.Version, Users: r.Users, Nodes: r.Nodes, PreAuthKeys: r.PreAuthKeys, APIKeys: r.APIKeys, Policy: r.Policy,
		Repairs: r.Repairs, Refusals: r.Refusals, PolicyProblems: r.Policies, Configuration: r.Config, Digest: r.Digest,
		Applied: r.Applied, Added: r.Added, Changed: r.Changed, Deleted: r.Deleted,
	}
	if c := r.Comparison; c != nil {
		out.Comparison = &cli.HeadscaleComparison{Nodes: c.Nodes, Equal: c.Equal, Different: c.Different, Missing: c.Missing}
		for _, d := range c.Differences {
			out.Comparison.Differences = append(out.Comparison.Differences, cli.NodeDifference(d))
		}
		for _, k := range c.Known {
			out.Comparison.Known = append(out.Comparison.Known, cli.KnownDifference(k))
		}
	}
	return out, err
}

// exportHeadscale exports to Headscale for package cli.
func exportHeadscale(ctx context.Context, c *config.Config, path string) (cli.HeadscaleExport, error) {
	r, err := app.ExportHeadscale(ctx, c, path)
	return cli.HeadscaleExport(r), err
}
