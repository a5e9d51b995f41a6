package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// decode reads a JSON body into dest, a pointer to a struct of the API. It also
// takes what older tools send: snake_case names, numbers where an id is a
// string, null and unknown members. A wrong type is an error with the member's
// path.
func decode(r *http.Request, dest any) error {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	return decodeBody(data, dest)
}

func decodeBody(data []byte, dest any) error {
	if len(strings.TrimSpace(string(data))) == 0 {
		data = []byte("{}")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return &badRequest{"", "the body is not a JSON object: " + err.Error()}
	}
	v := reflect.ValueOf(dest).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		raw, ok := members[name]
		if !ok {
			raw, ok = members[snake(name)]
		}
		if !ok || string(raw) == "null" {
			continue
		}
		if err := decodeMember(raw, v.Field(i)); err != nil {
			return &badRequest{name, fmt.Sprintf("%s: %s", name, err)}
		}
	}
	return nil
}

func decodeMember(raw json.RawMessage, field reflect.Value) error {
	text := field.Kind() == reflect.String || field.Kind() == reflect.Pointer && field.Type().Elem().Kind() == reflect.String
	if text && len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') {
		raw = []byte(`"` + string(raw) + `"`)
	}
	if at, ok := field.Addr().Interface().(**time.Time); ok {
		return decodeTime(raw, at)
	}
	err := json.Unmarshal(raw, field.Addr().Interface())
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("must be %s, not %s", wrong.Type, wrong.Value)
	}
	return err
}

// decodeTime takes RFC 3339; an empty text means unset, as older tools send.
func decodeTime(raw json.RawMessage, at **time.Time) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return errors.New("must be a time such as 2027-01-31T12:00:00Z")
	}
	if text == "" {
		return nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("%q is not a time such as 2027-01-31T12:00:00Z", text)
	}
	*at = &t
	return nil
}

// snake turns aclTags into acl_tags.
func snake(camel string) string {
	var b strings.Builder
	for _, r := range camel {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
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
