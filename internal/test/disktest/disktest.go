// Package disktest provides small file systems that tests can fill. It is not for production code, and needs
// root.
package disktest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Small mounts a file system of this size, such as "1m", until the test ends, and returns its path.
// Every user may read it.
func Small(t testing.TB, size string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: it mounts a small disk")
	}
	dir := Open(t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755,size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// ReadOnly makes a file system of Small read-only, or writable again. No process may have a file open for writing.
func ReadOnly(t testing.TB, dir string, on bool) {
	t.Helper()
	flags := uintptr(syscall.MS_REMOUNT)
	if on {
		flags |= syscall.MS_RDONLY
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, ""); err != nil {
		t.Fatal(err)
	}
}

// Open creates a directory, with a short name, that every user may read.
func Open(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Fill writes to a file until the disk is full and returns the file's name.
func Fill(t testing.TB, dir string) string {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		if n, err := f.Write(block); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			block = block[:(len(block)-n)/2]
		}
	}
	return f.Name()
}
