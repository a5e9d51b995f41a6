package main

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Values of x-role besides the roles of API keys.
const (
	roleAny    = "any"
	rolePublic = "public"
)

const (
	noReplay    = "none"
	memberOwn   = "own"      // the only value of x-member
	consoleBase = "/api/v1/" // the console forwards nothing else
)

// replayName matches the part of a function's name after "replay".
var replayName = regexp.MustCompile(`^([A-Z][A-Za-z]*|` + noReplay + `)$`)

// operation is an operation of openapi.yaml.
type operation struct {
	ID          string `yaml:"operationId"`
	Role        string `yaml:"x-role"`
	Scope       string `yaml:"x-scope"`
	Member      string `yaml:"x-member"`
	Replay      string `yaml:"x-replay"`
	Console     *bool  `yaml:"x-console"`
	Summary     string
	Tags        []string
	Security    *[]any
	Parameters  []parameter
	RequestBody *struct{ Content map[string]content } `yaml:"requestBody"`

	Method, Path string   `yaml:"-"`
	unknown      []string // unknown x- attributes
}

type parameter struct {
	Ref      string `yaml:"$ref"`
	Name, In string
}

type content struct{ Schema schema }

type schema struct {
	Ref        string `yaml:"$ref"`
	Properties map[string]yaml.Node
}

// UnmarshalYAML implements yaml.Unmarshaler. It records unknown attributes.
func (o *operation) UnmarshalYAML(n *yaml.Node) error {
	type plain operation
	if err := n.Decode((*plain)(o)); err != nil {
		return err
	}
	known := []string{"x-role", "x-scope", "x-member", "x-replay", "x-console"}
	for i := 0; i < len(n.Content); i += 2 {
		if name := n.Content[i].Value; strings.HasPrefix(name, "x-") && !slices.Contains(known, name) {
			o.unknown = append(o.unknown, name)
		}
	}
	return nil
}

// read returns the operations in the order of openapi.yaml, with references resolved.
func read(document []byte) ([]operation, error) {
	var doc struct {
		Paths      yaml.Node
		Components struct {
			Parameters map[string]parameter
			Schemas    map[string]schema
		}
	}
	if err := yaml.Unmarshal(document, &doc); err != nil {
		return nil, err
	}
	var all []operation
	for i := 0; i < len(doc.Paths.Content); i += 2 {
		address, item := doc.Paths.Content[i].Value, doc.Paths.Content[i+1].Content
		var shared []parameter
		begin := len(all)
		for k := 0; k < len(item); k += 2 {
			if item[k].Value == "parameters" {
				if err := item[k+1].Decode(&shared); err != nil {
					return nil, err
				}
				continue
			}
			op := operation{Method: strings.ToUpper(item[k].Value), Path: address}
			if err := item[k+1].Decode(&op); err != nil {
				return nil, err
			}
			all = append(all, op)
		}
		for k := range all[begin:] {
			all[begin+k].resolve(shared, doc.Components.Parameters, doc.Components.Schemas)
		}
	}
	return all, nil
}

func (o *operation) resolve(shared []parameter, parameters map[string]parameter, schemas map[string]schema) {
	o.Parameters = slices.Concat(o.Parameters, shared)
	for i, p := range o.Parameters {
		if p.Ref != "" {
			o.Parameters[i] = parameters[path.Base(p.Ref)]
		}
	}
	if o.RequestBody == nil {
		return
	}
	for mediaType, c := range o.RequestBody.Content {
		if c.Schema.Ref != "" {
			o.RequestBody.Content[mediaType] = content{schemas[path.Base(c.Schema.Ref)]}
		}
	}
}

func (o *operation) takes(name string) bool {
	return slices.ContainsFunc(o.Parameters, func(p parameter) bool { return p.Name == name })
}

// changes reports whether the operation can change something.
func (o *operation) changes() bool { return o.Method != "GET" && o.Role != string(mesh.RoleRead) }

// anyone reports whether the operation requires no role.
func (o *operation) anyone() bool { return o.Role == roleAny || o.Role == rolePublic }

// check returns everything that is wrong with the attributes of an operation.
func (o *operation) check() error {
	var found []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			found = append(found, fmt.Errorf("%s %s: %s", o.Method, o.Path, fmt.Sprintf(format, args...)))
		}
	}
	for _, name := range o.unknown {
		wrong(true, "unknown attribute %s", name)
	}
	wrong(o.ID == "", "operationId is missing")

	isRole := slices.Contains(mesh.Roles(), mesh.Role(o.Role))
	wrong(!isRole && !o.anyone(), "x-role is %q: use one of %v, any or public", o.Role, mesh.Roles())
	keyless := o.Security != nil && len(*o.Security) == 0
	wrong(keyless != (o.Role == rolePublic), "x-role: public and security: [] go together")
	wrong(o.Role == rolePublic && strings.Contains(o.Path, "{"), "x-role: public is for paths without parameters")
	wrong(isRole && !slices.Contains(mesh.Nouns(), mesh.Noun(o.Scope)), "x-scope is %q: use one of %v", o.Scope, mesh.Nouns())
	wrong(o.Member != "" && o.Member != memberOwn, "x-member is %q: use own, or omit it", o.Member)
	wrong(o.anyone() && o.Member != "", "x-member does not go with x-role: %s", o.Role)
	wrong(o.anyone() && o.Scope != "", "x-scope does not go with x-role: %s", o.Role)

	wrong(o.changes() && !replayName.MatchString(o.Replay), "x-replay is %q: name a method replay…, or none", o.Replay)
	wrong(!o.changes() && o.Replay != "", "x-replay is for operations that change something")
	replayed := o.Replay != "" && o.Replay != noReplay
	wrong(replayed != o.takes("Idempotency-Key"), "x-replay and the parameter Idempotency-Key go together")
	wrong(!o.changes() && o.takes("If-Match"), "If-Match is for operations that change something")

	wrong(o.Console == nil, "x-console is missing: use true or false")
	wrong(o.Console != nil && *o.Console && !strings.HasPrefix(o.Path, consoleBase), "x-console is for paths below %s", consoleBase)
	return errors.Join(found...)
}
