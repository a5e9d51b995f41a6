package bff

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	maxSignOuts  = 10_000
	signOutsMode = fs.FileMode(0o700)
	signOutMode  = fs.FileMode(0o600)
)

var errSignOutsFull = errors.New("too many sessions were signed out in the last 7 days")

// signOuts remembers which sessions were signed out, until they are too old to be
// valid anyway. With a directory, each is an empty file named by a hash, so that
// sign-outs survive a restart and replicas can share them. Without one, only this
// process knows them. Only the holder of a session can add one.
type signOuts struct {
	dir string // empty if there is none

	mu    sync.Mutex
	ended map[string]time.Time // guarded by mu; by session, when it was signed out; at most maxSignOuts
}

// prepare creates the directory, if one is configured.
func (o *signOuts) prepare() error {
	if o.dir == "" {
		return nil
	}
	return os.MkdirAll(o.dir, signOutsMode)
}

// add signs a session out. An error means that it could not be stored in the
// directory. This process still remembers it, unless it already remembers too
// many.
func (o *signOuts) add(session string, now time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended == nil {
		o.ended = map[string]time.Time{}
	}
	for id, at := range o.ended {
		if now.Sub(at) >= longestTime {
			delete(o.ended, id)
		}
	}
	var err error
	if o.dir != "" {
		if err = o.store(session, now); err == nil {
			return nil
		}
	}
	if len(o.ended) >= maxSignOuts {
		return errSignOutsFull
	}
	o.ended[session] = now
	return err
}

// store stores a sign-out in the directory. It must be called with mu held.
func (o *signOuts) store(session string, now time.Time) error {
	if err := o.sweep(now); err != nil {
		return err
	}
	file, err := os.OpenFile(o.path(session), os.O_CREATE|os.O_WRONLY, signOutMode)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// sweep removes expired entries, and fails if too many are left.
func (o *signOuts) sweep(now time.Time) error {
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		return err
	}
	left := 0
	for _, entry := range entries {
		info, err := entry.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist): // another replica removed it first
		case err != nil:
			return err
		case now.Sub(info.ModTime()) < longestTime:
			left++
		default:
			if err := os.Remove(filepath.Join(o.dir, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if left >= maxSignOuts {
		return errSignOutsFull
	}
	return nil
}

// has reports whether a session was signed out. If the directory cannot be read, only
// this process's own sign-outs count.
func (o *signOuts) has(session string) bool {
	o.mu.Lock()
	_, ended := o.ended[session]
	o.mu.Unlock()
	if ended || o.dir == "" {
		return ended
	}
	_, err := os.Stat(o.path(session))
	return err == nil
}

func (o *signOuts) path(session string) string {
	hash := sha256.Sum256([]byte(session))
	return filepath.Join(o.dir, hex.EncodeToString(hash[:]))
}
