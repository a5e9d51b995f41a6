package backup

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// partial is the suffix of a file that is not a complete backup yet. A file left behind is overwritten by the
// next backup of the same name.
const partial = ".partial"

// Create creates a file and calls write to fill it. The file appears under its name only when it is complete,
// synced to disk and read back by check. An existing file is never replaced.
func Create(name string, write func(io.Writer) error, check func(io.Reader) error) (err error) {
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return cannot(name, err)
	}
	f, err := openPartial(name + partial)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%s is being written by another process", name)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if err := errors.Join(f.Truncate(0), f.Chmod(0o600)); err != nil {
		return err
	}
	sum := sha256.New()
	if err := write(io.MultiWriter(f, sum)); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := readBack(f, sum, check); err != nil {
		return fmt.Errorf("verifying %s: %w", name, err)
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	return syncDir(filepath.Dir(name))
}

// openPartial opens a file that this user created, or creates it. In a shared directory, anything could be
// waiting under that name.
func openPartial(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link; remove it", name)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Geteuid() || s.Nlink != 1 {
			err = fmt.Errorf("%s was created by another user; remove it", name)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func cannot(name string, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%s already exists; remove it, or choose another file", name)
}

// readBack verifies that the file contains what was written and passes check. Where the system supports that,
// it reads from the disk instead of the page cache.
func readBack(f *os.File, want hash.Hash, check func(io.Reader) error) error {
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) // only a hint
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	got := sha256.New()
	if _, err := io.Copy(got, f); err != nil {
		return err
	}
	if !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
		return errors.New("the file does not contain what was written")
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return check(f)
}

// ReadKeyFiles reads the key files that exist.
func ReadKeyFiles(paths map[string]string) ([]KeyFile, error) {
	var files []KeyFile
	for _, key := range slices.Sorted(maps.Keys(paths)) {
		if paths[key] == "" {
			continue
		}
		content, err := os.ReadFile(paths[key])
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, fmt.Errorf("%s: %w", key, err)
		case len(content) > maxFile:
			return nil, fmt.Errorf("%s: %s is too large for a key file", key, paths[key])
		}
		files = append(files, KeyFile{Key: key, Content: content})
	}
	return files, nil
}

// placement is a key file to be written to its path.
type placement struct {
	path    string
	content []byte
	there   []byte // the existing content, which is kept under another name; nil if there is none
}

const replaced = ".replaced"

// plan returns which key files to write. It fails if one would be lost.
func (to Target) plan(files []KeyFile) ([]placement, error) {
	var plan []placement
	for _, f := range files {
		path, known := to.KeyFiles[f.Key]
		if !known {
			return nil, fmt.Errorf("%w (unknown key file %s)", ErrDamaged, f.Key)
		}
		if path == "" {
			return nil, fmt.Errorf("the backup contains a key file for %s: set its path in the configuration", f.Key)
		}
		there, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			plan = append(plan, placement{path: path, content: f.Content})
			continue
		case err != nil:
			return nil, fmt.Errorf("%s: %w", f.Key, err)
		case bytes.Equal(there, f.Content):
			continue
		case to.Replace == nil:
			return nil, fmt.Errorf("%s %s has a different key than the backup: move the file away, or use --replace, which renames it to %s", f.Key, path, path+replaced)
		}
		if older, err := os.ReadFile(path + replaced); !errors.Is(err, fs.ErrNotExist) && !bytes.Equal(older, there) {
			return nil, fmt.Errorf("cannot replace %s: %s already has an earlier key; move that file away", f.Key, path+replaced)
		}
		plan = append(plan, placement{path: path, content: f.Content, there: there})
	}
	return plan, nil
}

// place writes key files. undo reverts everything that place did, even after a failure. At every moment there
// is a key under each name that had one: a server that finds none would create a key that no client knows.
func place(plan []placement) (undo func() error, err error) {
	var steps []func() error
	undo = func() error {
		var problems []error
		for _, step := range slices.Backward(steps) {
			problems = append(problems, step())
		}
		return errors.Join(problems...)
	}
	for _, p := range plan {
		if p.there != nil {
			if err := writeKey(p.path+replaced, p.there); err != nil {
				return undo, err
			}
			steps = append(steps, func() error { return os.Rename(p.path+replaced, p.path) })
		}
		if err := writeKey(p.path, p.content); err != nil {
			return undo, err
		}
		if p.there == nil {
			steps = append(steps, func() error { return os.Remove(p.path) })
		}
	}
	return undo, nil
}

// writeKey creates or replaces a file that only its owner can read.
func writeKey(path string, content []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".key-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	return syncDir(dir)
}

// syncDir makes the names in a directory survive a power loss.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
