package apidocs

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed page.html
var pageTemplate string

// Render renders openapi.yaml as an HTML page.
func Render(document []byte) ([]byte, error) {
	d := &docs{}
	if err := yaml.Unmarshal(document, d); err != nil {
		return nil, fmt.Errorf("reading the API document: %w", err)
	}
	page, err := template.New("page.html").Funcs(template.FuncMap{
		"markdown": markdown, "inline": inline, "anchor": anchor, "parameters": d.parameters, "body": d.body, "members": d.members,
		"response": d.response, "type": d.typeOf, "example": d.example,
	}).Parse(pageTemplate)
	if err != nil {
		return nil, fmt.Errorf("reading the template of the API page: %w", err)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, d); err != nil {
		return nil, fmt.Errorf("rendering the API page: %w", err)
	}
	return b.Bytes(), nil
}

// docs is the part of an OpenAPI document that the page shows.
type docs struct {
	Info struct{ Title, Version, Description string }
	Tags []struct{ Name, Description string }
	// Paths and Components keep the order of the document.
	Paths      ordered[pathItem]
	Components struct {
		Schemas    ordered[schema]
		Parameters ordered[parameter]
		Responses  ordered[response]
	}
}

type pathItem struct {
	Parameters                    []parameter
	Get, Post, Put, Patch, Delete *operation
}

type operation struct {
	OperationID          string `yaml:"operationId"`
	Role                 string `yaml:"x-role"`
	Scope                string `yaml:"x-scope"`
	Summary, Description string
	Tags                 []string
	Parameters           []parameter
	RequestBody          struct{ Content ordered[media] } `yaml:"requestBody"`
	Responses            ordered[response]

	Method, Path string `yaml:"-"`
}

type parameter struct {
	Ref                   string `yaml:"$ref"`
	Name, In, Description string
	Required              bool
	Schema                schema
}

type response struct {
	Ref         string `yaml:"$ref"`
	Description string
	Content     ordered[media]
}

type media struct {
	Schema  schema
	Example yaml.Node
}

type schema struct {
	Ref                       string `yaml:"$ref"`
	Type, Format, Description string
	Nullable                  bool
	Enum, Required            []string
	Example                   yaml.Node
	Items                     *schema
	AllOf                     []schema `yaml:"allOf"`
	Properties                ordered[schema]
	AdditionalProperties      *schema `yaml:"additionalProperties"`
}

// ordered is a mapping in the order of the document.
type ordered[T any] []entry[T]

type entry[T any] struct {
	Name  string
	Value T
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (o *ordered[T]) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: not a mapping", n.Line)
	}
	for i := 0; i < len(n.Content); i += 2 {
		e := entry[T]{Name: n.Content[i].Value}
		if err := n.Content[i+1].Decode(&e.Value); err != nil {
			return err
		}
		*o = append(*o, e)
	}
	return nil
}

// at returns the value that a reference such as #/components/schemas/User refers
// to.
func (o ordered[T]) at(ref string) (v T) {
	name := ref[strings.LastIndexByte(ref, '/')+1:]
	for _, e := range o {
		if e.Name == name {
			return e.Value
		}
	}
	return v
}

// group holds the operations of one tag.
type group struct {
	Name, Description string
	Operations        []*operation
}

// Groups returns the operations by tag.
func (d *docs) Groups() (groups []group) {
	for _, tag := range d.Tags {
		g := group{Name: tag.Name, Description: tag.Description}
		for _, path := range d.Paths {
			p := path.Value
			for i, op := range []*operation{p.Get, p.Post, p.Put, p.Patch, p.Delete} {
				if op == nil || !slices.Contains(op.Tags, tag.Name) {
					continue
				}
				shown := *op
				shown.Method, shown.Path = []string{"GET", "POST", "PUT", "PATCH", "DELETE"}[i], path.Name
				shown.Parameters = slices.Concat(op.Parameters, p.Parameters)
				g.Operations = append(g.Operations, &shown)
			}
		}
		groups = append(groups, g)
	}
	return groups
}

// Objects returns the schemas that others refer to, and the schema of errors.
func (d *docs) Objects() (objects ordered[schema]) {
	nested := map[string]bool{"#/components/schemas/Problem": true}
	var visit func(s schema)
	visit = func(s schema) {
		nested[s.Ref] = true
		for _, inner := range slices.Concat(s.AllOf, s.parts()) {
			visit(inner)
		}
	}
	for _, e := range d.Components.Schemas {
		for _, inner := range e.Value.parts() {
			visit(inner)
		}
	}
	for _, e := range d.Components.Schemas {
		if nested["#/components/schemas/"+e.Name] {
			objects = append(objects, e)
		}
	}
	return objects
}

