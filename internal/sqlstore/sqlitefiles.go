package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/pressly/goose/v3"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// sqliteFiles are the files of a database that this process owns: the database
// itself, its write-ahead log, and a lock file that also records the newest
// revision. If the log is deleted, acknowledged changes are lost and SQLite does
// not notice, but the recorded revision shows it.
type sqliteFiles struct {
	path string      // with symbolic links resolved, as in the name of SQLite's log
	file os.FileInfo // the database that is open
	lock *os.File    // held while this process owns the database
	log  os.FileInfo // the log in use; nil before watchLog
}

// takeFiles takes the lock file next to the database, then checks that the database is writable, because the
// operating system's errors are clearer than SQLite's. It does not touch the database of another program.
func takeFiles(ctx context.Context, path string) (_ *sqliteFiles, err error) {
	if err := mustBeOurFile(ctx, path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, openError(path, err)
	}
	// The lock file is next to the database file itself, like SQLite's log, even if path is a symbolic link.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, openError(path+".lock", err)
	}
	defer func() {
		if err != nil {
			lock.Close()
		}
	}()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, unavailable("failed to open database file: %s is in use by another fairlead process; stop it first, or use PostgreSQL to run several", path)
	} else if err != nil {
		return nil, openError(path+".lock", err)
	}
	if orphan, err := orphaned(path); err != nil || orphan {
		return nil, unavailable("failed to open database file: %s is missing but %s-wal exists: restore the database file, or move the other file away to start with an empty database", path, path)
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		_ = lock.Truncate(0) // the note is about another database, whose inode number may be reused
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, openError(path, err)
	}
	defer f.Close()
	file, err := f.Stat()
	return &sqliteFiles{path: path, file: file, lock: lock}, err
}

// orphaned reports whether the log of a database exists without the database. Creating a new database would
// then replace one that was only moved away.
func orphaned(path string) (bool, error) {
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return false, nil // if something is wrong, OpenFile reports it
	}
	wal, err := os.Stat(path + "-wal")
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && wal.Size() > 0, err
}

func (f *sqliteFiles) release() error { return f.lock.Close() }

// noteForm has a fixed length, so that one note overwrites another.
const noteForm = "fairlead inode %020d rev %020d\n"

// note records the newest revision without waiting for the disk. The note survives
// the process, and after a power loss an older note does no harm.
func (f *sqliteFiles) note(rev mesh.Revision) {
	_, _ = f.lock.WriteAt(fmt.Appendf(nil, noteForm, inode(f.file), rev), 0) // a full disk has been reported already
}

// forget removes the note, because the database continues from another revision.
func (f *sqliteFiles) forget() error { return f.lock.Truncate(0) }

// noted returns the newest known revision of this very file.
func (f *sqliteFiles) noted() mesh.Revision {
	text := make([]byte, 128)
	n, _ := f.lock.ReadAt(text, 0) // an unreadable note counts as none
	var node uint64
	var rev mesh.Revision
	if _, err := fmt.Sscanf(string(text[:n]), noteForm, &node, &rev); err != nil || node != inode(f.file) {
		return 0
	}
	return rev
}

func inode(file os.FileInfo) uint64 {
	if s, ok := file.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}

// complete fails if the database lacks something that this process or an earlier one has written, because
// its log is missing. It changes nothing, so that the log can be restored.
func (f *sqliteFiles) complete(ctx context.Context, db *sql.DB) error {
	noted, found := f.noted(), mesh.Revision(0)
	if noted == 0 {
		return nil
	}
	err := db.QueryRowContext(ctx, "SELECT rev FROM head WHERE id = 1").Scan(&found)
	if err != nil && !strings.Contains(err.Error(), "no such table") && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if found < noted {
		return unavailable("failed to open database file: %s ends at revision %d, but revision %d was saved: the file %s-wal was removed, "+
			"or the database was replaced with an older copy. Restore the missing file or a backup; to continue without these changes, delete %s.lock",
			f.path, found, noted, f.path, f.path)
	}
	return nil
}

// prepareSQLite migrates the tables and moves the log into the file, so that the
// file alone is a complete database.
func prepareSQLite(ctx context.Context, db, pin *sql.DB, files *sqliteFiles) error {
	if err := files.complete(ctx, db); err != nil {
		return err
	}
	if err := mustBeOurSQLite(ctx, db, files.path); err != nil {
		return err
	}
	if err := migrate(ctx, goose.DialectSQLite3, db); err != nil {
		return err
	}
	if _, err := checkpoint(ctx, pin); err != nil {
		return err
	}
	files.watchLog()
	return nil
}

// checkpoint moves the log into the file, completely unless a reader still needs a part of it.
func checkpoint(ctx context.Context, db *sql.DB) (all bool, err error) {
	var busy, frames, moved int
	err = db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved)
	return err == nil && busy == 0, err
}

// watchLog remembers the current log as the one in use.
func (f *sqliteFiles) watchLog() {
	if log, err := os.Stat(f.path + "-wal"); err == nil {
		f.log = log
	}
}

// present fails if the database or its log was removed or replaced while this
// process was using it, because further writes would be lost.
func (f *sqliteFiles) present() error {
	if file, err := os.Stat(f.path); err != nil || !os.SameFile(file, f.file) {
		return unavailable("database write failed: %s was removed or replaced while in use: stop the server, restore the file and start again", f.path)
	}
	if f.log == nil {
		return nil
	}
	if log, err := os.Stat(f.path + "-wal"); err != nil || !os.SameFile(log, f.log) {
		return unavailable("database write failed: %s-wal was removed or replaced while in use: restart the server", f.path)
	}
	return nil
}
