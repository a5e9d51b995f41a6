package mesh

import (
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"reflect"

	"tailscale.com/types/key"
)

// Digest returns a digest of s. Equal snapshots have equal digests, and different ones
// differ except with negligible probability. It covers every field of every noun. The
// digest of a page is kept with the page, so repeated calls cost only what changed.
func (s *Snapshot) Digest() string {
	h := sha256.New()
	h.Write(fields(nil).int(int64(s.Rev)).all(&s.Counters))
	for _, t := range s.tables() {
		t.digest(h)
	}
	h.Write(s.policySum[:])
	return hex.EncodeToString(h.Sum(nil))
}

// anyTable is a table of any noun.
type anyTable interface {
	digest(h hash.Hash)
	noun() reflect.Type
}

func (s *Snapshot) tables() []anyTable {
	return []anyTable{
		&s.Users, &s.Nodes, &s.PreAuthKeys, &s.APIKeys, &s.Logins, &s.Settings, &s.SSHGrants, &s.Webhooks, &s.Facts, &s.Receipts, &s.Sessions, &s.Passkeys, &s.Invitations,
		&s.Groups, &s.Rechecks, &s.Reservations, &s.Relays,
	}
}

// digestVersion is incremented if the same fields with the same values get a different
// digest.
const digestVersion = 4

// DigestForm identifies which fields digests cover. Replicas with different forms, because
// one knows a field that the other does not, cannot compare digests.
func DigestForm() int {
	h := fnv.New32a()
	fmt.Fprintln(h, digestVersion)
	describe(h, reflect.TypeFor[Counters]())
	for _, t := range Empty().tables() {
		describe(h, t.noun())
	}
	describe(h, reflect.TypeFor[Policy]())
	return int(h.Sum32())
}

// describe writes the names and types of all fields of a type.
func describe(w io.Writer, t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.PkgPath() != reflect.TypeFor[Snapshot]().PkgPath() || t.Kind() != reflect.Struct {
		return
	}
	for f := range t.Fields() {
		fmt.Fprintln(w, t.Name(), f.Name, f.Type)
		describe(w, f.Type)
	}
}

func (t *Table[ID, V]) noun() reflect.Type { return reflect.TypeFor[V]() }

func (t *Table[ID, V]) digest(h hash.Hash) {
	h.Write(fields(nil).int(int64(t.count)))
	var buf fields
	for p := range t.pages() {
		sum := p.sum.Load()
		if sum == nil {
			buf = buf[:0]
			for _, v := range p.vals {
				if v != nil {
					buf = buf.all(v)
				}
			}
			fresh := sha256.Sum256(buf)
			sum = &fresh
			p.sum.Store(sum)
		}
		h.Write(sum[:])
	}
}

// fields builds an encoding in which different values have different bytes.
type fields []byte

func (f fields) int(n int64) fields { return binary.AppendVarint(f, n) }

func (f fields) bool(b bool) fields {
	if b {
		return append(f, 1)
	}
	return append(f, 0)
}

// all adds every field of the struct that p points to.
func (f fields) all(p any) fields { return f.value(reflect.ValueOf(p).Elem()) }

func (f fields) value(v reflect.Value) fields {
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		return f.int(v.Int())
	case reflect.String:
		return append(f.int(int64(v.Len())), v.String()...)
	case reflect.Bool:
		return f.bool(v.Bool())
	case reflect.Pointer:
		if f = f.bool(v.IsNil()); v.IsNil() {
			return f
		}
		return f.value(v.Elem())
	case reflect.Slice:
		f = f.int(int64(v.Len()))
		for i := range v.Len() {
			f = f.value(v.Index(i))
		}
		return f
	case reflect.Array: // of bytes
		return append(f, v.Bytes()...)
	case reflect.Struct:
		return f.structure(v)
	default:
		panic(fmt.Sprintf("mesh: a digest cannot cover a %v", v.Type()))
	}
}

// structure adds the binary form of a key or an address, or the fields of any other struct.
func (f fields) structure(v reflect.Value) fields {
	switch p := v.Addr().Interface().(type) {
	case *key.MachinePublic:
		return append(f, p.UntypedBytes()...) //nolint:staticcheck // never parsed: digests are only compared
	case *key.NodePublic:
		return p.AppendTo(f)
	case *key.DiscoPublic:
		return p.AppendTo(f)
	case encoding.BinaryAppender: // an address
		start := len(f)
		f, _ = p.AppendBinary(append(f, 0, 0, 0, 0)) // cannot fail
		binary.BigEndian.PutUint32(f[start:], uint32(len(f)-start-4))
		return f
	}
	for i := range v.NumField() {
		f = f.value(v.Field(i))
	}
	return f
}