// parts returns the schemas of the properties or elements of a value.
func (s schema) parts() (parts []schema) {
	for _, p := range s.Properties {
		parts = append(parts, p.Value)
	}
	for _, p := range []*schema{s.Items, s.AdditionalProperties} {
		if p != nil {
			parts = append(parts, *p)
		}
	}
	return parts
}

func (d *docs) response(r response) response {
	if r.Ref != "" {
		return d.Components.Responses.at(r.Ref)
	}
	return r
}

// follow resolves a reference: it returns the schema and its name, if it has one.
func (d *docs) follow(s schema) (schema, string) {
	if len(s.AllOf) == 1 {
		inner := s.AllOf[0]
		inner.Nullable = s.Nullable
		s = inner
	}
	if s.Ref == "" {
		return s, ""
	}
	named := d.Components.Schemas.at(s.Ref)
	named.Nullable = s.Nullable
	return named, s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
}

// row describes a field of an object, or a parameter.
type row struct {
	Name, In, Note, Description string
	Schema                      schema
}

// body lists the fields of a request, most of which are optional.
func (d *docs) body(s schema) []row { return d.rows(s, "required", "") }

// members lists the fields of a response, most of which are required.
func (d *docs) members(s schema) []row { return d.rows(s, "", "optional") }

func (d *docs) rows(s schema, required, optional string) (rows []row) {
	s, _ = d.follow(s)
	for _, p := range s.Properties {
		note := optional
		if slices.Contains(s.Required, p.Name) {
			note = required
		}
		rows = append(rows, row{Name: p.Name, Note: note, Description: p.Value.Description, Schema: p.Value})
	}
	return rows
}

func (d *docs) parameters(list []parameter) (rows []row) {
	for _, p := range list {
		if p.Ref != "" {
			p = d.Components.Parameters.at(p.Ref)
		}
		note := ""
		if p.Required {
			note = "required"
		}
		rows = append(rows, row{Name: p.Name, In: p.In, Note: note, Description: p.Description, Schema: p.Schema})
	}
	return rows
}

// typeOf describes the type of a value; named objects are linked.
func (d *docs) typeOf(v schema) template.HTML {
	s, name := d.follow(v)
	text := template.HTMLEscapeString(s.Type)
	switch {
	case name != "":
		text = fmt.Sprintf(`<a href="#%s">%s</a>`, anchor(name), template.HTMLEscapeString(name))
	case s.Format == "date-time":
		text = "timestamp"
	case s.Items != nil:
		text = "array of " + string(d.typeOf(*s.Items))
	case s.AdditionalProperties != nil:
		text = "map of " + string(d.typeOf(*s.AdditionalProperties))
	case s.Enum != nil:
		text = template.HTMLEscapeString(strings.Join(s.Enum, ", "))
	}
	if s.Nullable {
		text += " or null"
	}
	return template.HTML(text) // escaped above
}

// example returns an example of the body of a request or a response, as JSON.
func (d *docs) example(m media) (string, error) {
	n := &m.Example
	if n.IsZero() {
		n = d.sample(m.Schema)
	}
	var b strings.Builder
	if err := writeExample(&b, n, "\n"); err != nil {
		return "", err
	}
	return b.String(), nil
}

// sample builds a value from the examples of its parts.
func (d *docs) sample(v schema) *yaml.Node {
	s, _ := d.follow(v)
	switch {
	case !s.Example.IsZero():
		return &s.Example
	case s.Type == "array":
		return &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{d.sample(*s.Items)}}
	case s.Type == "object":
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, p := range s.Properties {
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: p.Name}, d.sample(p.Value))
		}
		return n
	case s.Type == "boolean":
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "false"}
	case s.Enum != nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s.Enum[0]}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
}

// writeExample writes n as JSON with its fields in order.
func writeExample(b *strings.Builder, n *yaml.Node, newline string) error {
	open, end, step := "[", "]", 1
	switch n.Kind {
	case yaml.ScalarNode:
		var v any
		if err := n.Decode(&v); err != nil {
			return err
		}
		data, err := json.Marshal(v)
		b.Write(data)
		return err
	case yaml.MappingNode:
		open, end, step = "{", "}", 2
	default: // a sequence
	}
	b.WriteString(open)
	inner := newline + "  "
	for i := 0; i < len(n.Content); i += step {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(inner)
		if step == 2 {
			fmt.Fprintf(b, "%q: ", n.Content[i].Value)
		}
		if err := writeExample(b, n.Content[i+step-1], inner); err != nil {
			return err
		}
	}
	if len(n.Content) > 0 {
		b.WriteString(newline)
	}
	b.WriteString(end)
	return nil
}

// anchor returns an id for a heading or a name.
func anchor(text string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		default:
			return '-'
		}
	}, text), "-")
}
