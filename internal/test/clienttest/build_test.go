package clienttest

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestDirectoryIsMadeOnceForAllWhoWantIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache", "v1")
	var made atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			err := keep(dir, func(empty string) error {
				made.Add(1)
				return os.WriteFile(filepath.Join(empty, "tailscale"), nil, 0o700)
			})
			if err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(dir, "tailscale")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times", made.Load())
	}
}

func TestFailedBuildLeavesNothingBehind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "v1")
	failure := errors.New("no network")
	err := keep(dir, func(empty string) error {
		return errors.Join(failure, os.WriteFile(filepath.Join(empty, "half"), nil, 0o600))
	})
	if !errors.Is(err, failure) {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory exists")
	}
	if err := keep(dir, func(string) error { return nil }); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "half")); err == nil {
		t.Error("the second try kept files of the first")
	}
}
