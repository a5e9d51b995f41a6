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

// partial is what the name of a file ends with that is not a backup yet. One
// that was left behind is written over by the next backup of the same name.
const partial = ".partial"

// Create makes a file of that name from what write writes: whole, on the disk,
// and read back by check; or no file of that name. It replaces none.
func Create(name string, write func(io.Writer) error, check func(io.Reader) error) (err error) {
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return cannot(name, err)
	}
	f, err := os.OpenFile(name+partial, os.O_RDWR|os.O_CREATE, 0o600)
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
		return fmt.Errorf("reading back %s: %w", name, err)
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	return syncDir(filepath.Dir(name))
}

func cannot(name string, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%s exists; remove it, or name another file", name)
}

// readBack reads the file from the disk, not from memory, where the system can.
func readBack(f *os.File, want hash.Hash, check func(io.Reader) error) error {
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) // a wish
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	got := sha256.New()
	if _, err := io.Copy(got, f); err != nil {
		return err
	}
	if !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
		return errors.New("the disk does not hold what was written")
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return check(f)
}

// ReadKeyFiles reads those of some key files that there are.
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
			return nil, fmt.Errorf("%s: %s is too large for a key", key, paths[key])
		}
		files = append(files, KeyFile{Key: key, Content: content})
	}
	return files, nil
}

// placement is a key file on its way to its place.
type placement struct {
	path    string
	content []byte
	aside   bool // what is there is kept under another name
}

const replaced = ".replaced"

// plan says which key files are to be written, and refuses to lose one.
func (to Target) plan(files []KeyFile) ([]placement, error) {
	var plan []placement
	for _, f := range files {
		path, known := to.KeyFiles[f.Key]
		if !known {
			return nil, fmt.Errorf("%w (it has a file for %s)", ErrDamaged, f.Key)
		}
		if path == "" {
			return nil, fmt.Errorf("the backup holds the file of %s: set it in the configuration to where that belongs", f.Key)
		}
		there, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			plan = append(plan, placement{path: path, content: f.Content})
		case err != nil:
			return nil, fmt.Errorf("%s: %w", f.Key, err)
		case bytes.Equal(there, f.Content):
		case to.Replace == nil:
			return nil, fmt.Errorf("%s %s holds another key than the backup: move it away, or use --replace, which keeps it as %s", f.Key, path, path+replaced)
		default:
			plan = append(plan, placement{path: path, content: f.Content, aside: true})
		}
	}
	return plan, nil
}

func place(plan []placement) error {
	for _, p := range plan {
		dir := filepath.Dir(p.path)
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return err
		}
		if p.aside {
			if err := os.Rename(p.path, p.path+replaced); err != nil {
				return err
			}
		}
		f, err := os.CreateTemp(dir, ".key-*") // only its owner can read it
		if err != nil {
			return err
		}
		_, err = f.Write(p.content)
		err = errors.Join(err, f.Sync(), f.Close())
		if err == nil {
			err = os.Rename(f.Name(), p.path)
		}
		if err != nil {
			_ = os.Remove(f.Name())
			return err
		}
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// syncDir makes the names in a directory outlive a loss of power.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
