package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/fairlead-mesh/fairlead/internal/backup"
	"github.com/fairlead-mesh/fairlead/internal/config"
)

// backupOptions holds the options of backup.
type backupOptions struct {
	file       string
	recipients []string
	withKeys   bool
}

func (t *tool) backup() *cobra.Command {
	var b backupOptions
	cmd := alsoAlone(&cobra.Command{
		Use:   "backup",
		Short: "Back up the database to a file",
		Long: `Back up the whole database, SQLite or PostgreSQL, to one file. The backup is a
consistent snapshot, and the server can keep running. The command reads the
configured database, so run it on the server's machine as the user that runs
the server.

Without --file, the backup is written to standard output. A file is written
under a temporary name, verified, and then renamed: a file with the final name
is always complete.

Secrets in the database stay encrypted or hashed. The key files next to it, by
which clients and relays identify this server, are included only in an
encrypted backup or with --with-keys: anyone who has them can impersonate this
server.`,
		Example: `  fairlead backup --file /var/backups/fairlead-$(date +%F).backup
  fairlead backup --encrypt-to age1... --file /var/backups/fairlead.backup
  docker compose exec -T fairlead fairlead backup > fairlead.backup`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("with-keys") {
				b.withKeys = len(b.recipients) > 0
			}
			return t.makeBackup(cmd.Context(), b)
		},
	}, t.backupVerify())
	cmd.Flags().StringVar(&b.file, "file", "-", "write to this `file`; - means standard output")
	cmd.Flags().StringSliceVar(&b.recipients, "encrypt-to", nil, "encrypt to this age public `key` (age1...); repeat the flag for several")
	cmd.Flags().BoolVar(&b.withKeys, "with-keys", false, "include the key files (default: only with --encrypt-to)")
	complete(cmd, "encrypt-to", cobra.NoFileCompletions)
	return cmd
}

func (t *tool) makeBackup(ctx context.Context, b backupOptions) error {
	recipients, err := backup.Recipients(b.recipients)
	if err != nil {
		return usageError{err}
	}
	if width, _ := t.screen(); b.file == "-" && width > 0 {
		return wrongUsage("standard output is a terminal: use --file, or redirect the output to a file or another command")
	}
	c, err := t.ownConfig()
	if err != nil {
		return err
	}
	o := backup.Options{Product: t.Build.Version, Now: t.Now(), Recipients: recipients}
	if b.withKeys {
		if o.KeyFiles, err = backup.ReadKeyFiles(keyPaths(c)); err != nil {
			return err
		}
	}
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	if b.file == "-" {
		made, err := backup.Write(ctx, databaseOf(c), t.Stdout, o)
		if err == nil {
			fmt.Fprint(t.Stderr, notInIt(c, made))
		}
		return err
	}
	var done func()
	o.Progress, done = t.progress()
	var made *backup.Summary
	err = backup.Create(b.file, func(w io.Writer) (err error) {
		made, err = backup.Write(ctx, databaseOf(c), w, o)
		return err
	}, func(r io.Reader) error {
		if len(recipients) > 0 {
			return nil // it can be read only with the identity
		}
		_, err := backup.Verify(r, nil)
		return err
	})
	done()
	if err != nil {
		return err
	}
	text := fmt.Sprintf("Wrote %s: %s\n", b.file, holds(made)) + notInIt(c, made)
	return t.show(backupResult{b.file, made}, text)
}

// backupResult is the output of backup.
type backupResult struct {
	File string `json:"file"`
	*backup.Summary
}

// holds describes the contents of a backup in one line.
func holds(s *backup.Summary) string {
	text := fmt.Sprintf("revision %d, %s in %s", s.Rev, count(int(s.Rows()), "row"), count(len(s.Tables), "table"))
	if len(s.KeyFiles) > 0 {
		text += ", and " + strings.Join(s.KeyFiles, ", ")
	}
	return text
}

// notInIt lists the existing key files that are missing from a backup.
func notInIt(c *config.Config, s *backup.Summary) string {
	var left []string
	paths := keyPaths(c)
	for _, key := range slices.Sorted(maps.Keys(paths)) {
		if _, err := os.Stat(paths[key]); err == nil && !slices.Contains(s.KeyFiles, key) {
			left = append(left, paths[key])
		}
	}
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf("Not included, so back them up separately: %s\n", strings.Join(left, ", "))
}

