package relay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tailscale.com/types/key"
)

// LoadKey reads the relay's key from the file at path, or creates the file with a new key if it does not
// exist. Only the owner may read that file.
func LoadKey(path string) (key.NodePrivate, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := createKey(path); err != nil {
			return key.NodePrivate{}, fmt.Errorf("%s: cannot create the relay key: %w", path, err)
		}
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return key.NodePrivate{}, fmt.Errorf("%s: cannot read the relay key: %w", path, err)
	}
	var k key.NodePrivate
	if err := k.UnmarshalText([]byte(strings.TrimSpace(string(text)))); err != nil || k.IsZero() {
		return key.NodePrivate{}, fmt.Errorf("%s: not a relay key: restore the file, or remove it to create a new key", path)
	}
	return k, nil
}

// createKey creates the file atomically.
func createKey(path string) error {
	text, err := key.NewNode().MarshalText()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".key-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after success there is nothing to remove
	_, err = f.Write(append(text, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
