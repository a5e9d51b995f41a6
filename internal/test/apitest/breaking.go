package apitest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Break is a difference between two documents that may break clients of the older one.
type Break struct {
	// Where is an operation, as "GET /api/v1/user", or the name of a schema.
	Where string
	Text  string
}

func (b Break) String() string { return b.Where + ": " + b.Text }

// Breaking compares two documents. A change breaks requests if less is accepted or more is required, and
// responses if less is promised. Additions do not break anything, including new values of an enumeration in a
// response, which clients must expect.
func Breaking(before, after []byte) ([]Break, error) {
	old, err := Load(before)
	if err != nil {
		return nil, fmt.Errorf("the document before: %w", err)
	}
	now, err := Load(after)
	if err != nil {
		return nil, fmt.Errorf("the document after: %w", err)
	}
	c := &comparison{seen: map[string]bool{}}
	for _, name := range slices.Sorted(maps.Keys(old.operations)) {
		c.where = name
		if op, ok := now.operations[name]; ok {
			c.operation(old.operations[name], op)
			c.parameters(old.parametersOf(name), now.parametersOf(name))
		} else {
			c.breaks("the operation is gone")
		}
	}
	return c.found, nil
}

// Unannounced returns the breaks that no changelog entry above the section of the release since announces. If
// since is empty, before the first release, all sections count. An entry announces a break with "**CHANGE**
// API:" and the operation or schema in backquotes. It is an error if the last release in the changelog is not
// since.
func Unannounced(breaks []Break, changelog, since string) (left []Break, err error) {
	_, sections, _ := strings.Cut(changelog, "\n## ")
	var announced string
	for i, section := range strings.Split(sections, "\n## ") {
		title, entries, _ := strings.Cut(section, "\n")
		version, _, _ := strings.Cut(title, " ")
		if version == since {
			since = ""
			break
		}
		// A release gets its section before its snapshot, so the first may be unknown, but no other.
		if i > 0 {
			return nil, fmt.Errorf("the changelog has a release %s, of which there is no snapshot: make release writes it at the tag", version)
		}
		for _, entry := range strings.Split(entries, "\n- ") {
			if strings.HasPrefix(strings.TrimPrefix(entry, "- "), "**CHANGE** API:") {
				announced += entry
			}
		}
	}
	if since != "" {
		return nil, fmt.Errorf("the changelog has no section about the release %s", since)
	}
	return slices.DeleteFunc(slices.Clone(breaks), func(b Break) bool { return strings.Contains(announced, "`"+b.Where+"`") }), nil
}

// parametersOf returns the parameters of an operation, including those of its path, by location and name.
func (c *Contract) parametersOf(operation string) map[string]*openapi3.Parameter {
	all := map[string]*openapi3.Parameter{}
	_, path, _ := strings.Cut(operation, " ")
	for _, p := range slices.Concat(c.Document.Paths.Value(path).Parameters, c.operations[operation].Parameters) {
		all[p.Value.In+" parameter "+p.Value.Name] = p.Value
	}
	return all
}

// direction is which side sends a value.
type direction string

const (
	request direction = "request"
	answer  direction = "answer"
)

type comparison struct {
	where string
	found []Break
	// seen holds the pairs of named schemas that were compared, each in a direction, so that each problem is
	// reported once.
	seen map[string]bool
}

func (c *comparison) breaks(format string, args ...any) {
	c.found = append(c.found, Break{c.where, fmt.Sprintf(format, args...)})
}

func (c *comparison) operation(old, now *openapi3.Operation) {
	if old.OperationID != now.OperationID {
		c.breaks("its id was %s and is %s", old.OperationID, now.OperationID)
	}
	c.access(old, now)
	switch {
	case now.RequestBody == nil && old.RequestBody != nil:
		c.breaks("it takes no body any more")
	case now.RequestBody != nil:
		var content openapi3.Content
		if old.RequestBody != nil {
			content = old.RequestBody.Value.Content
		}
		if now.RequestBody.Value.Required && (old.RequestBody == nil || !old.RequestBody.Value.Required) {
			c.breaks("it needs a body")
		}
		c.content(content, now.RequestBody.Value.Content, request)
	}
	for _, status := range slices.Sorted(maps.Keys(old.Responses.Map())) {
		was, is := old.Responses.Value(status).Value, now.Responses.Value(status)
		if is == nil {
			// Any other status is covered by the default response.
			if status[0] == '2' || status == "default" {
				c.breaks("the status %s is gone", status)
			}
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(was.Headers)) {
			if is.Value.Headers[name] == nil {
				c.breaks("the header %s of answer %s is gone", name, status)
			}
		}
		c.content(was.Content, is.Value.Content, answer)
	}
}

