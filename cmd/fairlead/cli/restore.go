package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
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
		Short: "Restore the database from a backup",
		Long: `Restore a backup into the configured database. The backup can come from either
database engine and from an older version of fairlead. Stop every server that
uses the database first. If the restore fails, nothing is changed.

The database must be empty; --replace removes its contents first. Key files in
the backup are written to the paths in the configuration. With --replace, an
existing key file is kept with ".replaced" appended to its name.`,
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
			if _, err := os.Stat(c.Noise.PrivateKeyPath); errors.Is(err, fs.ErrNotExist) && c.SecretsKeyFile == "" {
				t.note("Warning: the backup contains no keys. Before you start the server, copy the old server's noise.private_key_path to %s", c.Noise.PrivateKeyPath)
			}
			return t.show(backupResult{args[0], s}, fmt.Sprintf("Restored into %s: %s\n", to.Database, holds(s)))
		},
	}
	addIdentity(cmd, &identities)
	replace, force = replaceable(cmd)
	return cmd
}

func replaceable(cmd *cobra.Command) (replace, force *bool) {
	return cmd.Flags().Bool("replace", false, "remove the contents of the target database first"), confirmable(cmd)
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
		Short: "Copy the database to another one",
		Long: `Copy the configured database to another one, for example from SQLite to
PostgreSQL, and compare both. The original database is not changed.

Stop every server that uses either database first. Afterwards, change the
configuration and start the server. Nodes keep their addresses, keys and names,
and notice only the interruption.

--to names the target database: a configuration file that uses it, sqlite:PATH,
or postgres://USER:PASSWORD@HOST:PORT/NAME. Other users of this machine can see
a password on the command line while the command runs.`,
		Example: `  fairlead db move --to /etc/fairlead/postgres.yaml
  fairlead db move --to sqlite:/var/lib/fairlead/db.sqlite`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if where == "" {
				return wrongUsage("missing flag --to")
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
			return t.show(s, fmt.Sprintf("Copied %s to %s: %s. Both databases are identical\nBefore you start the server, change the database section of the configuration to the new one\n", from, other, holds(s)))
		},
	}
	cmd.Flags().StringVar(&where, "to", "", "target `database`: a configuration file, sqlite:PATH or a postgres:// URL")
	replace, force = replaceable(cmd)
	return cmd
}

// otherDatabase parses the value of --to. The environment is ignored, because it describes the database to move
// from.
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
		return backup.Database{}, wrongUsage("invalid URL in --to: use %s", want)
	}
	p := backup.Postgres{Host: u.Hostname(), Name: strings.TrimPrefix(u.Path, "/"), User: u.User.Username(), SSLMode: u.Query().Get("sslmode")}
	p.Pass, _ = u.User.Password()
	if port := u.Port(); port != "" {
		if p.Port, err = strconv.Atoi(port); err != nil {
			return backup.Database{}, wrongUsage("invalid port in --to: use %s", want)
		}
	}
	if p.Host == "" || p.Name == "" {
		return backup.Database{}, wrongUsage("missing host or database name in --to: use %s", want)
	}
	return backup.Database{Postgres: p}, nil
}
