package app

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-mesh/fairlead/internal/config"
	"github.com/fairlead-mesh/fairlead/internal/headscale"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
)

// HeadscaleExport is the result of an export to Headscale.
type HeadscaleExport struct {
	File, Version                      string
	Users, Nodes, PreAuthKeys, APIKeys int
	Policy                             bool
	// Digest is that of an import of the file.
	Digest string
	// Lost lists what Headscale cannot store.
	Lost []string
}

// ExportHeadscale writes the mesh in the configured database to a new SQLite file with which Headscale starts.
func ExportHeadscale(ctx context.Context, c *config.Config, path string) (r HeadscaleExport, err error) {
	if r.File, err = filepath.Abs(path); err != nil {
		return r, err
	}
	if err := mustExist(c); err != nil {
		return r, err
	}
	s := &service{Options: Options{Config: c}, log: newLogger(io.Discard, c.Log), registry: prometheus.NewRegistry()}
	st, err := s.openStore(ctx)
	if err != nil {
		return r, oneLine(err)
	}
	defer st.Close()
	mine, err := st.Load(ctx)
	if err != nil {
		return r, oneLine(err)
	}
	policy := ""
	if p, ok := mine.Policy(); ok {
		policy = p.Text
	}
	if own := policyFile(c.Policy); own != "" {
		text, err := readLimited(own)
		if err != nil {
			return r, fmt.Errorf("policy.path: %w", err)
		}
		policy = string(text)
	}
	now := mesh.TimeOf(time.Now())
	out := headscale.Export(mine, policy, now)
	plan := headscale.Map(out.Tables, headscale.Options{V4: c.Prefixes.V4, V6: c.Prefixes.V6, Now: now})
	whole := importOf(plan)
	whole.ProviderGroups = len(c.OIDC.All()) > 0
	if r.Digest, err = whole.Digest(mesh.ReservedFor(c.Prefixes.V4, c.Prefixes.V6)); err != nil {
		return r, oneLine(err)
	}
	r.Version, r.Lost, r.Policy = headscale.ExportedVersion, append(out.Lost, plan.Repairs...), policy != ""
	r.Users, r.Nodes, r.PreAuthKeys, r.APIKeys = len(plan.Users), len(plan.Nodes), len(plan.PreAuthKeys), len(plan.APIKeys)
	var tables []sqlstore.Filling
	for _, name := range headscale.ExportedTables() {
		t := sqlstore.Filling{Name: name, Last: out.Last[name]}
		for _, row := range out.Tables[name] {
			t.Rows = append(t.Rows, row)
		}
		tables = append(tables, t)
	}
	return r, sqlstore.CreateFile(ctx, r.File, headscale.Schema(), tables)
}
