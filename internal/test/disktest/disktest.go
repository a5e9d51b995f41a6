// Package disktest provides file systems that tests can fill or break. It is not for production code, and needs
// root.
package disktest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"
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

// Disk is a file system that can lose power: then it keeps only what was synced.
type Disk struct {
	Dir   string
	t     testing.TB
	image string
}

// NewDisk creates a file system of this size, such as "64M", and mounts it until the test ends.
func NewDisk(t testing.TB, size string) *Disk {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: it mounts a disk")
	}
	d := &Disk{Dir: Open(t), t: t, image: filepath.Join(t.TempDir(), "image")}
	d.run("truncate", "--size="+size, d.image)
	d.run("mkfs.ext4", "-q", "-F", d.image)
	d.mount()
	t.Cleanup(func() { d.run("umount", d.Dir) })
	return d
}

func (d *Disk) run(name string, args ...string) {
	d.t.Helper()
	if out, err := exec.CommandContext(context.Background(), name, args...).CombinedOutput(); err != nil {
		d.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

func (d *Disk) mount() {
	d.t.Helper()
	d.run("mount", "-o", "loop", d.image, d.Dir)
}

// The request that shuts down an ext4 file system, without writing what is in memory.
const (
	shutdown   = 0x8004587d
	nothingOut = 2
)

// Fail cuts the power. From then on, nothing can be written.
func (d *Disk) Fail() {
	d.t.Helper()
	dir, err := os.Open(d.Dir)
	if err != nil {
		d.t.Fatal(err)
	}
	defer dir.Close()
	flags := uint32(nothingOut)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, dir.Fd(), shutdown, uintptr(unsafe.Pointer(&flags))); errno != 0 {
		d.t.Fatalf("shutting down %s: %v", d.Dir, errno)
	}
}

// Restore mounts the disk after Fail. No process may use it.
func (d *Disk) Restore() {
	d.t.Helper()
	d.run("umount", d.Dir)
	d.mount()
}
