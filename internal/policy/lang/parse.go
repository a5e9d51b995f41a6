package lang

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// Limits of a document. Real policies are far smaller. The limits bound the time that a
// hostile text can take.
const (
	maxDoc = 1 << 20
	// maxBrackets limits the number of lists and objects, and thereby how deeply values
	// can be nested and how much stack parsing uses.
	maxBrackets = 100_000
	// maxDepth limits the nesting of values that are passed on to clients.
	maxDepth    = 32
	maxRules    = 10_000 // maximum length of each list
	maxTargets  = 100_000
	maxSetSteps = 100_000 // maximum cost of building ipsets; see buildSteps
	maxProblems = 20
)

// The fields of a document, in the order in which they are read: definitions before their
// uses.
const (
	memberGroups        = "groups"
	memberHosts         = "hosts"
	memberSets          = "ipsets"
	memberOwners        = "tagOwners"
	memberACLs          = "acls"
	memberGrants        = "grants"
	memberSSH           = "ssh"
	memberApprovers     = "autoApprovers"
	memberAttributes    = "nodeAttrs"
	memberRandomizePort = "randomizeClientPort"
	memberTests         = "tests"
	memberSSHTests      = "sshTests"
)

// Parse reads a policy in HuJSON, which is JSON with comments and trailing commas. If
// there are problems, the document is nil.
func Parse(text []byte) (*Doc, Problems) {
	doc, problems := parse(text)
	if len(problems) > 0 {
		return nil, problems
	}
	return doc, nil
}

// parse is Parse, but returns what it could read of a document with problems. The document
// is nil if it is no HuJSON.
func parse(text []byte) (*Doc, Problems) {
	r := &reader{text: text, doc: &Doc{
		Groups: map[string][]string{}, MemberLines: map[string][]Line{}, Hosts: map[string]netip.Prefix{},
		TagOwners: map[string][]string{}, users: map[string]bool{}, Provided: map[string]Problem{}, groupsAt: map[string]Problem{},
	}}
	for i, c := range text {
		if c == '\n' {
			r.newlines = append(r.newlines, i)
		}
	}
	switch {
	case len(text) > maxDoc:
		return nil, Problems{{Text: fmt.Sprintf("the policy is larger than %d KiB", maxDoc>>10)}}
	case bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > maxBrackets:
		return nil, Problems{{Text: fmt.Sprintf("the policy has more than %d lists and objects", maxBrackets)}}
	case len(bytes.TrimSpace(text)) == 0:
		return nil, Problems{{Text: "the policy is empty: use {} to let all nodes reach each other"}}
	case bytes.HasPrefix(text, []byte("\ufeff")):
		return nil, Problems{{Line: 1, Column: 1, Text: "the policy begins with a byte order mark: save it as UTF-8 without one"}}
	case !utf8.Valid(text):
		r.problem(invalidAt(text), "the policy is not valid UTF-8")
		return nil, r.problems
	}
	root, err := hujson.Parse(text)
	if err != nil {
		r.syntax(err)
		return nil, r.problems
	}
	r.document(root)
	slices.SortStableFunc(r.problems, Problem.compare)
	return r.doc, r.problems
}

func (r *reader) document(root hujson.Value) {
	m, ok := r.fields(root, "the policy",
		memberGroups, memberHosts, memberSets, memberOwners, memberACLs, memberGrants, memberSSH,
		memberApprovers, memberAttributes, memberRandomizePort, memberTests, memberSSHTests)
	if !ok {
		return
	}
	for _, member := range []struct {
		name string
		read func(hujson.Value)
	}{
		{memberGroups, r.groups},
		{memberHosts, r.readHosts},
		{memberSets, r.readSets},
		{memberOwners, r.owners},
		{memberACLs, r.acls},
		{memberGrants, r.grants},
		{memberSSH, r.ssh},
		{memberApprovers, r.approvers},
		{memberAttributes, r.attributes},
		{memberRandomizePort, func(v hujson.Value) { r.doc.RandomizeClientPort = r.boolean(v, memberRandomizePort) }},
		{memberTests, r.tests},
		{memberSSHTests, r.sshTests},
	} {
		if v, ok := m[member.name]; ok {
			member.read(v)
		}
	}
	_, hasACLs := m[memberACLs]
	_, hasGrants := m[memberGrants]
	if !hasACLs && !hasGrants {
		r.doc.Rules = []Rule{AllowAll()}
	}
}

