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
	r, err := app.ImportHeadscale(ctx, c, headscaleImport(in))
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

func headscaleImport(in cli.HeadscaleImport) app.HeadscaleImport {
	p := in.Postgres
	return app.HeadscaleImport{
		From: in.From, SQLite: in.SQLite, Apply: in.Apply, Compare: in.Compare, KeepWayBack: in.KeepWayBack, Progress: in.Progress,
		Postgres: headscale.Postgres{Host: p.Host, Port: p.Port, Name: p.Name, User: p.User, Pass: p.Pass, SSLMode: p.SSLMode},
	}
}

// readHeadscale reads the database of Headscale for package cli.
func readHeadscale(ctx context.Context, c *config.Config, in cli.HeadscaleImport) (out cli.HeadscaleNetwork, err error) {
	plan, err := app.ReadHeadscale(ctx, c, headscaleImport(in))
	if err != nil {
		return out, err
	}
	out = cli.HeadscaleNetwork{Users: map[string]string{}, PreAuthKeys: map[string]string{}, APIKeys: map[string]string{}, Policy: plan.Policy}
	for _, u := range plan.Users {
		out.Users[u.ID.String()] = u.Name
	}
	for _, k := range plan.PreAuthKeys {
		out.PreAuthKeys[k.ID.String()] = ""
	}
	for _, k := range plan.APIKeys {
		out.APIKeys[k.ID.String()] = k.Prefix
	}
	for _, n := range plan.Nodes {
		node := cli.HeadscaleNode{
			ID: n.ID.String(), Name: n.Name, NodeKey: n.NodeKey.String(), Tags: n.Tags, Ephemeral: n.Ephemeral, LastSeen: max(n.LastSeen, n.CreatedAt).Time(),
		}
		for _, p := range n.Approved {
			node.Approved = append(node.Approved, p.String())
		}
		out.Nodes = append(out.Nodes, node)
	}
	return out, nil
}
