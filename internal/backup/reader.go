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

// Errors that a caller tells apart.
var (
	// ErrDamaged says that a backup is not what was written.
	ErrDamaged = errors.New("the backup is damaged or cut short: use another one")
	// ErrNotBackup says that a file never was one.
	ErrNotBackup = errors.New("this is no backup of fairlead")
	// ErrEncrypted says that no identity opens a backup.
	ErrEncrypted = errors.New("the backup is encrypted: name the file with the right identity with --identity; " +
		"what needs a passphrase or a plugin, decrypt with age and pass it on: age --decrypt FILE | fairlead restore -")
	// ErrNewer says that a later fairlead made a backup.
	ErrNewer = errors.New("the backup is of a newer fairlead than this one")
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
	line    []byte // the next one; nil before it is read
	all     hash.Hash
	release func()
}

// open finds out what in is, decrypts it if it must, and reads header and key
// files.
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

// openLines begins to read what is neither encrypted nor compressed.
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
		return nil, fmt.Errorf("%w: version %d of the format, made by fairlead %s: use that version", ErrNewer, r.header.Version, r.header.Product)
	}
	for {
		line, err := r.peek()
		if err != nil {
			return nil, err
		}
		m, err := parseMark(line)
		if err != nil || m.File == nil {
			return r, nil // whoever reads on says what is wrong, if anything is
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

// wholeLines splits at line feeds alone, and wants one at the end.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return 0, nil, nil
}

// peek returns the next line, which stays the next.
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

// summary is what is known once all was read.
func (r *reader) summary(tables map[string]Sum) *Summary {
	s := &Summary{Header: r.header, KeyFiles: []string{}, Tables: tables}
	for _, f := range r.files {
		s.KeyFiles = append(s.KeyFiles, f.Key)
	}
	return s
}

// tables hands all tables on. It fails with ErrDamaged unless everything up to
// the end is as it was written; until it returns, what to was given is not to
// be trusted.
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
		return fmt.Errorf("%w (something follows its end)", ErrDamaged)
	}
	return nil
}

// nowhere is a sink that only reads.
type nowhere struct{}

func (nowhere) table(sqlstore.Table) error { return nil }
func (nowhere) row([]any) error            { return nil }

// Verify reads a backup to its end and says what it holds.
func Verify(in io.Reader, identities []age.Identity) (*Summary, error) {
	r, err := open(in, identities)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return r.tables(nowhere{})
}

// Identities reads the file of an age identity, as age-keygen writes it.
func Identities(in io.Reader) ([]age.Identity, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxFile))
	if err != nil {
		return nil, err
	}
	list, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil || len(list) == 0 {
		return nil, errors.New("it holds no identity as age-keygen writes it; one that is itself encrypted must be decrypted first")
	}
	return list, nil
}

// Recipients parses public keys, as age-keygen prints them.
func Recipients(texts []string) ([]age.Recipient, error) {
	var list []age.Recipient
	for _, text := range slices.Compact(slices.Sorted(slices.Values(texts))) {
		found, err := age.ParseRecipients(bytes.NewReader([]byte(text)))
		if err != nil || len(found) != 1 {
			return nil, errors.New("no recipient of age: give what age-keygen calls the public key, age1…") // its text may be the secret one
		}
		list = append(list, found...)
	}
	return list, nil
}
