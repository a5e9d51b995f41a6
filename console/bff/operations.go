package bff

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	bodyLimit   = 256 << 10
	policyLimit = 2 << 20 // a policy of 1 MB, escaped as JSON
	maxName     = 255     // maximum length of a name in a path, in bytes
	maxQuery    = 1 << 10 // maximum length of one query value, in bytes
)

var (
	number = regexp.MustCompile(`^[0-9]{1,19}$`)
	// keyPrefix matches the number, id or masked form of an API key. It does not match a whole key, because
	// URLs end up in logs.
	keyPrefix = regexp.MustCompile(`^([0-9]{1,19}|[A-Za-z0-9_-]{12}|[A-Za-z0-9_-]{7}|flk_[A-Za-z0-9_-]{7,12}_\*\*\*)$`)
)

// operation is one API call that a page may make. The table operations is generated from x-console in
// api/openapi.yaml.
type operation struct {
	id     string // the operationId in openapi.yaml
	method string
	path   string   // below /api/v1/, with the parameters as in openapi.yaml
	query  []string // the allowed query parameters
	limit  int64    // maximum length of the body in bytes; 0 for no body
	// repeatable operations change nothing, so they are retried if the server closes the connection.
	repeatable bool
	// member operations are available to people with the role member.
	member bool
}

// takes reports whether a path parameter may have this value.
func takes(parameter, text string) bool {
	switch parameter {
	case "newName":
		return isName(text)
	case "prefix":
		return keyPrefix.MatchString(text)
	default: // parameters that are ids or versions
		return number.MatchString(text)
	}
}

// isName reports whether text may be sent as a name. It accepts more than the rules for names allow, so that
// the server can explain what is wrong, but no text that would change the path.
func isName(text string) bool {
	return text != "" && len(text) <= maxName && utf8.ValidString(text) && strings.Trim(text, ".") != "" &&
		!strings.ContainsFunc(text, func(c rune) bool { return strings.ContainsRune(`/\%?#;`, c) || !unicode.IsPrint(c) })
}

// match finds the operation for a method and an escaped path below /api/v1/, and returns the path to send,
// rebuilt from its parts. If the path exists but not with that method, allow lists the methods it has.
func match(all []operation, method, escaped string) (found operation, path string, allow []string) {
	for _, op := range all {
		p, ok := op.fill(escaped)
		switch {
		case !ok:
		case op.method == method:
			return op, p, nil
		default:
			allow = append(allow, op.method)
		}
	}
	return operation{}, "", allow
}

// fill extracts the parameters from a path and inserts them into the path of the operation.
func (op operation) fill(escaped string) (path string, ok bool) {
	template, given := strings.Split(op.path, "/"), strings.Split(escaped, "/")
	if len(template) != len(given) {
		return "", false
	}
	for i, part := range template {
		parameter, isParameter := strings.CutPrefix(part, "{")
		if !isParameter {
			if given[i] != part {
				return "", false
			}
			continue
		}
		text, err := url.PathUnescape(given[i])
		if err != nil || !takes(strings.TrimSuffix(parameter, "}"), text) {
			return "", false
		}
		template[i] = url.PathEscape(text)
	}
	return strings.Join(template, "/"), true
}

// filter returns the query to send, or the name of a parameter that the operation does not accept or whose
// value is invalid.
func (op operation) filter(raw string) (query, refused string) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return "", "(unreadable)"
	}
	for _, name := range sortedKeys(values) {
		for _, text := range values[name] {
			if !slices.Contains(op.query, name) || len(text) > maxQuery || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
				return "", name
			}
		}
	}
	return values.Encode(), ""
}
