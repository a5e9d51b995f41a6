package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
)

// Database is the location of a database.
type Database = sqlstore.Location

// Postgres is the location of a PostgreSQL database.
type Postgres = sqlstore.PostgresConfig

// Progress is called from time to time with the number of copied rows of a table.
type Progress func(table string, rows int64)

// Options configures a backup.
type Options struct {
	Product    string // the version of this binary
	Now        time.Time
	KeyFiles   []KeyFile
	Recipients []age.Recipient // the backup is encrypted to each of them, if there are any
	Progress   Progress        // may be nil
}

// Write copies a consistent state of the database, which a running server may be using.
func Write(ctx context.Context, from Database, out io.Writer, o Options) (*Summary, error) {
	raw, err := sqlstore.OpenRaw(ctx, from, sqlstore.Look)
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	var s *Summary
	err = raw.View(ctx, func(v *sqlstore.View) error {
		if v.Schema == 0 {
			return errEmpty(from)
		}
		h := Header{
			Format: formatName, Version: formatVersion, Product: o.Product, Schema: v.Schema, Rev: v.Rev,
			Engine: raw.Engine(), Time: o.Now.UTC().Truncate(time.Second),
		}
		s, err = write(ctx, v, out, h, o)
		return err
	})
	return s, err
}

func errEmpty(from Database) error {
	return fmt.Errorf("%s has no Fairlead tables: check the database section of the configuration", from)
}

func write(ctx context.Context, v *sqlstore.View, out io.Writer, h Header, o Options) (*Summary, error) {
	var layers []io.Closer
	if len(o.Recipients) > 0 {
		sealed, err := age.Encrypt(out, o.Recipients...)
		if err != nil {
			return nil, err
		}
		out, layers = sealed, append(layers, sealed)
	}
	compressed, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(4<<20))
	if err != nil {
		return nil, err
	}
	layers = append(layers, compressed)
	w := newWriter(compressed)
	if o.Progress != nil {
		w.progress = o.Progress
	}
	r := &reader{header: h, files: o.KeyFiles}
	if err := w.value(h); err != nil {
		return nil, err
	}
	for _, f := range o.KeyFiles {
		if err := w.value(mark{File: &f}); err != nil {
			return nil, err
		}
	}
	if err := copyTables(ctx, v, w); err != nil {
		return nil, err
	}
	if err := w.end(); err != nil {
		return nil, err
	}
	for _, layer := range slices.Backward(layers) {
		if err := layer.Close(); err != nil {
			return nil, err
		}
	}
	return r.summary(w.tables), nil
}

func copyTables(ctx context.Context, v *sqlstore.View, to sink) error {
	for _, t := range v.Tables {
		if err := to.table(t); err != nil {
			return err
		}
		for row, err := range v.Rows(ctx, t) {
			if err != nil {
				return err
			}
			if err := to.row(row); err != nil {
				return err
			}
		}
	}
	return nil
}

// Contents describes the existing content of a database that is to be replaced.
type Contents struct {
	Rev          mesh.Revision
	Users, Nodes int64
}

func (c Contents) String() string {
	return fmt.Sprintf("%d users and %d nodes at revision %d", c.Users, c.Nodes, c.Rev)
}

// Target is a database to be filled.
type Target struct {
	Database
	// Replace is called before existing content is replaced, and returns an error to keep it. If it is nil,
	// the database must be empty.
	Replace func(Contents) error
	// KeyFiles holds the paths of key files, by configuration key.
	KeyFiles map[string]string
	Progress Progress // may be nil
}

// Restore fills a database from a backup, completely or not at all. Tables of an older schema version are
// created as they were and then migrated.
func Restore(ctx context.Context, in io.Reader, identities []age.Identity, to Target) (*Summary, error) {
	r, err := open(in, identities)
	if err != nil {
		return nil, err
	}
	defer r.close()
	newest, err := sqlstore.NewestSchema()
	if err != nil {
		return nil, err
	}
	if r.header.Schema < 1 {
		return nil, ErrDamaged
	}
	if r.header.Schema > newest {
		return nil, fmt.Errorf("%w: it has schema version %d, but this binary supports only versions up to %d: install fairlead %s or later",
			ErrNewer, r.header.Schema, newest, r.header.Product)
	}
	var s *Summary
	err = to.fill(ctx, r.header.Schema, r.files, func(sink sink) error {
		s, err = r.tables(sink)
		return err
	})
	return s, err
}

