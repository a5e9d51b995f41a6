package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/config"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/headscale"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/secrets"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
	"github.com/fairlead-mesh/fairlead/internal/wire"
)

// HeadscaleImport says what to import from Headscale.
type HeadscaleImport struct {
	// From is the path of Headscale's configuration. SQLite or Postgres, if set, replaces the database in it.
	From     string
	SQLite   string
	Postgres headscale.Postgres
	// Apply imports. Without it, the import is only checked.
	Apply bool
	// Compare is a directory with maps that Headscale has written. They are compared instead of importing.
	Compare string
	// KeepWayBack keeps Headscale's hashes of keys after their first use, until CloseWayBack.
	KeepWayBack bool
	// Progress is called before each step.
	Progress func(step string)
}

// HeadscaleReport is the result of an import or of its check.
type HeadscaleReport struct {
	Source, Version                     string
	Users, Nodes, PreAuthKeys, APIKeys  int
	Policy                              bool
	Repairs, Refusals, Policies, Config []string
	// Comparison is set if maps were compared.
	Comparison *HeadscaleComparison
	// Digest identifies what is imported, or is empty if that is refused.
	Digest                  string
	Applied                 bool
	Added, Changed, Deleted int
}

// ImportHeadscale reads the mesh of a Headscale server and, if asked and nothing speaks against it, imports it into
// the configured database in one commit. It never changes what belongs to Headscale.
func ImportHeadscale(ctx context.Context, c *config.Config, in HeadscaleImport) (r HeadscaleReport, err error) {
	in.Progress("Reading the database of Headscale")
	src, err := in.read(ctx, c)
	if err != nil {
		return r, err
	}
	r.Source, r.Config = src.where.String(), src.warnings
	old, plan, now := src.config, src.plan, src.now
	r.Version, r.Repairs, r.Refusals = plan.Version, plan.Repairs, plan.Refusals
	r.Users, r.Nodes, r.PreAuthKeys, r.APIKeys = len(plan.Users), len(plan.Nodes), len(plan.PreAuthKeys), len(plan.APIKeys)
	whole := importOf(plan)
	whole.KeepWayBack = in.KeepWayBack
	if err := in.policyInto(&whole, c, old, &r); err != nil {
		return r, err
	}
	if plan.TaggedInGroups && strings.Contains(whole.Policy, `"group:`) {
		r.Config = append(r.Config, "policy: in Headscale before 0.26, a group also contains the devices with tags of its members; here it does not, so add these tags to the rules if necessary")
	}
	in.Progress("Checking the import")
	r.check(whole, c, now)
	keys := r.keyFiles(&whole, c, old)
	switch {
	case len(r.Refusals)+len(r.Policies) > 0:
		return r, nil
	case in.Compare != "":
		in.Progress("Comparing the maps in " + in.Compare)
		r.Comparison, err = compareMaps(in.Compare, whole, c, now)
		return r, oneLine(err)
	case !in.Apply:
		return r, nil
	}
	in.Progress(fmt.Sprintf("Importing %d nodes", r.Nodes))
	for _, k := range keys {
		if err := k.copy(); err != nil {
			return r, err
		}
	}
	done, err := applyImport(ctx, c, whole)
	if err != nil {
		for _, k := range keys { // a server that starts here must not use a key that does not belong to its database
			err = errors.Join(err, os.Remove(k.to))
		}
		return r, oneLine(err)
	}
	r.Applied, r.Added, r.Changed, r.Deleted = true, done.Added, done.Changed, done.Deleted
	return r, nil
}

// headscaleSource is a Headscale installation.
type headscaleSource struct {
	config   headscale.Config
	warnings []string
	where    sqlstore.Location
	plan     *headscale.Plan
	now      mesh.Time
}

// ReadHeadscale reads what an import would create, with the policy that Headscale uses. It changes nothing.
func ReadHeadscale(ctx context.Context, c *config.Config, in HeadscaleImport) (*headscale.Plan, error) {
	src, err := in.read(ctx, c)
	if err != nil {
		return nil, err
	}
	if path := src.config.PolicyFile; path != "" {
		text, err := readLimited(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read the policy of Headscale: %w", err)
		}
		src.plan.Policy = string(text)
	}
	return src.plan, nil
}

