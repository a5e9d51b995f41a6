package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
)

// Errors that callers distinguish.
var (
	// ErrDamaged means that a backup is corrupt or truncated.
	ErrDamaged = errors.New("the backup is damaged or truncated: use another one")
	// ErrNotBackup means that a file is not a backup at all.
	ErrNotBackup = errors.New("not a Fairlead backup")
	// ErrEncrypted means that no identity can decrypt a backup.
	ErrEncrypted = errors.New("the backup is encrypted: use --identity to specify the file with the matching identity. " +
		"If it needs a passphrase or a plugin, decrypt it with age: age --decrypt FILE | fairlead restore -")
	// ErrNewer means that a newer version created a backup.
	ErrNewer = errors.New("the backup was made by a newer version of fairlead")
)

const (
	ageMagic  = "age-encryption.org/"
	zstdMagic = "\x28\xb5\x2f\xfd"
	// maxMemory is several times what the writer's window needs.
	maxMemory = 64 << 20
)

// reader reads the lines of a backup.
type reader struct {
	header  Header
	files   []KeyFile
	lines   *bufio.Scanner
	line    []byte // the next line; nil before it is read
	all     hash.Hash
	release func()
}

// open detects the format of in, decrypts it if necessary, and reads the header and the key files.
func open(in io.Reader, identities []age.Identity) (*reader, error) {
	plain, err := decrypt(bufio.NewReader(in), identities)
	if err != nil {
		return nil, err
	}
	if magic, _ := plain.Peek(len(zstdMagic)); string(magic) != zstdMagic {
		return nil, ErrNotBackup
	}
	z, err := zstd.NewReader(plain, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxMemory), zstd.WithDecoderMaxWindow(maxMemory))
	if err != nil {
		return nil, err
	}
	r, err := openLines(z)
	if err != nil {
		z.Close()
		return nil, err
	}
	r.release = z.Close
	return r, nil
}

func decrypt(in *bufio.Reader, identities []age.Identity) (*bufio.Reader, error) {
	if magic, _ := in.Peek(len(ageMagic)); string(magic) != ageMagic {
		return in, nil
	}
	if len(identities) == 0 {
		return nil, ErrEncrypted
	}
	plain, err := age.Decrypt(in, identities...)
	var none *age.NoIdentityMatchError
	switch {
	case errors.As(err, &none):
		return nil, ErrEncrypted
	case err != nil:
		return nil, fmt.Errorf("%w (%w)", ErrDamaged, err)
	}
	return bufio.NewReader(plain), nil
}

// openLines starts to read lines that are neither encrypted nor compressed.
func openLines(in io.Reader) (*reader, error) {
	r := &reader{lines: bufio.NewScanner(in), all: sha256.New()}
	r.lines.Buffer(nil, maxLine)
	r.lines.Split(wholeLines)
	line, err := r.next()
	if err != nil {
		return nil, err
	}
	if len(line) > maxMark {
		return nil, ErrNotBackup
	}
	if err := json.Unmarshal(line, &r.header); err != nil || r.header.Format != formatName {
		return nil, ErrNotBackup
	}
	if r.header.Version != formatVersion {
		return nil, fmt.Errorf("%w: format version %d, made by fairlead %s: use that version", ErrNewer, r.header.Version, r.header.Product)
	}
	for {
		line, err := r.peek()
		if err != nil {
			return nil, err
		}
		m, err := parseMark(line)
		if err != nil || m.File == nil {
			return r, nil // the next read reports any error
		}
		if len(r.files) == maxFiles || len(m.File.Content) > maxFile {
			return nil, fmt.Errorf("%w (key files)", ErrDamaged)
		}
		r.files = append(r.files, *m.File)
		r.line = nil
	}
}

func (r *reader) close() {
	if r.release != nil {
		r.release()
	}
}

// wholeLines splits only at line feeds, and requires one at the end.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return 0, nil, nil
}

