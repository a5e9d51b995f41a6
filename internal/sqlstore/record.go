package sqlstore

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
	"tailscale.com/types/key"
)

// record binds the fields of a struct to the columns of a table. A field is stored in the column named by its
// tag column, or else by its JSON name in snake case. The fields of a nested struct are columns of the same
// row, unless the struct has that tag: then it is stored as JSON. A new field in package mesh therefore needs
// no code here, for either engine, and a column that no migration created fails at the first write.
type record struct {
	insert
	typ    reflect.Type
	fields []field // fields of the columns, in order
	// clause is appended to the query that loads the table. Some tables are not loaded.
	clause   string
	unloaded bool
}

type field struct {
	index []int
	codec codec
}

// bind returns the record for rows of the type of row. It panics if one of its fields cannot be stored, which
// is a programming error.
func bind(table string, row any) *record {
	r := &record{insert: insert{table: table}, typ: reflect.TypeOf(row)}
	r.bind(r.typ, nil)
	return r
}

func (r *record) bind(t reflect.Type, at []int) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("sqlstore: no column can hold a %v", t))
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("json") == "-" {
			continue // it is stored in another table
		}
		index := append(slices.Clip(at), i)
		if c, ok := codecOf(f); ok {
			r.columns = append(r.columns, column{columnOfField(f), c.typ})
			r.fields = append(r.fields, field{index, c})
		} else {
			r.bind(f.Type, index)
		}
	}
}

// word matches the start of each word in a JSON name.
var word = regexp.MustCompile(`([a-z0-9])([A-Z])`)

func columnOfField(f reflect.StructField) string {
	if name := f.Tag.Get("column"); name != "" {
		return name
	}
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	name = cmp.Or(name, f.Name)
	return strings.ToLower(word.ReplaceAllString(name, "${1}_$2"))
}

// values returns the column values of a row.
func (r *record) values(row any) []any {
	v := reflect.New(r.typ).Elem()
	v.Set(reflect.ValueOf(row))
	out := make([]any, len(r.fields))
	for i, f := range r.fields {
		out[i] = f.codec.value(v.FieldByIndex(f.index))
	}
	return out
}

// into returns the destinations for scanning the columns into row. Pointers in row must not be nil.
func (r *record) into(row reflect.Value) []any {
	out := make([]any, len(r.fields))
	for i, f := range r.fields {
		out[i] = f.codec.into(row.FieldByIndex(f.index))
	}
	return out
}

// scan reads one row into row, a pointer.
func (r *record) scan(from scanner, row any) error {
	return from.Scan(r.into(reflect.ValueOf(row).Elem())...)
}

// codec converts values of a type to and from a column.
type codec struct {
	typ columnType
	// value returns an int64, a string or bytes.
	value func(field reflect.Value) any
	// into returns a scan destination. Ids and times are scanned as plain integers, which saves the drivers
	// reflection.
	into func(field reflect.Value) any
}

func codecOf(f reflect.StructField) (codec, bool) {
	switch reflect.Zero(reflect.PointerTo(f.Type)).Interface().(type) {
	case *key.MachinePublic:
		return textCodec(textOf[key.MachinePublic], (*key.MachinePublic).UnmarshalText), true
	case *key.NodePublic:
		return textCodec(textOf[key.NodePublic], (*key.NodePublic).UnmarshalText), true
	case *key.DiscoPublic:
		return textCodec(discoText, parseDisco), true
	case *netip.Prefix:
		return textCodec(netip.Prefix.String, (*netip.Prefix).UnmarshalText), true
	case *netip.Addr:
		return textCodec(textOf[netip.Addr], (*netip.Addr).UnmarshalText), true
	case *[]string:
		return listCodec(func(s string) string { return s }, func(s string) (string, error) { return s, nil }), true
	case *[]netip.Prefix:
		return listCodec(netip.Prefix.String, netip.ParsePrefix), true
	case *[]netip.AddrPort:
		return listCodec(netip.AddrPort.String, netip.ParseAddrPort), true
	case *[]byte:
		return codec{
			blob,
			func(f reflect.Value) any { return notNil(f.Bytes()) },
			func(f reflect.Value) any { return f.Addr().Interface() },
		}, true
	}
	if c, ok := plainCodec(f.Type.Kind()); ok {
		return c, true
	}
	_, named := f.Tag.Lookup("column")
	return jsonCodec(), named || f.Type.Kind() == reflect.Slice
}

