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
	policyLimit = 2 << 20 // of the body: a policy of 1 MB and its escapes
	maxName     = 255     // bytes of a name in a path
	maxQuery    = 1 << 10 // bytes of one value of a query
)

var (
	number = regexp.MustCompile(`^[0-9]{1,19}$`)
	// keyPrefix names an API key. A whole key does not match, because URLs end up in logs.
	keyPrefix = regexp.MustCompile(`^([0-9]{1,19}|[A-Za-z0-9]{12}|flk_[A-Za-z0-9]{12}_\*\*\*)$`)
)

// operation is one call that a page may make of the server. Which ones there are is
// decided by x-console in api/openapi.yaml, from which the table operations is generated.
type operation struct {
	id     string // as in the API's document
	method string
	path   string   // below /api/v1/, with the parameters of the document
	query  []string // the parameters that pass
	limit  int64    // of the body; 0 for none
	// repeatable operations change nothing, so one is tried again if the server closes
	// the connection that carried it.
	repeatable bool
}

// takes reports whether a parameter of a path may have this value.
func takes(parameter, text string) bool {
	switch parameter {
	case "newName":
		return isName(text)
	case "prefix":
		return keyPrefix.MatchString(text)
	default: // ids and versions
		return number.MatchString(text)
	}
}

// isName is looser than the rules for names, so that the server can say what is wrong
// with one, but refuses what would change the path.
func isName(text string) bool {
	return text != "" && len(text) <= maxName && utf8.ValidString(text) && strings.Trim(text, ".") != "" &&
		!strings.ContainsFunc(text, func(c rune) bool { return strings.ContainsRune(`/\%?#;`, c) || !unicode.IsPrint(c) })
}

// match finds the operation of a method and an escaped path below /api/v1/, and returns
// the path to send, rebuilt from its parts. If the path has no such method, allow lists
// those it has.
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

// fill reads the parameters of a path and inserts them into that of the operation.
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

// filter returns the query to send, or the name of a parameter that the operation does not
// take or whose value is refused.
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