// peek returns the next line without consuming it.
func (r *reader) peek() ([]byte, error) {
	if r.line != nil {
		return r.line, nil
	}
	if r.lines.Scan() {
		r.line = r.lines.Bytes()
		if len(r.line) > 1 {
			if !bytes.HasPrefix(r.line, []byte(`{"end":`)) {
				r.all.Write(r.line)
			}
			return r.line, nil
		}
	}
	if err := r.lines.Err(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("%w (%w)", ErrDamaged, err)
	}
	return nil, ErrDamaged
}

func (r *reader) next() ([]byte, error) {
	line, err := r.peek()
	r.line = nil
	return line, err
}

// summary returns the summary after everything was read.
func (r *reader) summary(tables map[string]Sum) *Summary {
	s := &Summary{Header: r.header, KeyFiles: []string{}, Tables: tables}
	for _, f := range r.files {
		s.KeyFiles = append(s.KeyFiles, f.Key)
	}
	return s
}

// tables passes all tables to a sink. It fails with ErrDamaged unless everything up to the end is unchanged
// since it was written. Until it returns, what the sink has received must not be trusted.
func (r *reader) tables(to sink) (*Summary, error) {
	found := map[string]Sum{}
	one := sha256.New()
	var now tableMark
	var rows int64
	for {
		line, err := r.next()
		if err != nil {
			return nil, err
		}
		if line[0] == '[' && now.Name != "" {
			row, err := parseRow(line, now.Columns)
			if err != nil {
				return nil, fmt.Errorf("%w (%s: %w)", ErrDamaged, now.Name, err)
			}
			if err := to.row(row); err != nil {
				return nil, err
			}
			one.Write(line)
			rows++
			continue
		}
		m, err := parseMark(line)
		if err != nil || (m.Table == nil) == (m.End == nil) || m.File != nil {
			return nil, ErrDamaged
		}
		if now.Name != "" {
			found[now.Name] = Sum{Rows: rows, SHA256: hex.EncodeToString(one.Sum(nil))}
		}
		if m.End != nil {
			return r.summary(found), r.checkEnd(m.End, found)
		}
		now, rows = *m.Table, 0
		one.Reset()
		if _, twice := found[now.Name]; twice || now.Name == "" || len(now.Columns) == 0 {
			return nil, ErrDamaged
		}
		if err := to.table(sqlstore.Table{Name: now.Name, Columns: now.Columns}); err != nil {
			return nil, err
		}
	}
}

func (r *reader) checkEnd(end *endMark, found map[string]Sum) error {
	if end.SHA256 != hex.EncodeToString(r.all.Sum(nil)) || !maps.Equal(end.Tables, found) {
		return ErrDamaged
	}
	if r.lines.Scan() || r.lines.Err() != nil {
		return fmt.Errorf("%w (unexpected data at the end)", ErrDamaged)
	}
	return nil
}

// discard is a sink that discards rows.
type discard struct{}

func (discard) table(sqlstore.Table) error { return nil }
func (discard) row([]any) error            { return nil }

// Verify reads a backup to its end and returns its summary.
func Verify(in io.Reader, identities []age.Identity) (*Summary, error) {
	r, err := open(in, identities)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return r.tables(discard{})
}

// Identities reads an age identity file, as age-keygen writes it.
func Identities(in io.Reader) ([]age.Identity, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxFile))
	if err != nil {
		return nil, err
	}
	list, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil || len(list) == 0 {
		return nil, errors.New("no age identity found: use a file that age-keygen wrote; if the file is encrypted, decrypt it first")
	}
	return list, nil
}

// Recipients parses public keys, as age-keygen prints them.
func Recipients(texts []string) ([]age.Recipient, error) {
	var list []age.Recipient
	for _, text := range slices.Compact(slices.Sorted(slices.Values(texts))) {
		found, err := age.ParseRecipients(bytes.NewReader([]byte(text)))
		if err != nil || len(found) != 1 {
			// The text is not quoted, because it may be the secret key.
			return nil, errors.New("not an age recipient: use the public key that age-keygen prints, age1…")
		}
		list = append(list, found...)
	}
	return list, nil
}