// access reports a break if an API key that was sufficient no longer is.
func (c *comparison) access(old, now *openapi3.Operation) {
	if open(old) {
		if !open(now) {
			c.breaks("it needs a key")
		}
		return
	}
	ranks := []any{"any", "read", "operator", "admin"}
	if role := now.Extensions["x-role"]; slices.Index(ranks, role) > slices.Index(ranks, old.Extensions["x-role"]) {
		c.breaks("it needs the role %v", role)
	}
	if scope := now.Extensions["x-scope"]; scope != nil && scope != old.Extensions["x-scope"] {
		c.breaks("it needs the scope %v", scope)
	}
}

func open(op *openapi3.Operation) bool { return op.Security != nil && len(*op.Security) == 0 }

func (c *comparison) content(old, now openapi3.Content, d direction) {
	for _, mediaType := range slices.Sorted(maps.Keys(old)) {
		if now[mediaType] == nil {
			c.breaks("the media type %s of the %s is gone", mediaType, d)
			continue
		}
		c.schema(old[mediaType].Schema, now[mediaType].Schema, string(d), d)
	}
}

func (c *comparison) parameters(old, now map[string]*openapi3.Parameter) {
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if now[name] == nil {
			c.breaks("the %s is gone", name)
			continue
		}
		c.schema(old[name].Schema, now[name].Schema, "the "+name, request)
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if now[name].Required && (old[name] == nil || !old[name].Required) {
			c.breaks("the %s is required", name)
		}
	}
}

// schema compares the schemas at a location. A named schema is compared under its own name.
func (c *comparison) schema(old, now *openapi3.SchemaRef, place string, d direction) {
	if name, named := strings.CutPrefix(old.Ref, "#/components/schemas/"); named {
		key := string(d) + name + now.Ref
		if now.Ref != "" && c.seen[key] {
			return
		}
		c.seen[key] = true
		defer func(where string) { c.where = where }(c.where)
		c.where, place = name, string(d)
	}
	was, is := old.Value, now.Value
	if d == answer && is.Nullable && !was.Nullable {
		c.breaks("%s may be null", place)
	}
	if d == request && was.Nullable && !is.Nullable {
		c.breaks("%s may not be null", place)
	}
	// A nullable reference is the only element of an allOf.
	if len(was.AllOf) == 1 && len(is.AllOf) == 1 {
		c.schema(was.AllOf[0], is.AllOf[0], place, d)
		return
	}
	if typeOf(was) != typeOf(is) {
		c.breaks("%s was %s and is %s", place, typeOf(was), typeOf(is))
		return
	}
	if d == request {
		c.limits(was, is, place)
	}
	c.members(was, is, place, d)
	if was.Items != nil && is.Items != nil {
		c.schema(was.Items, is.Items, place+"[]", d)
	}
	if more := was.AdditionalProperties.Schema; more != nil {
		if is.AdditionalProperties.Schema == nil {
			c.breaks("%s has no further members", place)
			return
		}
		c.schema(more, is.AdditionalProperties.Schema, place+".*", d)
	}
}

func typeOf(s *openapi3.Schema) string {
	kind := strings.Join(append(s.Type.Slice(), s.Format), " ")
	if len(s.AllOf)+len(s.OneOf)+len(s.AnyOf) > 0 {
		kind += " of several"
	}
	return strings.TrimSpace(kind)
}

func (c *comparison) members(was, is *openapi3.Schema, place string, d direction) {
	for _, name := range slices.Sorted(maps.Keys(was.Properties)) {
		if is.Properties[name] == nil {
			c.breaks("%s.%s is gone", place, name)
			continue
		}
		if d == answer && slices.Contains(was.Required, name) && !slices.Contains(is.Required, name) {
			c.breaks("%s.%s may be missing", place, name)
		}
		c.schema(was.Properties[name], is.Properties[name], place+"."+name, d)
	}
	for _, name := range is.Required {
		if d == request && !slices.Contains(was.Required, name) {
			c.breaks("%s.%s is required", place, name)
		}
	}
}

// limits reports a break if the limits on a request become narrower.
func (c *comparison) limits(was, is *openapi3.Schema, place string) {
	if len(was.Enum) == 0 && len(is.Enum) > 0 {
		c.breaks("%s is one of a few values only", place)
	}
	for _, value := range was.Enum {
		if len(is.Enum) > 0 && !slices.Contains(is.Enum, value) {
			c.breaks("%s may not be %v", place, value)
		}
	}
	if is.Pattern != "" && is.Pattern != was.Pattern {
		c.breaks("%s has the pattern %s", place, is.Pattern)
	}
	if is.MinLength > was.MinLength || is.MinItems > was.MinItems || lower(is.MaxLength, was.MaxLength) || lower(is.MaxItems, was.MaxItems) {
		c.breaks("%s has another length", place)
	}
	if is.Min != nil && (was.Min == nil || *is.Min > *was.Min) || lower(is.Max, was.Max) {
		c.breaks("%s has other bounds", place)
	}
}

// lower reports whether an upper bound is below the earlier one; nil means no bound.
func lower[T uint64 | float64](now, before *T) bool {
	return now != nil && (before == nil || *now < *before)
}