// plainCodec returns the codec for types that both engines store directly.
func plainCodec(kind reflect.Kind) (codec, bool) {
	pointer := func(t reflect.Type) func(reflect.Value) any {
		return func(f reflect.Value) any { return f.Addr().Convert(t).Interface() }
	}
	switch kind {
	case reflect.Int:
		return codec{integer, func(f reflect.Value) any { return f.Int() }, pointer(reflect.TypeFor[*int]())}, true
	case reflect.Int64:
		return codec{integer, func(f reflect.Value) any { return f.Int() }, pointer(reflect.TypeFor[*int64]())}, true
	case reflect.String:
		return codec{text, func(f reflect.Value) any { return f.String() }, pointer(reflect.TypeFor[*string]())}, true
	case reflect.Bool:
		return codec{
			integer,
			func(f reflect.Value) any { return bit(f.Bool()) },
			func(f reflect.Value) any { return flag{f.Addr().Interface().(*bool)} },
		}, true
	case reflect.Array: // of bytes
		return codec{
			blob,
			func(f reflect.Value) any { return slices.Clone(f.Bytes()) },
			func(f reflect.Value) any {
				return parser(func(b []byte) error {
					f.SetZero()
					copy(f.Bytes(), b)
					return nil
				})
			},
		}, true
	default:
		return codec{}, false
	}
}

func textCodec[T any](format func(T) string, parse func(*T, []byte) error) codec {
	return codec{
		text,
		func(f reflect.Value) any { return format(*f.Addr().Interface().(*T)) },
		func(f reflect.Value) any {
			p := f.Addr().Interface().(*T)
			return parser(func(text []byte) error { return parse(p, text) })
		},
	}
}

// listCodec stores a list as comma-separated text; no element contains a comma.
func listCodec[T any](format func(T) string, parse func(string) (T, error)) codec {
	return textCodec(func(list []T) string {
		texts := make([]string, len(list))
		for i, v := range list {
			texts[i] = format(v)
		}
		return strings.Join(texts, ",")
	}, func(list *[]T, text []byte) error {
		*list = nil
		if len(text) == 0 {
			return nil
		}
		*list = make([]T, 0, 1+bytes.Count(text, []byte(",")))
		for part := range strings.SplitSeq(string(text), ",") {
			v, err := parse(part)
			if err != nil {
				return err
			}
			*list = append(*list, v)
		}
		return nil
	})
}

// jsonCodec stores an empty list and an unset struct as an empty string, which is the default that a
// migration gives a new column.
func jsonCodec() codec {
	return codec{
		text,
		func(f reflect.Value) any {
			if f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0 {
				return ""
			}
			text, _ := json.Marshal(f.Interface()) // cannot fail
			return string(text)
		},
		func(f reflect.Value) any {
			return parser(func(text []byte) error {
				f.SetZero()
				if len(text) == 0 {
					return nil
				}
				return json.Unmarshal(text, f.Addr().Interface())
			})
		},
	}
}

// textOf returns the text form of a key or address; it is empty for an unset address.
func textOf[T interface{ MarshalText() ([]byte, error) }](v T) string {
	b, err := v.MarshalText()
	if err != nil {
		return ""
	}
	return string(b)
}

// discoText returns the text form of a key; it is empty for an unknown key.
func discoText(k key.DiscoPublic) string {
	if k.IsZero() {
		return ""
	}
	return textOf(k)
}

func parseDisco(k *key.DiscoPublic, text []byte) error {
	if len(text) == 0 {
		*k = key.DiscoPublic{}
		return nil
	}
	return k.UnmarshalText(text)
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// flag scans an integer of either driver into a bool.
type flag struct{ p *bool }

// ScanInt64 implements pgtype.Int64Scanner.
func (f flag) ScanInt64(n pgtype.Int8) error {
	*f.p = n.Int64 != 0
	return nil
}

// Scan implements sql.Scanner.
func (f flag) Scan(value any) error {
	n, ok := value.(int64)
	if !ok {
		return fmt.Errorf("expected an integer, found %T", value)
	}
	*f.p = n != 0
	return nil
}

// parser scans text or bytes of either driver without converting them to a string.
type parser func([]byte) error

// ScanBytes implements pgtype.BytesScanner.
func (p parser) ScanBytes(b []byte) error { return p(b) }

// Scan implements sql.Scanner.
func (p parser) Scan(value any) error {
	switch v := value.(type) {
	case string:
		return p([]byte(v))
	case []byte:
		return p(v)
	}
	return fmt.Errorf("expected text or bytes, found %T", value)
}
