package cli

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/internal/backup"
	"github.com/fairlead-mesh/fairlead/internal/config"
)

func (t *tool) restore() *cobra.Command {
	var identities []string
	var replace, force *bool
	cmd := &cobra.Command{
		Use:   "restore <file>",
		Short: "Fill an empty database from a backup, while no server runs",
		Long: `Fill the database that the configuration names from a backup of either engine,
also of an older version of fairlead. Stop every server of that database first.
Either all of the backup is in the database afterwards, or nothing was changed.

The database must be empty, or given up with --replace. Key files in the backup
go where the configuration says; with --replace, one that is there is kept with
".replaced" after its name.`,
		Example: `  fairlead restore fairlead.backup
  fairlead restore fairlead.backup --identity key.txt --replace
  age --decrypt fairlead.backup | fairlead restore -`,
		Args: takes("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := t.ownConfig()
			if err != nil {
				return err
			}
			to := t.target(databaseOf(c), *replace, *force)
			to.KeyFiles = keyPaths(c)
			if err := mustOwn(c.Noise.PrivateKeyPath, to.SQLite); err != nil {
				return err
			}
			in, keys, err := t.openBackup(args[0], identities)
			if err != nil {
				return err
			}
			defer in.Close()
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			var done func()
			to.Progress, done = t.progress()
			s, err := backup.Restore(ctx, in, keys, to)
			done()
			if err != nil {
				return err
			}
			return t.show(backupResult{args[0], s}, fmt.Sprintf("Restored into %s: %s\n", to.Database, holds(s)))
		},
	}
	addIdentity(cmd, &identities)
	replace, force = replaceable(cmd)
	return cmd
}

func replaceable(cmd *cobra.Command) (replace, force *bool) {
	return cmd.Flags().Bool("replace", false, "remove all that the database holds"), confirmable(cmd)
}

// target returns a target that asks before the content of a database is removed.
func (t *tool) target(d backup.Database, replace, force bool) backup.Target {
	to := backup.Target{Database: d}
	if replace {
		to.Replace = func(c backup.Contents) error {
			t.note("Removing %s from %s", c, d)
			return t.confirm(force, fmt.Sprintf("Remove %s from %s?", c, d))
		}
	}
	return to
}

func (t *tool) db() *cobra.Command {
	return group(&cobra.Command{
		Use:     "db",
		Short:   "Move or repair the database",
		Example: "  fairlead db move --to new-config.yaml",
	}, t.dbMove(), t.dbRepairClock())
}

func (t *tool) dbMove() *cobra.Command {
	var where string
	var replace, force *bool
	cmd := &cobra.Command{
		Use:   "move",
		Short: "Copy the database into another one, also of the other engine",
		Long: `Copy the database that the configuration names into another one, from SQLite to
PostgreSQL or back, and compare both. The one that was copied stays as it is.

Stop every server of both databases first. Afterwards change the configuration
and start the server: nodes keep their addresses, keys and names, and notice
nothing but the pause.

--to names the other database: a configuration file whose database it is, or
sqlite:PATH, or postgres://USER:PASSWORD@HOST:PORT/NAME, which others on this
machine can see while the command runs.`,
		Example: `  fairlead db move --to /etc/fairlead/postgres.yaml
  fairlead db move --to sqlite:/var/lib/fairlead/db.sqlite`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if where == "" {
				return wrongUsage("--to is missing")
			}
			c, err := t.ownConfig()
			if err != nil {
				return err
			}
			from := databaseOf(c)
			other, err := t.otherDatabase(where)
			if err != nil {
				return err
			}
			if err := mustOwn(from.SQLite, other.SQLite); err != nil {
				return err
			}
			to := t.target(other, *replace, *force)
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			var done func()
			to.Progress, done = t.progress()
			s, err := backup.Move(ctx, from, to)
			done()
			if err != nil {
				return err
			}
			s.Product, s.Time = t.Build.Version, t.Now().UTC()
			return t.show(s, fmt.Sprintf("Moved %s to %s: %s; both hold the same\nSet database in the configuration to the new one before you start the server\n", from, other, holds(s)))
		},
	}
	cmd.Flags().StringVar(&where, "to", "", "the other `database`: a configuration file, sqlite:PATH or a postgres:// address")
	replace, force = replaceable(cmd)
	return cmd
}

// otherDatabase parses the value of --to. The environment is ignored, because it describes the database that
// is moved.
func (t *tool) otherDatabase(where string) (backup.Database, error) {
	if path, ok := strings.CutPrefix(where, "sqlite:"); ok {
		return backup.Database{SQLite: strings.TrimPrefix(path, "//")}, nil
	}
	if strings.HasPrefix(where, "postgres://") || strings.HasPrefix(where, "postgresql://") {
		return postgresAt(where)
	}
	environ := slices.DeleteFunc(slices.Clone(t.Environ), func(entry string) bool { return strings.HasPrefix(entry, "FAIRLEAD_DATABASE_") })
	c, err := config.Load(where, environ)
	if err != nil {
		return backup.Database{}, err
	}
	return databaseOf(c), nil
}

func postgresAt(address string) (backup.Database, error) {
	const want = "postgres://USER:PASSWORD@HOST:PORT/NAME?sslmode=MODE"
	u, err := url.Parse(address)
	if err != nil { // the error would show the password
		return backup.Database{}, wrongUsage("--to is no address as %s", want)
	}
	p := backup.Postgres{Host: u.Hostname(), Name: strings.TrimPrefix(u.Path, "/"), User: u.User.Username(), SSLMode: u.Query().Get("sslmode")}
	p.Pass, _ = u.User.Password()
	if port := u.Port(); port != "" {
		if p.Port, err = strconv.Atoi(port); err != nil {
			return backup.Database{}, wrongUsage("--to has no port as %s", want)
		}
	}
	if p.Host == "" || p.Name == "" {
		return backup.Database{}, wrongUsage("--to lacks the host or the name of the database: %s", want)
	}
	return backup.Database{Postgres: p}, nil
}