// Move fills a database from another one that no server uses. The other database is not changed.
func Move(ctx context.Context, from Database, to Target) (*Summary, error) {
	if from == to.Database {
		return nil, fmt.Errorf("cannot move %s to itself", from)
	}
	raw, err := sqlstore.OpenRaw(ctx, from, sqlstore.Take)
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	sums := newWriter(io.Discard)
	var h Header
	err = raw.View(ctx, func(v *sqlstore.View) error {
		if v.Schema == 0 {
			return errEmpty(from)
		}
		h = Header{Format: formatName, Version: formatVersion, Schema: v.Schema, Rev: v.Rev, Engine: raw.Engine()}
		return to.fill(ctx, v.Schema, nil, func(s sink) error { return copyTables(ctx, v, both{s, sums}) })
	})
	sums.closeTable()
	return (&reader{header: h}).summary(sums.tables), err
}

// fill rebuilds the database from the rows that it receives through a sink, and reads the database back
// before it commits.
func (to Target) fill(ctx context.Context, schema int64, files []KeyFile, rows func(sink) error) error {
	raw, err := sqlstore.OpenRaw(ctx, to.Database, sqlstore.Fill)
	if err != nil {
		return err
	}
	defer raw.Close()
	if err := to.mayFill(ctx, raw); err != nil {
		return err
	}
	placed, err := to.plan(files)
	if err != nil {
		return err
	}
	undo := func() error { return nil }
	err = raw.Rebuild(ctx, schema, func(b *sqlstore.Rebuilding) error {
		given := newWriter(io.Discard)
		if to.Progress != nil {
			given.progress = to.Progress
		}
		l := &loader{ctx: ctx, to: b}
		if err := errors.Join(rows(both{l, given}), l.flush()); err != nil {
			return err
		}
		given.closeTable()
		if len(given.tables) < len(b.Tables) {
			return fmt.Errorf("%w (tables are missing)", ErrDamaged)
		}
		found := newWriter(io.Discard)
		if err := copyTables(ctx, b.View, found); err != nil {
			return err
		}
		found.closeTable()
		if !maps.Equal(given.tables, found.tables) {
			return fmt.Errorf("verification failed: %s returned different rows than were written; nothing was changed", to.Database)
		}
		undo, err = place(placed)
		return err
	})
	if err != nil {
		return errors.Join(err, undo())
	}
	if err := raw.Migrate(ctx); err != nil {
		return fmt.Errorf("all rows were restored, but updating the schema failed: %w; the server will retry when it starts", err)
	}
	return nil
}

func (to Target) mayFill(ctx context.Context, raw *sqlstore.Raw) error {
	var c Contents
	err := raw.View(ctx, func(v *sqlstore.View) (err error) {
		if c.Rev = v.Rev; v.Rev == 0 {
			return nil
		}
		if c.Users, err = v.Count(ctx, "users"); err != nil {
			return err
		}
		c.Nodes, err = v.Count(ctx, "nodes")
		return err
	})
	switch {
	case err != nil || c.Rev == 0:
		return err
	case to.Replace == nil:
		return fmt.Errorf("%s is not empty: it has %s; use an empty database, or --replace to delete its contents", to.Database, c)
	}
	return to.Replace(c)
}

// both is a sink that passes everything to two sinks.
type both [2]sink

func (b both) table(t sqlstore.Table) error { return errors.Join(b[0].table(t), b[1].table(t)) }
func (b both) row(row []any) error          { return errors.Join(b[0].row(row), b[1].row(row)) }

const (
	batchRows  = 500
	batchBytes = 1 << 20
)

// loader is a sink that fills a database.
type loader struct {
	ctx    context.Context //nolint:containedctx // it lives for one call, and the methods of a sink have no context argument
	to     *sqlstore.Rebuilding
	filled sqlstore.Table
	rows   [][]any
	bytes  int
}

func (l *loader) table(t sqlstore.Table) error {
	if err := l.flush(); err != nil {
		return err
	}
	i := slices.IndexFunc(l.to.Tables, func(known sqlstore.Table) bool { return known.Name == t.Name })
	if i < 0 || !slices.Equal(l.to.Tables[i].Columns, t.Columns) {
		return fmt.Errorf("%w (schema version %d has no table %s with these columns)", ErrDamaged, l.to.Schema, t.Name)
	}
	l.filled = l.to.Tables[i]
	return nil
}

func (l *loader) row(row []any) error {
	for _, v := range row {
		switch v := v.(type) {
		case string:
			l.bytes += len(v)
		case []byte:
			l.bytes += len(v)
		}
	}
	l.rows = append(l.rows, slices.Clone(row))
	if len(l.rows) < batchRows && l.bytes < batchBytes {
		return nil
	}
	return l.flush()
}

func (l *loader) flush() error {
	err := l.to.Insert(l.ctx, l.filled, l.rows)
	l.rows, l.bytes = l.rows[:0], 0
	return err
}
