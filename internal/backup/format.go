package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/sqlstore"
)

const (
	formatName    = "fairlead backup"
	formatVersion = 1
	// maxLine limits the length of lines, and thereby the memory of a reader.
	maxLine = 64 << 20
	// maxMark limits lines that are not rows, whose fields take many times their length in memory.
	maxMark = 1 << 20
	// maxFiles and maxFile limit the key files.
	maxFiles = 16
	maxFile  = 64 << 10
)

// Header is the first line, which describes the backup.
type Header struct {
	Format  string        `json:"format"`
	Version int           `json:"version"` // version of the format
	Product string        `json:"product"` // the version of fairlead that wrote it
	Schema  int64         `json:"schema"`  // the schema version
	Rev     mesh.Revision `json:"revision"`
	Engine  string        `json:"engine"` // sqlite or postgres
	Time    time.Time     `json:"time"`
}

// KeyFile is a file outside the database, by the configuration key that holds its path.
type KeyFile struct {
	Key     string `json:"key"`
	Content []byte `json:"content"`
}

// Sum identifies the content of a table, for comparing two copies.
type Sum struct {
	Rows   int64  `json:"rows"`
	SHA256 string `json:"sha256"`
}

// Summary describes the content of a backup.
type Summary struct {
	Header
	KeyFiles []string       `json:"keyFiles"` // the configuration keys that hold their paths
	Tables   map[string]Sum `json:"tables"`
}

// Rows returns the number of rows in all tables.
func (s *Summary) Rows() (n int64) {
	for _, t := range s.Tables {
		n += t.Rows
	}
	return n
}

// mark is a line that is neither the header nor a row: exactly one field is set.
type mark struct {
	File  *KeyFile   `json:"file,omitempty"`
	Table *tableMark `json:"table,omitempty"`
	End   *endMark   `json:"end,omitempty"`
}

// tableMark precedes the rows of a table.
type tableMark struct {
	Name    string            `json:"name"`
	Columns []sqlstore.Column `json:"columns"`
}

// endMark is the last line. SHA256 is the hash of all lines before it.
type endMark struct {
	Tables map[string]Sum `json:"tables"`
	SHA256 string         `json:"sha256"`
}

// sink receives tables one after the other, each with its rows. A sink must not keep a row after its method
// row returns.
type sink interface {
	table(t sqlstore.Table) error
	row(row []any) error
}

// writer is a sink that writes the lines of a backup.
type writer struct {
	out      io.Writer
	all, one hash.Hash // hash of all lines, and of the rows of one table
	name     string    // name of the current table
	rows     int64
	columns  []sqlstore.Column
	tables   map[string]Sum
	line     bytes.Buffer
	progress func(table string, rows int64)
}

func newWriter(out io.Writer) *writer {
	return &writer{out: out, all: sha256.New(), one: sha256.New(), tables: map[string]Sum{}, progress: func(string, int64) {}}
}

// value writes one line that is not a row.
func (w *writer) value(v any) error {
	w.line.Reset()
	enc := json.NewEncoder(&w.line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	return w.flush()
}

func (w *writer) flush() error {
	if w.line.Len() > maxLine {
		return fmt.Errorf("a row of %s is larger than %d MiB, the maximum in a backup", w.name, maxLine>>20)
	}
	w.all.Write(w.line.Bytes())
	_, err := w.out.Write(w.line.Bytes())
	return err
}

func (w *writer) table(t sqlstore.Table) error {
	w.closeTable()
	w.name, w.columns = t.Name, t.Columns
	return w.value(mark{Table: &tableMark{Name: t.Name, Columns: t.Columns}})
}

func (w *writer) row(row []any) error {
	w.line.Reset()
	if err := appendRow(&w.line, row); err != nil {
		return fmt.Errorf("table %s: %w", w.name, err)
	}
	w.one.Write(w.line.Bytes())
	if w.rows++; w.rows%1000 == 0 {
		w.progress(w.name, w.rows)
	}
	return w.flush()
}

func (w *writer) closeTable() {
	if w.name == "" {
		return
	}
	w.tables[w.name] = Sum{Rows: w.rows, SHA256: hex.EncodeToString(w.one.Sum(nil))}
	w.progress(w.name, w.rows)
	w.name, w.rows = "", 0
	w.one.Reset()
}

// end writes the last line.
func (w *writer) end() error {
	w.closeTable()
	return w.value(mark{End: &endMark{Tables: w.tables, SHA256: hex.EncodeToString(w.all.Sum(nil))}})
}

// odd is a string that JSON cannot represent.
type odd struct {
	Base64 []byte `json:"base64"`
}

func appendRow(b *bytes.Buffer, row []any) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	for i, value := range row {
		b.WriteByte(",["[bit(i == 0)])
		switch v := value.(type) {
		case int64:
			b.WriteString(strconv.FormatInt(v, 10))
			continue
		case []byte:
			b.WriteString(`"` + base64.StdEncoding.EncodeToString(v) + `"`)
			continue
		case string:
			if !utf8.ValidString(v) {
				value = odd{[]byte(v)}
			}
		}
		if err := enc.Encode(value); err != nil {
			return err
		}
		b.Truncate(b.Len() - 1) // the encoder adds a line feed
	}
	b.WriteString("]\n")
	return nil
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

var errRow = errors.New("a row does not match the columns of its table")

// parseRow is the inverse of appendRow.
func parseRow(line []byte, columns []sqlstore.Column) ([]any, error) {
	raw, err := elements(line, len(columns))
	if err != nil {
		return nil, errRow
	}
	row := make([]any, len(raw))
	for i, c := range columns {
		var err error
		switch text := raw[i]; c.Type {
		case "integer":
			row[i], err = strconv.ParseInt(string(text), 10, 64)
		case "text":
			row[i], err = parseText(text)
		case "blob":
			var encoded string
			if err = json.Unmarshal(text, &encoded); err == nil && text[0] == '"' {
				row[i], err = base64.StdEncoding.Strict().DecodeString(encoded)
			} else {
				err = errRow
			}
		default:
			err = errRow
		}
		if err != nil {
			return nil, errRow
		}
	}
	return row, nil
}

// elements splits a list of n values. It stores no more than that, because a small compressed file can
// contain a line with very many values.
func elements(line []byte, n int) ([]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	if begin, err := dec.Token(); err != nil || begin != json.Delim('[') {
		return nil, errRow
	}
	list := make([]json.RawMessage, n)
	for i := range list {
		if err := dec.Decode(&list[i]); err != nil {
			return nil, err
		}
	}
	if end, err := dec.Token(); err != nil || end != json.Delim(']') {
		return nil, errRow
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errRow
	}
	return list, nil
}

func parseText(text json.RawMessage) (string, error) {
	switch text[0] {
	case '"':
		var s string
		err := json.Unmarshal(text, &s)
		return s, err
	case '{':
		var o odd
		err := strictly(text, &o)
		return string(o.Base64), err
	}
	return "", errRow
}

// parseMark is the inverse of value.
func parseMark(line []byte) (m mark, err error) {
	if len(line) > maxMark {
		return m, errors.New("a line is too long")
	}
	err = strictly(line, &m)
	return m, err
}

// strictly decodes one JSON value and rejects unknown fields.
func strictly(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value on a line")
	}
	return nil
}
