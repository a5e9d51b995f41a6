package backup

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
)

// lines returns the uncompressed lines of a backup with only a header.
func lines(t testing.TB, h Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := newWriter(&b)
	if err := errors.Join(w.value(h), w.end()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func compressed(t testing.TB, text []byte) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	return z.EncodeAll(text, nil)
}

// small returns a complete backup of a few rows.
func small(t testing.TB, o Options) []byte {
	t.Helper()
	d := engines["sqlite"](t)
	rebuild(t, d, newest(t), 2)
	backup, _ := take(t, d, o)
	return backup
}

func TestCutBackupIsRecognised(t *testing.T) {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for what, backup := range map[string][]byte{"plain": small(t, Options{}), "encrypted": small(t, Options{Recipients: []age.Recipient{key.Recipient()}})} {
		for n := range backup {
			if _, err := Verify(bytes.NewReader(backup[:n]), []age.Identity{key}); err == nil {
				t.Fatalf("%s: %d of %d bytes pass for a backup", what, n, len(backup))
			}
		}
		if _, err := Verify(bytes.NewReader(append(bytes.Clone(backup), 'x')), []age.Identity{key}); err == nil {
			t.Fatalf("%s: one byte too many passes for a backup", what)
		}
	}
}

// A flipped bit is detected anywhere in the file, unless it changes nothing.
func TestDamagedBackupIsRecognised(t *testing.T) {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for what, backup := range map[string][]byte{"plain": small(t, Options{}), "encrypted": small(t, Options{Recipients: []age.Recipient{key.Recipient()}})} {
		whole, err := Verify(bytes.NewReader(backup), []age.Identity{key})
		if err != nil {
			t.Fatal(err)
		}
		for i := range backup {
			damaged := bytes.Clone(backup)
			damaged[i] ^= 1 << (i % 8)
			got, err := Verify(bytes.NewReader(damaged), []age.Identity{key})
			if err == nil && !cmp.Equal(got, whole) {
				t.Fatalf("%s: a flipped bit in byte %d of %d makes another backup", what, i, len(backup))
			}
		}
	}
	// The lines are changed and compressed again.
	var b bytes.Buffer
	z, err := zstd.NewReader(bytes.NewReader(small(t, Options{})))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if _, err := io.Copy(&b, z); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{{`"name":"users"`, `"name":"usurs"`}, {"[1,", "[3,"}, {`"revision":1`, `"revision":2`}} {
		changed := bytes.Replace(b.Bytes(), []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(changed, b.Bytes()) {
			t.Fatalf("no %s in a backup", change[0])
		}
		if _, err := Verify(bytes.NewReader(compressed(t, changed)), nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", change[1], err)
		}
	}
}

func TestOtherFilesAreNoBackups(t *testing.T) {
	for _, text := range []string{"", "x", "SQLite format 3\x00", string(compressed(t, []byte("{}\n"))), string(compressed(t, []byte("hello\n")))} {
		if _, err := Verify(strings.NewReader(text), nil); !errors.Is(err, ErrNotBackup) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A file of a few kilobytes can contain lines of many megabytes, whose values would
// take gigabytes.
func TestSmallFileDoesNotFillTheMemory(t *testing.T) {
	var header bytes.Buffer
	table := sqlstore.Table{Name: "users", Columns: []sqlstore.Column{{Name: "id", Type: "integer"}}}
	w := newWriter(&header)
	if err := errors.Join(w.value(Header{Format: formatName, Version: formatVersion, Schema: 1}), w.table(table)); err != nil {
		t.Fatal(err)
	}
	for what, line := range map[string]string{
		"row":   "[" + strings.Repeat("0,", maxLine/4) + "0]\n",
		"table": `{"table":{"name":"nodes","columns":[` + strings.Repeat("{},", maxLine/4) + "{}]}}\n",
	} {
		bomb := compressed(t, append(bytes.Clone(header.Bytes()), line...))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Verify(bytes.NewReader(bomb), nil)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 6*maxLine {
			t.Errorf("%s: %d bytes in a file take %d MiB", what, len(bomb), used>>20)
		}
	}
}

// Table names in a backup never become part of an SQL statement.
func TestUnknownTableIsNotMade(t *testing.T) {
	var b bytes.Buffer
	w := newWriter(&b)
	h := Header{Format: formatName, Version: formatVersion, Schema: 1}
	evil := sqlstore.Table{Name: "users; DROP TABLE users", Columns: []sqlstore.Column{{Name: "id", Type: "integer"}}}
	if err := errors.Join(w.value(h), w.table(evil), w.row([]any{int64(1)}), w.end()); err != nil {
		t.Fatal(err)
	}
	for name, fresh := range engines {
		_, err := Restore(t.Context(), bytes.NewReader(compressed(t, b.Bytes())), nil, Target{Database: fresh(t)})
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		_, err = Restore(t.Context(), bytes.NewReader(compressed(t, lines(t, h))), nil, Target{Database: fresh(t)})
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s without tables: %v", name, err)
		}
	}
}

func TestEncryptedBackupNeedsItsIdentity(t *testing.T) {
	right, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	second, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for text, identity := range map[string]age.Identity{right.Recipient().String(): right, second.Recipient().String(): second} {
		recipients, err := Recipients([]string{text, text})
		if err != nil || len(recipients) != 1 {
			t.Fatalf("%d recipients (%v)", len(recipients), err)
		}
		backup := small(t, Options{Recipients: recipients, KeyFiles: []KeyFile{{Key: "noise.private_key_path", Content: []byte("privkey:00")}}})
		if bytes.Contains(backup, []byte("privkey")) {
			t.Fatal("the key can be read")
		}
		for _, identities := range [][]age.Identity{nil, {wrong}} {
			if _, err := Verify(bytes.NewReader(backup), identities); !errors.Is(err, ErrEncrypted) {
				t.Errorf("with %d identities: %v", len(identities), err)
			}
		}
		sum, err := Verify(bytes.NewReader(backup), []age.Identity{wrong, identity})
		if err != nil || len(sum.KeyFiles) != 1 {
			t.Errorf("with the right one: %+v (%v)", sum, err)
		}
	}
	if _, err := Recipients([]string{"alice"}); err == nil {
		t.Error("alice is a recipient")
	}
	list, err := Identities(strings.NewReader("# created\n" + right.String() + "\n"))
	if err != nil || len(list) != 1 {
		t.Errorf("%d identities (%v)", len(list), err)
	}
	if _, err := Identities(strings.NewReader("age-encryption.org/v1\n")); err == nil {
		t.Error("an encrypted file is an identity")
	}
}

func TestFileIsWholeOrNotThere(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.backup")
	write := func(w io.Writer) error {
		_, err := io.WriteString(w, "content")
		return err
	}
	broken := errors.New("broken")
	good := func(io.Reader) error { return nil }
	if err := Create(name, func(w io.Writer) error { return errors.Join(write(w), broken) }, good); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if err := Create(name, write, func(io.Reader) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v (%v)", entries, err)
	}
	// A killed process has left a partial file that others can read.
	if err := os.WriteFile(name+partial, []byte("much longer than what comes"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := Create(name, write, func(r io.Reader) error {
		text, err := io.ReadAll(r)
		if string(text) != "content" {
			t.Errorf("read back %q", text)
		}
		if err := Create(name, write, good); err == nil || !strings.Contains(err.Error(), "another process") {
			t.Errorf("two at once: %v", err)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left: %v (%v)", entries, err)
	}
	if err := Create(name, write, good); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("it was replaced: %v", err)
	}
}

func TestKeyFilesComeBackAndNoneIsLost(t *testing.T) {
	dir := t.TempDir()
	paths := map[string]string{"noise": filepath.Join(dir, "new", "noise.key"), "relay": filepath.Join(dir, "relay.key"), "seal": ""}
	if err := os.WriteFile(paths["relay"], []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	backup := small(t, Options{KeyFiles: []KeyFile{{Key: "noise", Content: []byte("n")}, {Key: "relay", Content: []byte("r")}}})
	to := Target{Database: engines["sqlite"](t), KeyFiles: paths}
	_, err := Restore(t.Context(), bytes.NewReader(backup), nil, to)
	if err == nil || !strings.Contains(err.Error(), "has a different key") {
		t.Fatalf("got %v", err)
	}
	if _, err := os.Stat(paths["noise"]); err == nil {
		t.Fatal("a key was written by a restore that failed")
	}
	to.Replace = replace
	restore(t, backup, to)
	for path, want := range map[string]string{paths["noise"]: "n", paths["relay"]: "r", paths["relay"] + replaced: "mine"} {
		text, err := os.ReadFile(path)
		if err != nil || string(text) != want {
			t.Errorf("%s holds %q (%v), want %q", path, text, err, want)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
	}
	found, err := ReadKeyFiles(paths)
	if err != nil || len(found) != 2 {
		t.Errorf("found %v (%v)", found, err)
	}
	// A second restore must not overwrite the saved copy of the original key.
	backup = small(t, Options{KeyFiles: []KeyFile{{Key: "relay", Content: []byte("another")}}})
	if _, err := Restore(t.Context(), bytes.NewReader(backup), nil, to); err == nil || !strings.Contains(err.Error(), "earlier key") {
		t.Errorf("got %v", err)
	}
	backup = small(t, Options{KeyFiles: []KeyFile{{Key: "seal", Content: []byte("s")}}})
	if _, err := Restore(t.Context(), bytes.NewReader(backup), nil, to); err == nil || !strings.Contains(err.Error(), "set its path in the configuration") {
		t.Errorf("got %v", err)
	}
}

// If the server found no key, it would create a new one that no client knows.
func TestFailedRestoreLeavesEveryKeyInItsPlace(t *testing.T) {
	dir := t.TempDir()
	paths := map[string]string{"a": filepath.Join(dir, "a.key"), "b": filepath.Join(dir, "b.key"), "c": filepath.Join(dir, "gone", "c.key")}
	err := errors.Join(os.WriteFile(paths["a"], []byte("mine"), 0o600), os.Symlink("discard", filepath.Join(dir, "gone")))
	if err != nil {
		t.Fatal(err)
	}
	backup := small(t, Options{KeyFiles: []KeyFile{{Key: "a", Content: []byte("1")}, {Key: "b", Content: []byte("2")}, {Key: "c", Content: []byte("3")}}})
	to := Target{Database: engines["sqlite"](t), KeyFiles: paths, Replace: replace}
	if _, err := Restore(t.Context(), bytes.NewReader(backup), nil, to); err == nil {
		t.Fatal("a key was written to discard")
	}
	if text, err := os.ReadFile(paths["a"]); err != nil || string(text) != "mine" {
		t.Errorf("the key became %q (%v)", text, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left: %v (%v)", entries, err)
	}
}

// In a directory that others can write to, a file or link planted under the name of
// the partial backup is not written to.
func TestPartialFileOfAnotherIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "a.backup")
	for what, trap := range map[string]func(string, string) error{"symbolic link": os.Symlink, "another user": os.Link} {
		if err := trap(victim, name+partial); err != nil {
			t.Fatal(err)
		}
		err := Create(name, func(w io.Writer) error { _, err := w.Write([]byte("x")); return err }, func(io.Reader) error { return nil })
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
		if err := os.Remove(name + partial); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "precious" {
		t.Errorf("it became %q (%v)", text, err)
	}
}

// FuzzRead: no input makes the reader panic, and whatever it accepts as a backup can be
// read again after it is rewritten.
func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	w := newWriter(&b)
	table := sqlstore.Table{Name: "t", Columns: []sqlstore.Column{{Name: "i", Type: "integer"}, {Name: "s", Type: "text"}, {Name: "b", Type: "blob"}}}
	err := errors.Join(w.value(Header{Format: formatName, Version: formatVersion, Schema: 1}),
		w.value(mark{File: &KeyFile{Key: "k", Content: []byte("c")}}), w.table(table), w.row([]any{int64(-1), "a\xff", []byte{1}}), w.row([]any{int64(2), "b", []byte{}}), w.end())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes(), false)
	f.Add(compressed(f, b.Bytes()), true)
	f.Add([]byte("age-encryption.org/v1\n-> X25519 a\nb\n--- c\n"), true)
	f.Fuzz(func(t *testing.T, data []byte, whole bool) {
		if whole {
			_, _ = Verify(bytes.NewReader(data), nil)
			return
		}
		again, ok := signed(t, data)
		if !ok {
			return
		}
		second, err := openLines(bytes.NewReader(again))
		if err != nil {
			t.Fatalf("what was read and written again cannot be read: %v\n%s", err, again)
		}
		if _, err := second.tables(discard{}); err != nil {
			t.Fatalf("what was read and written again cannot be read: %v\n%s", err, again)
		}
	})
}