func (in HeadscaleImport) read(ctx context.Context, c *config.Config) (src headscaleSource, err error) {
	text, err := os.ReadFile(in.From)
	if err != nil {
		return src, fmt.Errorf("cannot read the configuration of Headscale: %w", err)
	}
	old, err := headscale.ParseConfig(text)
	if err != nil {
		return src, fmt.Errorf("%s: %w", in.From, err)
	}
	src.config, src.now = in.located(old), mesh.TimeOf(time.Now())
	src.warnings = configWarnings(in.From, c, src.config)
	src.where = sqlstore.Location{SQLite: src.config.SQLite}
	if src.config.SQLite == "" {
		p := src.config.Postgres
		src.where.Postgres = sqlstore.PostgresConfig{Host: p.Host, Port: p.Port, Name: p.Name, User: p.User, Pass: p.Pass, SSLMode: p.SSLMode}
	}
	tables, err := readHeadscale(ctx, src.where)
	if err != nil {
		return src, oneLine(err)
	}
	src.plan = headscale.Map(tables, headscale.Options{V4: c.Prefixes.V4, V6: c.Prefixes.V6, OldV4: src.config.V4, OldV6: src.config.V6, Now: src.now})
	if long := src.plan.LongName; long != "" {
		short, _, _ := strings.Cut(long, ".")
		src.warnings = append(src.warnings, fmt.Sprintf("dns.base_domain: DNS names do not contain the name of the user: %s.%s becomes %s.%[2]s", long, c.DNS.BaseDomain, short))
	}
	return src, nil
}

// readHeadscale reads the tables of a Headscale database.
func readHeadscale(ctx context.Context, where sqlstore.Location) (headscale.Tables, error) {
	rows, err := sqlstore.ReadTables(ctx, where, headscale.TableNames()...)
	tables := headscale.Tables{}
	for name, all := range rows {
		tables[name] = []headscale.Row{}
		for _, row := range all {
			tables[name] = append(tables[name], row)
		}
	}
	return tables, err
}

// located returns a configuration with the database of the import, and with absolute paths. Headscale resolves relative
// paths from the directory in which it starts, which is usually that of its configuration.
func (in HeadscaleImport) located(c headscale.Config) headscale.Config {
	for _, path := range []*string{&c.SQLite, &c.NoiseKey, &c.RelayKey, &c.PolicyFile} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(filepath.Dir(in.From), *path)
		}
	}
	switch {
	case in.SQLite != "":
		c.SQLite = in.SQLite
	case in.Postgres.Host != "":
		c.SQLite, c.Postgres = "", in.Postgres
	}
	return c
}

// configWarnings returns which settings of Headscale have another meaning here, and which differ between both servers.
func configWarnings(path string, c *config.Config, old headscale.Config) (lines []string) {
	stock, err := config.Load(path, nil)
	var problems config.Problems
	switch {
	case errors.As(err, &problems):
		for _, p := range problems {
			lines = append(lines, p.String())
		}
	case err == nil:
		for _, p := range stock.Warnings {
			lines = append(lines, p.String())
		}
	}
	for _, s := range []struct{ key, old, own string }{
		{"server_url", strings.TrimSuffix(old.ServerURL, "/"), c.ServerURL},
		{"dns.base_domain", strings.TrimSuffix(old.BaseDomain, "."), c.DNS.BaseDomain},
	} {
		if s.old != "" && s.old != s.own {
			lines = append(lines, fmt.Sprintf("%s is %q here and %q in the configuration of Headscale; clients expect the latter", s.key, s.own, s.old))
		}
	}
	for _, s := range []struct {
		key, family string
		old, own    netip.Prefix
	}{{"prefixes.v4", "IPv4", old.V4, c.Prefixes.V4}, {"prefixes.v6", "IPv6", old.V6, c.Prefixes.V6}} {
		if !s.old.IsValid() && s.own.IsValid() {
			lines = append(lines, fmt.Sprintf("%s is not set in the configuration of Headscale, so its nodes have no %s addresses; here they get addresses in %s", s.key, s.family, s.own))
		}
	}
	return lines
}

func importOf(p *headscale.Plan) control.Import {
	whole := control.Import{Users: p.Users, PreAuthKeys: p.PreAuthKeys, APIKeys: p.APIKeys, Policy: p.Policy}
	for _, n := range p.Nodes {
		whole.Nodes = append(whole.Nodes, control.ImportedNode{
			Node: n.Node, Host: wire.StoredHost(n.HostInfo), Approved: n.Approved, AskedTags: n.AskedTags, Net: n.Net, LastSeen: n.LastSeen,
		})
	}
	return whole
}

// maxPolicyFile is far above any real policy.
const maxPolicyFile = 16 << 20

// policyInto adds the policy of Headscale, which is in a file or in its database.
func (in HeadscaleImport) policyInto(whole *control.Import, c *config.Config, old headscale.Config, r *HeadscaleReport) error {
	whole.ProviderGroups = len(c.OIDC.All()) > 0
	if old.PolicyFile != "" {
		text, err := readLimited(old.PolicyFile)
		if err != nil {
			return fmt.Errorf("cannot read the policy of Headscale: %w", err)
		}
		whole.Policy = string(text)
	}
	r.Policy = whole.Policy != ""
	if own := policyFile(c.Policy); own != "" {
		whole.PolicyElsewhere = true
		text, err := readLimited(own)
		switch {
		case err != nil:
			r.Policies = append(r.Policies, "policy.path: "+err.Error())
		case string(text) != whole.Policy:
			r.Config = append(r.Config, fmt.Sprintf("policy.path: %s differs from the policy of Headscale and will be used", own))
			whole.Policy = string(text)
		}
	}
	return nil
}

