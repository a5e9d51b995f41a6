package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// decode reads a JSON body into dest, a pointer to a struct of the API. It also
// takes what older tools send: snake_case names, numbers where an id is a
// string, null and unknown members. A wrong type and a missing member that is
// required are errors with the member's path.
func decode(r *http.Request, dest any) error {
	data, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge), errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case err != nil:
		return &badRequest{"", "the body ended too early"}
	}
	return decodeBody(data, dest)
}

func decodeBody(data []byte, dest any) error {
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}")
	}
	// encoding/json would put U+FFFD in place of what is not UTF-8.
	if !utf8.Valid(data) {
		return &badRequest{"", "the body is not valid UTF-8"}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return &badRequest{"", fmt.Sprintf("the body is not JSON: %s at byte %d", err, syntax.Offset)}
		}
		return &badRequest{"", "the body must be a JSON object"}
	}
	v := reflect.ValueOf(dest).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		raw, ok := members[name]
		if !ok {
			raw, ok = members[snake(name)]
		}
		if ok && string(raw) != "null" {
			if err := decodeMember(raw, name, v.Field(i)); err != nil {
				return err
			}
		}
		if v.Field(i).Kind() == reflect.String && v.Field(i).Len() == 0 { // an optional one is a pointer
			return &badRequest{name, name + " is required"}
		}
	}
	return nil
}

func decodeMember(raw json.RawMessage, path string, v reflect.Value) error {
	want := ""
	switch v.Kind() {
	case reflect.Pointer:
		if at, ok := v.Addr().Interface().(**time.Time); ok {
			return decodeTime(raw, path, at)
		}
		v.Set(reflect.New(v.Type().Elem()))
		return decodeMember(raw, path, v.Elem())
	case reflect.Slice:
		return decodeList(raw, path, v)
	case reflect.String:
		if raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' {
			v.SetString(string(raw))
			return nil
		}
		want = "a text"
	case reflect.Bool:
		want = "true or false"
	default:
		panic("no request has a member of type " + v.Type().String())
	}
	if json.Unmarshal(raw, v.Addr().Interface()) != nil {
		return &badRequest{path, path + " must be " + want}
	}
	return nil
}

func decodeList(raw json.RawMessage, path string, v reflect.Value) error {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return &badRequest{path, path + " must be a list"}
	}
	v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
	for i, item := range items {
		if err := decodeMember(item, fmt.Sprintf("%s[%d]", path, i), v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// decodeTime takes RFC 3339; an empty text means unset, as older tools send.
func decodeTime(raw json.RawMessage, path string, at **time.Time) error {
	var text string
	if json.Unmarshal(raw, &text) == nil && text == "" {
		return nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return &badRequest{path, path + " must be a time such as 2027-01-31T12:00:00Z"}
	}
	*at = &t
	return nil
}

// snake turns aclTags into acl_tags and routableIPs into routable_ips.
func snake(camel string) string {
	var b strings.Builder
	lower := false
	for _, r := range camel {
		if lower && unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		lower = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// or gives an optional member its zero value.
func or[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
