package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of a request body. They are stricter for callers without an API key, who must not be able
// to cause much work at little cost.
const (
	maxBody              = 1 << 20
	bodyTimeout          = 30 * time.Second
	maxStrangersBody     = 64 << 10
	strangersBodyTimeout = 5 * time.Second
	maxList              = 1000
)

// decode reads a JSON body into dest, a pointer to a struct of the API. It also accepts what older
// tools send: snake_case names, numbers where an id is a string, null and unknown fields. A wrong
// type and a missing required field are errors with the field's path.
func decode(w http.ResponseWriter, r *http.Request, dest any) error {
	return decodeUpTo(w, r, maxBody, dest)
}

// decodeKnown is decode for requests in which a misspelt field would do harm: it refuses unknown
// fields.
func decodeKnown(w http.ResponseWriter, r *http.Request, dest any) error {
	data, err := readBody(w, r, maxBody)
	if err != nil {
		return err
	}
	if err := decodeBody(data, dest); err != nil {
		return err
	}
	return onlyKnown(data, dest)
}

// decodeOrNone is decode for requests in which a missing field means "none", as existing tools
// send them. A body without the field is accepted only if it is an object without unknown fields:
// a misspelt name, or a file that could not be read, must not remove anything.
func decodeOrNone(w http.ResponseWriter, r *http.Request, limit int64, dest any, name string, isMissing func() bool) error {
	data, err := readBody(w, r, limit)
	if err == nil {
		err = decodeBody(data, dest)
	}
	switch {
	case err != nil || !isMissing():
		return err
	case !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")):
		return &badRequest{name, name + " is required"}
	}
	return onlyKnown(data, dest)
}

// onlyKnown refuses fields that dest does not have.
func onlyKnown(data []byte, dest any) error {
	members, _ := membersOf(data)
	var known []string
	for f := range reflect.TypeOf(dest).Elem().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known = append(known, name)
		delete(members, name)
		delete(members, snake(name))
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		name = fmt.Sprintf("%.100s", name)
		return &badRequest{name, fmt.Sprintf("unknown field %q: nothing was changed; known fields are %s", name, strings.Join(known, ", "))}
	}
	return nil
}

// decodeUpTo is decode with a different size limit for callers with an API key.
func decodeUpTo(w http.ResponseWriter, r *http.Request, limit int64, dest any) error {
	data, err := readBody(w, r, limit)
	if err != nil {
		return err
	}
	return decodeBody(data, dest)
}

func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	timeout := bodyTimeout
	if open(r) {
		limit, timeout = maxStrangersBody, strangersBodyTimeout
	}
	// If the deadline cannot be set, there is no real connection that could be held open.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout))
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge), errors.Is(err, os.ErrDeadlineExceeded):
		return nil, err
	case err != nil:
		return nil, &badRequest{"", "the request body is incomplete"}
	}
	return data, nil
}

func decodeBody(data []byte, dest any) error {
	members, err := membersOf(data)
	if err != nil {
		return err
	}
	if where, problem := decodeMembers(members, reflect.ValueOf(dest).Elem()); problem != "" {
		return &badRequest{where, where + " " + problem}
	}
	return nil
}

func membersOf(data []byte) (members map[string]json.RawMessage, _ error) {
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}")
	}
	// encoding/json would replace invalid UTF-8 with U+FFFD.
	if !utf8.Valid(data) {
		return nil, &badRequest{"", "the request body is not valid UTF-8"}
	}
	if err := json.Unmarshal(data, &members); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, &badRequest{"", fmt.Sprintf("the request body is not valid JSON: %s at byte %d", err, syntax.Offset)}
		}
		return nil, &badRequest{"", "the request body must be a JSON object"}
	}
	return members, nil
}

// decodeMembers fills a struct. If a field is invalid, it returns the field's path and the
// problem.
func decodeMembers(members map[string]json.RawMessage, v reflect.Value) (where, problem string) {
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		raw, ok := members[name]
		if !ok {
			raw, ok = members[snake(name)]
		}
		given := ok && string(raw) != "null"
		if given {
			if where, problem := decodeMember(raw, v.Field(i)); problem != "" {
				return name + where, problem
			}
		}
		// Optional fields are pointers.
		if kind := v.Field(i).Kind(); kind == reflect.String && v.Field(i).Len() == 0 || kind == reflect.Int && !given {
			return name, "is required"
		}
	}
	return "", ""
}

// decodeMember sets v from raw. If raw does not fit, it returns the problem, and where in v it is.
func decodeMember(raw json.RawMessage, v reflect.Value) (where, problem string) {
	var want string
	switch v.Kind() {
	case reflect.Pointer:
		if at, ok := v.Addr().Interface().(**time.Time); ok {
			return "", decodeTime(raw, at)
		}
		v.Set(reflect.New(v.Type().Elem()))
		return decodeMember(raw, v.Elem())
	case reflect.Slice:
		return decodeList(raw, v)
	case reflect.Map:
		return decodeMap(raw, v)
	case reflect.Struct:
		var members map[string]json.RawMessage
		if raw[0] != '{' || json.Unmarshal(raw, &members) != nil {
			return "", "must be an object"
		}
		where, problem = decodeMembers(members, v)
		return "." + where, problem
	case reflect.String:
		if raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' {
			v.SetString(string(raw))
			return "", ""
		}
		want = "a string"
	case reflect.Bool:
		want = "true or false"
	case reflect.Int:
		raw, want = bytes.Trim(raw, `"`), "a whole number"
	default:
		panic("unsupported member type " + v.Type().String())
	}
	if json.Unmarshal(raw, v.Addr().Interface()) != nil {
		return "", "must be " + want
	}
	return "", ""
}

func decodeMap(raw json.RawMessage, v reflect.Value) (where, problem string) {
	var members map[string]json.RawMessage
	if raw[0] != '{' || json.Unmarshal(raw, &members) != nil {
		return "", "must be an object"
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		item := reflect.New(v.Type().Elem()).Elem()
		if where, problem := decodeMember(members[name], item); problem != "" {
			return fmt.Sprintf(".%.100s%s", name, where), problem
		}
		v.SetMapIndex(reflect.ValueOf(name), item)
	}
	return "", ""
}

func decodeList(raw json.RawMessage, v reflect.Value) (where, problem string) {
	if raw[0] != '[' {
		return "", "must be a list"
	}
	items := json.NewDecoder(bytes.NewReader(raw))
	_, _ = items.Token() // raw is valid, so there is no error
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	var item json.RawMessage
	for i := 0; items.More(); i++ {
		if i == maxList {
			return "", fmt.Sprintf("must have at most %d elements", maxList)
		}
		_ = items.Decode(&item)
		v.Grow(1)
		v.SetLen(i + 1)
		if where, problem := decodeMember(item, v.Index(i)); problem != "" {
			return fmt.Sprintf("[%d]%s", i, where), problem
		}
	}
	return "", ""
}

// decodeTime parses a time in RFC 3339 format. An empty string, which older tools send, means not
// set.
func decodeTime(raw json.RawMessage, at **time.Time) (problem string) {
	var text string
	if json.Unmarshal(raw, &text) == nil && text == "" {
		return ""
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "must be a time such as 2027-01-31T12:00:00Z"
	}
	*at = &t
	return ""
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

// or returns the value of an optional field, or its zero value.
func or[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
