package backup

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// FuzzRestore: a file that cannot be restored leaves the database as it was.
func FuzzRestore(f *testing.F) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		f.Fatal(err)
	}
	defer z.Close()
	empty := engines["sqlite"](f)
	openStore(f, empty).Close()
	fresh, _ := take(f, empty, Options{})
	for _, backup := range [][]byte{small(f, Options{}), fresh} {
		text, err := z.DecodeAll(backup, nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, false)
		f.Add(text[:len(text)/2], false)
		f.Add(bytes.Replace(text, []byte(`"`), []byte(`""`), 1), false)
		f.Add(bytes.ReplaceAll(text, []byte(`:1`), []byte(`:-1`)), true)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte, replace bool) {
		name := filepath.Join(dir, "db.sqlite")
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.RemoveAll(name + suffix); err != nil {
				t.Fatal(err)
			}
		}
		to := Target{Database: Database{SQLite: name}}
		var before string
		if replace {
			to.Replace = func(Contents) error { return nil }
			openStore(t, to.Database).Close()
			before = load(t, to.Database).Digest()
		}
		if lines, ok := signed(t, text); ok {
			text = lines
		}
		_, err := Restore(t.Context(), bytes.NewReader(compressed(t, text)), nil, to)
		switch {
		case err != nil && replace:
			if after := load(t, to.Database).Digest(); after != before {
				t.Fatalf("the restore failed, and changed the database: %v", err)
			}
		case err != nil:
			if _, missing := os.Stat(name); missing == nil && load(t, to.Database).Rev != 0 {
				t.Fatalf("the restore failed, and left a database: %v", err)
			}
		}
	})
}

// signed recomputes the counts and checksums of a backup's lines, because without that
// no mutated input would ever be accepted. It returns false if text does not even start
// like a backup.
func signed(t testing.TB, text []byte) ([]byte, bool) {
	t.Helper()
	r, err := openLines(bytes.NewReader(text))
	if err != nil {
		return nil, false
	}
	var again bytes.Buffer
	w := newWriter(&again)
	if err := w.value(r.header); err != nil {
		t.Fatal(err)
	}
	for _, file := range r.files {
		if err := w.value(mark{File: &file}); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = r.tables(w)
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	return again.Bytes(), true
}