func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPolicyFile+1))
	if err == nil && len(text) > maxPolicyFile {
		err = fmt.Errorf("%s is larger than %d MiB", path, maxPolicyFile>>20)
	}
	return text, err
}

// check tries the import on an empty mesh.
func (r *HeadscaleReport) check(whole control.Import, c *config.Config, now mesh.Time) {
	reserved := mesh.ReservedFor(c.Prefixes.V4, c.Prefixes.V6)
	err := whole.Check(reserved, now)
	if err == nil {
		r.Digest, err = whole.Digest(reserved)
	}
	var bad *control.BadPolicy
	switch {
	case errors.As(err, &bad):
		for _, p := range bad.Problems {
			r.Policies = append(r.Policies, p.String())
		}
		for _, f := range bad.Failures {
			r.Policies = append(r.Policies, f.Text)
		}
	case err != nil:
		r.Refusals = append(r.Refusals, err.Error())
	}
}

// keyFile is a private key to copy.
type keyFile struct {
	to   string
	text []byte
}

// keyFiles returns the key files that the new server lacks.
func (r *HeadscaleReport) keyFiles(whole *control.Import, c *config.Config, old headscale.Config) (files []keyFile) {
	text, err := os.ReadFile(old.NoiseKey)
	var noise key.MachinePrivate
	if err == nil {
		err = noise.UnmarshalText(bytes.TrimSpace(text))
	}
	if err != nil {
		r.Refusals = append(r.Refusals, fmt.Sprintf("noise.private_key_path of Headscale (%s) cannot be read, and clients accept no other key: %v", old.NoiseKey, err))
		return nil
	}
	whole.Noise = noise.Public()
	for _, f := range []struct {
		setting, to string
		text        []byte
		must        bool
	}{{"noise.private_key_path", c.Noise.PrivateKeyPath, text, true}, {"derp.server.private_key_path", c.DERP.Server.PrivateKeyPath, readable(old.RelayKey), false}} {
		if len(f.text) == 0 || f.to == "" {
			continue
		}
		own, err := os.ReadFile(f.to)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			files = append(files, keyFile{f.to, f.text})
		case err != nil:
			r.Refusals = append(r.Refusals, fmt.Sprintf("%s: %v", f.setting, err))
		case bytes.Equal(bytes.TrimSpace(own), bytes.TrimSpace(f.text)):
		case f.must:
			r.Refusals = append(r.Refusals, fmt.Sprintf("%s: %s contains another key than that of Headscale, which clients would not accept; remove the file", f.setting, f.to))
		default:
			r.Config = append(r.Config, fmt.Sprintf("%s: %s contains another key than that of Headscale and will be used", f.setting, f.to))
		}
	}
	return files
}

// readable returns the content of a file, or nothing if it cannot be read.
func readable(path string) []byte {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return text
}

func (k keyFile) copy() error {
	if err := os.MkdirAll(filepath.Dir(k.to), 0o750); err != nil {
		return err
	}
	return secrets.CreateFile(k.to, bytes.TrimSpace(k.text))
}

// applyImport commits an import.
func applyImport(ctx context.Context, c *config.Config, whole control.Import) (done control.Imported, err error) {
	err = asReplica(ctx, c, "fairlead import headscale", func(s *service, a mesh.Actor) (err error) {
		done, err = control.ImportMesh(ctx, s.ledger, a, whole)
		return err
	})
	return done, err
}

// CloseWayBack forgets the hashes that Headscale needs of keys that have been used here, and returns how many keys there were.
func CloseWayBack(ctx context.Context, c *config.Config) (forgotten int, err error) {
	if err := mustExist(c); err != nil {
		return 0, err
	}
	err = asReplica(ctx, c, "fairlead import close", func(s *service, a mesh.Actor) (err error) {
		forgotten, err = control.CloseWayBack(ctx, s.ledger, a)
		return err
	})
	return forgotten, oneLine(err)
}

// mustExist fails if there is no database. Opening it would create one.
func mustExist(c *config.Config) error {
	if c.Database.Type != "sqlite" {
		return nil
	}
	if _, err := os.Stat(c.Database.SQLite.Path); err != nil {
		return fmt.Errorf("cannot open the database: %w", err)
	}
	return nil
}
