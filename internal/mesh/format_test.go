package mesh_test

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/mesh/meshgen"
)

// A binary must be able to read what it writes: a new case of formatOf also needs a higher Format.
func TestBinaryKnowsTheFormatOfItsEvents(t *testing.T) {
	for _, e := range mesh.Events() {
		if needed := mesh.FormatOf([]mesh.Event{meshgen.Fill(e)}); needed > mesh.Format {
			t.Errorf("%s needs format %d, and this binary knows formats up to %d", e.Kind(), needed, mesh.Format)
		}
	}
}

// fieldsOfFirstRelease is the number of lines in testdata/event-fields.txt that name no format, because every release knows these
// fields. It does not change after the first release.
const fieldsOfFirstRelease = 312

// A replica of an older release would lose a field that it does not know, so a new field needs a format.
func TestEachNewFieldOfAnEventHasAFormat(t *testing.T) {
	text, err := os.ReadFile("testdata/event-fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	formats, first := map[string]int{}, 0
	for line := range strings.Lines(string(text)) {
		field, format, named := strings.Cut(strings.TrimSpace(line), " since format ")
		if formats[field], err = strconv.Atoi(format); named && err != nil {
			t.Errorf("%q: %v", line, err)
		}
		if !named {
			first++
		}
	}
	if first != fieldsOfFirstRelease {
		t.Errorf("%d lines name no format, want %d: the fields of the first release", first, fieldsOfFirstRelease)
	}
	for _, e := range mesh.Events() {
		known := mesh.FormatOf([]mesh.Event{meshgen.Fill(e)})
		for _, field := range fields(reflect.TypeOf(e), string(e.Kind())+" ") {
			format, listed := formats[field]
			delete(formats, field)
			if !listed {
				t.Errorf("new field %s: give it a format in formatOf, and add the line %q to testdata/event-fields.txt", field, fmt.Sprintf("%s since format %d", field, mesh.Format+1))
			}
			if format > known {
				t.Errorf("formatOf returns %d for an event with the field %s, want %d", known, field, format)
			}
		}
	}
	for field := range formats {
		t.Errorf("the field %s no longer exists: a payload only grows", field)
	}
}

// fields returns the paths of the values in the JSON form of a type, after a prefix.
func fields(of reflect.Type, prefix string) (paths []string) {
	if slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map}, of.Kind()) {
		return fields(of.Elem(), prefix)
	}
	encoded := of.Implements(reflect.TypeFor[json.Marshaler]()) || of.Implements(reflect.TypeFor[encoding.TextMarshaler]())
	if of.Kind() != reflect.Struct || encoded || !strings.HasPrefix(of.PkgPath(), "github.com/fairlead-mesh/") {
		return []string{strings.TrimSuffix(prefix, ".")}
	}
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "-" {
			paths = append(paths, fields(f.Type, prefix+cmp.Or(name, f.Name)+".")...)
		}
	}
	return paths
}