func (t *tool) backupVerify() *cobra.Command {
	var identities []string
	cmd := &cobra.Command{
		Use:   "verify <file>",
		Short: "Verify a backup and show what it contains",
		Long: `Verify a backup and show what it contains. The exit status is 0 if it is intact.
Neither a server nor a configuration is needed.`,
		Example: `  fairlead backup verify fairlead.backup
  fairlead backup verify fairlead.backup --identity key.txt
  ssh store cat fairlead.backup | fairlead backup verify -`,
		Args: takes("file"),
		RunE: func(_ *cobra.Command, args []string) error {
			in, keys, err := t.openBackup(args[0], identities)
			if err != nil {
				return err
			}
			defer in.Close()
			s, err := backup.Verify(in, keys)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return t.show(backupResult{args[0], s}, fmt.Sprintf("%s is intact: created by fairlead %s from %s on %s, %s\n",
				args[0], s.Product, s.Engine, timeText(s.Time), holds(s)))
		},
	}
	addIdentity(cmd, &identities)
	return cmd
}

func addIdentity(cmd *cobra.Command, into *[]string) {
	cmd.Flags().StringSliceVar(into, "identity", nil, "`file` with the age identity that decrypts the backup, as written by age-keygen")
}

// openBackup opens a backup, or standard input for "-", and reads the identities for it.
func (t *tool) openBackup(name string, identityFiles []string) (io.ReadCloser, []age.Identity, error) {
	var all []age.Identity
	for _, file := range identityFiles {
		f, err := os.Open(file)
		if err != nil {
			return nil, nil, err
		}
		list, err := backup.Identities(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, list...)
	}
	if name == "-" {
		return io.NopCloser(t.Stdin), all, nil
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w: pipe it in as a user who can read it, with - as the file name: sudo cat %s | fairlead … -", err, name)
	}
	return f, all, err
}

// ownConfig returns the configuration of the server on this machine.
func (t *tool) ownConfig() (*config.Config, error) {
	if t.server != "" {
		return nil, wrongUsage("this command opens the database directly; run it on the server's machine, without --server")
	}
	t.warnOfOverrides()
	return config.Load(t.configFile, t.Environ)
}

// warnOfOverrides names the variables that select another database than the file in --config. They are easily forgotten
// in a shell, and the database that they select may be the one in production.
func (t *tool) warnOfOverrides() {
	if t.configFile == "" {
		return
	}
	for _, entry := range t.Environ {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "FAIRLEAD_DATABASE_") && value != "" {
			t.note("Warning: %s in the environment overrides %s", name, t.configFile)
		}
	}
}

func databaseOf(c *config.Config) backup.Database {
	if c.Database.Type == "sqlite" {
		return backup.Database{SQLite: c.Database.SQLite.Path}
	}
	p := c.Database.Postgres
	return backup.Database{Postgres: backup.Postgres{
		Host: strings.Join(p.Hosts, ","), Port: p.Port, Name: p.Name, User: p.User, Pass: string(p.Pass), SSLMode: p.SSLMode,
	}}
}

// keyPaths returns the paths of the key files that belong to a database.
func keyPaths(c *config.Config) map[string]string {
	return map[string]string{
		"noise.private_key_path":       c.Noise.PrivateKeyPath,
		"secrets_key_file":             c.SecretsKeyFile,
		"derp.server.private_key_path": c.DERP.Server.PrivateKeyPath,
	}
}

// mustOwn prevents root from creating files that the server could not open.
func mustOwn(paths ...string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, path := range paths {
		info, err := os.Stat(filepath.Dir(path))
		if err != nil || path == "" {
			continue // it does not exist yet
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 {
			return fmt.Errorf("%s belongs to another user, who could not open files that root creates there: run this command as that user, for example: setpriv --reuid=%d --regid=%d --clear-groups fairlead …",
				filepath.Dir(path), owner.Uid, owner.Gid)
		}
	}
	return nil
}

// errNoDatabases is the error of a binary whose commands cannot open databases.
var errNoDatabases = errors.New("this binary cannot open databases")

// onOwnDatabase runs a command that opens the configured database, which the caller must own. possible is whether
// this binary can do that.
func (t *tool) onOwnDatabase(cmd *cobra.Command, possible bool, run func(context.Context, *config.Config) error) error {
	c, err := t.ownConfig()
	if err != nil {
		return err
	}
	if err := mustOwn(databaseOf(c).SQLite); err != nil {
		return err
	}
	if !possible {
		return errNoDatabases
	}
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	return run(ctx, c)
}

// untilInterrupted cancels the context at the first signal, so that the command can clean up. The second
// signal ends the process.
func untilInterrupted(ctx context.Context) (context.Context, func()) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// progress shows a person which table is being copied; done clears that line.
func (t *tool) progress() (show backup.Progress, done func()) {
	if !t.Terminal || !t.forPeople() {
		return nil, func() {}
	}
	var last time.Time
	show = func(table string, rows int64) {
		if now := t.Now(); now.Sub(last) > 100*time.Millisecond {
			last = now
			fmt.Fprintf(t.Stderr, "\r\x1b[K%s: %s", table, count(int(rows), "row"))
		}
	}
	return show, func() { fmt.Fprint(t.Stderr, "\r\x1b[K") }
}
