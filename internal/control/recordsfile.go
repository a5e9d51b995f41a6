package control

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

const (
	recordsFileInterval = 500 * time.Millisecond
	maxRecordsFile      = 1 << 20
	maxFileRecords      = 5000 // every client's map contains them
	// neverValid is the hash of a file that has not been valid since the server started.
	neverValid = "-"
)

// RecordsFile is the file that contains DNS records, as this replica last read it. Its records
// are separate from those in the DNS settings, so that changes through the API do not stop the
// file from taking effect.
type RecordsFile struct {
	*core
	path string      // empty if there is none
	seen os.FileInfo // as of the last read; used only by the reading goroutine

	mu        sync.Mutex
	value     string // guarded by mu; the last valid records, encoded
	hash      string // guarded by mu; of value, empty if there is none yet
	unread    error  // guarded by mu; why the current content is not valid
	disagrees string // guarded by mu; a replica with another file
}

// Hash identifies the records in the file, so that replicas can compare theirs.
func (f *RecordsFile) Hash() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path != "" && f.hash == "" {
		return neverValid
	}
	return f.hash
}

// Warnings returns why the file is not in force, one line each.
func (f *RecordsFile) Warnings() (lines []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unread != nil {
		lines = append(lines, fmt.Sprintf("DNS records file %s not loaded; the previous records stay active: %v", f.path, f.unread))
	}
	if f.disagrees != "" {
		lines = append(lines, fmt.Sprintf("replica %s has a different DNS records file, so neither is loaded; make the files identical", f.disagrees))
	}
	return lines
}

// Follow keeps the records equal to those in the file until ctx ends. Without a file, it removes
// the records of an earlier configuration.
func (f *RecordsFile) Follow(ctx context.Context) error {
	for ctx.Err() == nil {
		if f.path != "" && changedSince(f.path, f.seen) {
			f.read()
		}
		done := f.apply(ctx)
		if f.path == "" && done {
			return nil
		}
		pause(ctx, recordsFileInterval)
	}
	return nil
}

// read uses the content of the file if it is valid. Invalid or partially written text changes
// nothing.
func (f *RecordsFile) read() {
	text, info, err := readWatched("dns.extra_records_path", f.path, maxRecordsFile+1)
	f.seen = info
	var value string
	if err == nil {
		value, err = readRecords(text)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && (f.unread == nil || f.unread.Error() != err.Error()) {
		f.log.Error("DNS records file not loaded, keeping the previous records", "file", f.path, "error", err)
	}
	if f.unread = err; err == nil {
		sum := sha256.Sum256([]byte(value))
		f.value, f.hash = value, hex.EncodeToString(sum[:])
	}
}

// ReadRecordsFile returns the records of a file in the form of mesh.SettingRecords.
func ReadRecordsFile(path string) (string, error) {
	text, _, err := readWatched("dns.extra_records_path", path, maxRecordsFile+1)
	if err != nil {
		return "", err
	}
	value, err := readRecords(text)
	if err != nil {
		return "", fmt.Errorf("dns.extra_records_path: %s: %w", path, err)
	}
	return value, nil
}

// readRecords returns the records of a file in the form that is stored.
func readRecords(text string) (string, error) {
	if len(text) > maxRecordsFile {
		return "", errors.New("larger than 1 MiB; is this the right file?")
	}
	var list []struct{ Name, Type, Value string }
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	if err := decoder.Decode(&list); err != nil {
		return "", fmt.Errorf("must be a JSON list of objects with name, type and value: %w", err)
	}
	if decoder.More() {
		return "", errors.New("must be one JSON list; remove what follows it")
	}
	records := make([]mesh.DNSRecord, len(list))
	for i, r := range list {
		addr, err := netip.ParseAddr(r.Value)
		if err != nil {
			return "", fmt.Errorf("record %d (%.100q): value %.100q is not an IP address", i+1, r.Name, r.Value)
		}
		if r.Type == "" { // clients then take the type from the address
			r.Type = "AAAA"
			if addr.Is4() {
				r.Type = "A"
			}
		}
		records[i] = mesh.DNSRecord{Name: r.Name, Type: r.Type, Value: addr}
	}
	records, err := parseRecords(records, maxFileRecords)
	if err != nil {
		return "", err
	}
	value, err := json.Marshal(records)
	return string(value), err
}

// apply commits the records if they differ from the stored ones and no other live replica has a
// different file. It reports whether nothing is left to do.
func (f *RecordsFile) apply(ctx context.Context) bool {
	other, known := f.otherFile()
	f.mu.Lock()
	value := f.value
	if f.path == "" {
		value = "[]"
	}
	if f.disagrees != other && f.path != "" {
		f.disagrees = other
		if other != "" {
			f.log.Warn("DNS records file not loaded: another replica has a different one; make the files identical", "replica", other)
		}
	}
	f.mu.Unlock()
	if other != "" || !known || value == "" {
		return false
	}
	err := f.commitSetting(ctx, "DNS records file", func(w *mesh.Snapshot, now mesh.Time) ([]mesh.Event, error) {
		if old, ok := w.Settings.ByKey(mesh.SettingRecords); ok && old.Value == value || !ok && value == "[]" {
			return nil, nil
		}
		return w.SettingPutFor(mesh.SettingRecords, value, sourceConfig, true, now), nil
	})
	return err == nil // the ledger logs an error, and the next round retries
}

// otherFile returns a live replica whose file prevents this one from taking effect, as
// anotherReplica does. A replica without a file leaves the records to those that have one.
func (f *RecordsFile) otherFile() (replica string, known bool) {
	own := f.Hash()
	return f.anotherReplica(func(r ledger.Report) bool {
		if f.path == "" {
			return r.RecordsHash != ""
		}
		return own != neverValid && r.RecordsHash != "" && r.RecordsHash != neverValid && r.RecordsHash != own
	})
}
