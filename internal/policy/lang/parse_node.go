package lang

import (
	"encoding/json"
	"strings"

	"github.com/tailscale/hujson"
)

func (r *reader) approvers(v hujson.Value) {
	m, ok := r.fields(v, memberApprovers, "routes", "exitNode")
	if !ok {
		return
	}
	if routes, ok := m["routes"]; ok {
		r.members(routes, "routes", func(name string, key, value hujson.Value) {
			prefix, err := parsePrefix(name)
			if err != nil {
				r.problem(key.StartOffset, "%s", err.Error())
				return
			}
			r.doc.Approvers.Routes = append(r.doc.Approvers.Routes, RouteApprovers{
				Line: r.line(key.StartOffset), Column: r.column(key.StartOffset), Prefix: prefix, Who: r.targetsOf(value, name, asNode),
			})
		})
	}
	if exit, ok := m["exitNode"]; ok {
		r.doc.Approvers.ExitNode = r.targetsOf(exit, "exitNode", asNode)
	}
}

func (r *reader) attributes(v hujson.Value) {
	kind := entry{what: "a nodeAttrs entry", members: []string{"target", "attr", "app", "comment"}, required: []string{"target"}}
	r.entries(v, memberAttributes, kind, func(v hujson.Value, m map[string]hujson.Value) {
		r.comment(m)
		a := Attribute{Line: r.line(v.StartOffset), Attrs: map[string][]json.RawMessage{}}
		a.Targets = r.targetsOf(m["target"], "target", asHolder)
		if app, ok := m["app"]; ok {
			a.Attrs = r.capabilities(app, "app")
		}
		if attr, ok := m["attr"]; ok {
			r.names(attr, "attr", func(name string, at int) {
				switch {
				case name == "" || strings.ContainsAny(name, " \t\r\n"):
					r.problem(at, "invalid attribute %q", name)
				case name == "funnel":
					r.problem(at, "the attribute funnel is not supported")
				case a.Attrs[name] == nil:
					a.Attrs[name] = []json.RawMessage{}
				}
			})
		}
		r.doc.Attributes = append(r.doc.Attributes, a)
	})
}
