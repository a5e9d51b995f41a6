package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

const (
	policyFileInterval = 2 * time.Second
	maxPolicyFile      = 4 << 20 // more than any policy; the parser enforces the real limit
)

// PolicyFile is the file that contains the policy, as this replica last read it.
type PolicyFile struct {
	*core
	path string      // empty if the policy does not come from a file
	seen os.FileInfo // as of the last read; used only by the reading goroutine

	mu        sync.Mutex
	text      string // guarded by mu; the last valid text
	hash      string // guarded by mu; of text, empty if there is none yet
	unread    error  // guarded by mu; why the current content is not a valid policy
	refused   error  // guarded by mu; why the valid text is not in force
	disagrees string // guarded by mu; a replica with another text
}

// unusable is the reason of the version that blocks everything because the file is invalid.
const unusable = "the policy file is invalid"

// warnings returns why the file is not in force. p is the policy in force.
func (f *PolicyFile) warnings(p *mesh.Policy) (lines []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	until := "the previous policy stays active"
	if p != nil && p.Reason == unusable {
		until = "all access is denied until it is fixed"
	}
	for _, err := range []error{f.unread, f.refused} {
		if err != nil {
			lines = append(lines, fmt.Sprintf("policy file %s not loaded; %s: %v", f.path, until, err))
		}
	}
	if f.disagrees != "" {
		lines = append(lines, fmt.Sprintf("replica %s has a different policy file, so neither is loaded; make the files identical", f.disagrees))
	}
	return lines
}

// Hash identifies the content of the policy file, so that replicas can compare theirs. It
// is empty if there is none.
func (f *PolicyFile) Hash() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hash
}

// Load reads the policy file before anyone is served. If no policy is stored, the file is
// saved at once; if it cannot be parsed, all traffic is denied until it can, because an
// operator who configures a policy file does not expect everything to be allowed.
func (f *PolicyFile) Load(ctx context.Context) error {
	f.read()
	if p, ok := f.ledger.World().Policy(); ok && p.Text != "" {
		return nil
	}
	text, reason, err := f.text, "", f.unread
	if err == nil {
		_, err = f.checkPolicy(text)
	}
	if err != nil {
		text, reason = denyAllPolicy, unusable
		f.log.Error("policy file is invalid, denying all access until it is fixed", "file", f.path, "error", err)
	}
	return f.commit(ctx, text, reason, func(p *mesh.Policy) bool { return p.Text == "" })
}

// Follow keeps the policy equal to the file until ctx ends. It re-reads the file when it
// changes and when reload delivers a signal.
func (f *PolicyFile) Follow(ctx context.Context, reload <-chan os.Signal) error {
	for ctx.Err() == nil {
		f.apply(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(policyFileInterval):
			if f.changed() {
				f.read()
			}
		case <-reload:
			f.log.Info("reloading policy file", "file", f.path)
			f.read()
		}
	}
	return nil
}

// changed reports whether the file may differ from what was read. A file that could not be
// read may be readable now.
func (f *PolicyFile) changed() bool {
	return changedSince(f.path, f.seen)
}

// changedSince reports whether a file may differ from when it was read. seen is nil if it could
// not be read.
func changedSince(path string, seen os.FileInfo) bool {
	info, err := os.Stat(path)
	if err != nil || seen == nil {
		return true
	}
	return !info.ModTime().Equal(seen.ModTime()) || info.Size() != seen.Size() || !os.SameFile(info, seen)
}

// read uses the content of the file if it is a valid policy. Invalid or partially written
// text changes nothing.
func (f *PolicyFile) read() {
	text, info, err := readWatched("policy.path", f.path, maxPolicyFile)
	f.seen = info
	var doc *lang.Doc
	if err == nil {
		doc, err = ReadPolicy(text)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && (f.unread == nil || f.unread.Error() != err.Error()) {
		f.log.Error("policy file not loaded, keeping the previous policy", "file", f.path, "error", err)
	}
	if f.unread = err; err == nil {
		sum := sha256.Sum256([]byte(text))
		hash := hex.EncodeToString(sum[:])
		if hash != f.hash {
			for _, w := range doc.Warnings {
				f.log.Warn("policy file warning", "file", f.path, "warning", w.String())
			}
		}
		f.text, f.hash = text, hash
	}
}

// readWatched reads a file that a configuration key names, up to a limit in bytes. The error says
// what to do.
func readWatched(key, path string, limit int64) (string, os.FileInfo, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe would block until there is a writer
	if err != nil {
		return "", nil, fmt.Errorf("%w: create the file, or remove %s from the configuration", err, key)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", nil, err
	}
	if !info.Mode().IsRegular() {
		return "", info, fmt.Errorf("%s is not a regular file: replace it with one, or remove %s from the configuration", path, key)
	}
	text, err := io.ReadAll(io.LimitReader(file, limit))
	return string(text), info, err
}

// apply commits the file if it differs from the stored policy and no other live replica has
// a different file.
func (f *PolicyFile) apply(ctx context.Context) {
	other, known := f.otherFile()
	f.mu.Lock()
	text, hash := f.text, f.hash
	if other != "" && f.disagrees != other {
		f.log.Warn("policy file not loaded: another replica has a different one; make the files identical", "replica", other)
	}
	f.disagrees = other
	f.mu.Unlock()
	if hash == "" || other != "" || !known {
		return
	}
	var err error
	differs := func(p *mesh.Policy) bool { return p.Text != text || p.Source != policyFromFile }
	if p, ok := f.ledger.World().Policy(); !ok || differs(p) {
		if _, err = f.checkPolicy(text); err == nil {
			err = f.commit(ctx, text, "", differs)
		}
		if errors.Is(err, ledger.ErrUnavailable) || ctx.Err() != nil {
			return // the ledger logs it, and the next round retries
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && (f.refused == nil || f.refused.Error() != err.Error()) {
		f.log.Error("policy file not loaded, keeping the previous policy", "file", f.path, "error", err)
	}
	f.refused = err
}

// otherFile returns a live replica with a different policy file, as anotherReplica does.
func (f *PolicyFile) otherFile() (replica string, known bool) {
	own := f.Hash()
	return f.anotherReplica(func(r ledger.Report) bool { return own != "" && r.PolicyHash != "" && r.PolicyHash != own })
}

// commit commits the text of the file, or a substitute, if replace allows replacing the
// stored policy.
func (f *PolicyFile) commit(ctx context.Context, text, reason string, replace func(*mesh.Policy) bool) error {
	a := mesh.Actor{Kind: mesh.ActorServer, Reason: cmp.Or(reason, "policy file")}
	doc, _ := lang.Parse([]byte(text)) // the text was checked before
	_, err := commitRoutes(ctx, f.core, a, func(w *policy.World, now mesh.Time) (none nothing, _ []mesh.Event, _ error) {
		if p, ok := w.Policy(); ok && !replace(p) {
			return none, nil, nil
		}
		return none, activate(w, now, &mesh.Policy{
			Version: w.Counters.NextPolicy(), Text: text, Source: policyFromFile, Author: "policy file", Reason: reason, SavedAt: now,
		}, doc), nil
	})
	return err
}