// invalidAt returns the offset of the first byte that is not valid UTF-8. There must be
// one.
func invalidAt(text []byte) int {
	for i := 0; ; {
		c, size := utf8.DecodeRune(text[i:])
		if c == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
}

// reader parses a document and collects its problems.
type reader struct {
	text     []byte
	newlines []int // offsets of the newlines in text
	doc      *Doc
	hosts    map[string][]netip.Prefix
	sets     map[string]*ipset
	targets  int // number of targets read so far
	setSteps int // cost of building ipsets so far; see buildSteps
	problems Problems
}

// line returns the line of an offset.
func (r *reader) line(at int) Line {
	before, _ := slices.BinarySearch(r.newlines, at)
	return Line(before + 1)
}

// column returns the column of an offset in characters, from 1.
func (r *reader) column(at int) int {
	start := 0
	if line := r.line(at); line > 1 {
		start = r.newlines[line-2] + 1
	}
	return 1 + utf8.RuneCount(r.text[start:at])
}

// full reports whether there are enough problems to stop reading.
func (r *reader) full() bool { return len(r.problems) >= maxProblems }

func (r *reader) problem(at int, format string, args ...any) {
	if r.full() {
		return
	}
	r.problems = append(r.problems, r.found(at, format, args...))
}

func (r *reader) found(at int, format string, args ...any) Problem {
	return Problem{Line: int(r.line(at)), Column: r.column(at), Text: shortened(fmt.Sprintf(format, args...))}
}

// warn adds a warning about text that is valid but may not mean what was intended.
func (r *reader) warn(at int, format string, args ...any) {
	if len(r.doc.Warnings) >= maxWarnings {
		return
	}
	r.doc.Warnings = append(r.doc.Warnings, r.found(at, format, args...))
}

// syntax turns an error of the JSON parser, whose columns count bytes, into a
// problem.
func (r *reader) syntax(err error) {
	text := strings.TrimPrefix(err.Error(), "hujson: ")
	var line, column int
	if n, _ := fmt.Sscanf(text, "line %d, column %d:", &line, &column); n < 2 || line > len(r.newlines)+1 {
		r.problems = append(r.problems, Problem{Text: text})
		return
	}
	at := column - 1
	if line > 1 {
		at += r.newlines[line-2] + 1
	}
	_, text, _ = strings.Cut(text, ": ")
	r.problem(min(at, len(r.text)), "%s", text)
}

// fields reads an object with known field names, ignoring case. An unknown or duplicate
// field is a problem; a field whose name begins with "#" is a comment.
func (r *reader) fields(v hujson.Value, what string, known ...string) (map[string]hujson.Value, bool) {
	found := map[string]hujson.Value{}
	ok := r.members(v, what, func(name string, key, value hujson.Value) {
		i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) })
		switch {
		case strings.HasPrefix(name, "#"):
		case i >= 0:
			if _, twice := found[known[i]]; twice {
				r.problem(key.StartOffset, "duplicate %q in %s", known[i], what)
			}
			found[known[i]] = value
		case unsupported(name):
			r.problem(key.StartOffset, "%q is not supported", name)
		default:
			r.problem(key.StartOffset, "unknown field %q in %s%s", name, what, Nearest(name, known))
		}
	})
	return found, ok
}

// unsupported reports whether a field belongs to Tailscale's policy language but is not
// supported here.
func unsupported(name string) bool {
	switch strings.ToLower(name) {
	case "postures", "srcposture", "defaultsrcposture", "srcpostureattrs", "derpmap", "disableipv4",
		"onecgnatroute", "ippool", "services", "extradnsrecords", "recorder", "enforcerecorder":
		return true
	}
	return false
}

// require adds a problem for each required field that an object lacks.
func (r *reader) require(v hujson.Value, what string, m map[string]hujson.Value, names ...string) bool {
	all := true
	for _, name := range names {
		if _, ok := m[name]; !ok {
			r.problem(v.StartOffset, "missing %s in %s", name, what)
			all = false
		}
	}
	return all
}

// members calls each with the fields of an object. A name that appears twice is a
// problem: parsers disagree on which of the two applies.
func (r *reader) members(v hujson.Value, what string, each func(name string, key, value hujson.Value)) bool {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		r.problem(v.StartOffset, "%s must be an object", what)
		return false
	}
	seen := map[string]bool{}
	for _, m := range object.Members {
		name := textOf(m.Name)
		if seen[name] {
			r.problem(m.Name.StartOffset, "duplicate %q in %s", name, what)
			continue
		}
		seen[name] = true
		if !r.full() {
			each(name, m.Name, m.Value)
		}
	}
	return true
}

// list calls each with the elements of a list.
func (r *reader) list(v hujson.Value, what string, each func(hujson.Value)) {
	list, ok := v.Value.(*hujson.Array)
	if !ok {
		r.problem(v.StartOffset, "%s must be a list", what)
		return
	}
	for _, e := range list.Elements {
		if !r.full() {
			each(e)
		}
	}
}

// entry describes the objects in a list: what messages call one, the fields that it may
// have, and those that it must have.
type entry struct {
	what              string
	members, required []string
}

// entries calls each with the valid objects in a list. It adds problems for invalid ones,
// and if there are more than maxRules.
func (r *reader) entries(v hujson.Value, list string, kind entry, each func(e hujson.Value, m map[string]hujson.Value)) {
	n := 0
	r.list(v, list, func(e hujson.Value) {
		if n++; n == maxRules+1 {
			r.problem(e.StartOffset, "%s has more than %d entries", list, maxRules)
		}
		if n > maxRules {
			return
		}
		if m, ok := r.fields(e, kind.what, kind.members...); ok && r.require(e, kind.what, m, kind.required...) {
			each(e, m)
		}
	})
}

// names calls each with the strings of a list.
func (r *reader) names(v hujson.Value, what string, each func(name string, at int)) {
	r.list(v, what, func(e hujson.Value) {
		if name, ok := r.string(e, "each of "+what); ok {
			each(name, e.StartOffset)
		}
	})
}

func (r *reader) string(v hujson.Value, what string) (string, bool) {
	if v.Value.Kind() != '"' {
		r.problem(v.StartOffset, "%s must be a string", what)
		return "", false
	}
	return textOf(v), true
}

func (r *reader) boolean(v hujson.Value, what string) bool {
	literal, _ := v.Value.(hujson.Literal)
	if kind := v.Value.Kind(); kind != 't' && kind != 'f' {
		r.problem(v.StartOffset, "%s must be true or false", what)
	}
	return literal.Bool()
}

// textOf returns the text of a value that is known to be a string, such as a field name.
func textOf(v hujson.Value) string {
	literal, _ := v.Value.(hujson.Literal)
	return literal.String()
}
