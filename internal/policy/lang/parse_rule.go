package lang

import (
	"encoding/json"
	"strings"

	"github.com/tailscale/hujson"
)

func (r *reader) acls(v hujson.Value) {
	kind := entry{what: "an acls rule", members: []string{"action", "proto", "src", "dst", "comment", "users", "ports"}, required: []string{"action"}}
	r.entries(v, memberACLs, kind, func(v hujson.Value, m map[string]hujson.Value) {
		r.former(m, "users", "src")
		r.former(m, "ports", "dst")
		for _, name := range []string{"src", "dst"} {
			if _, ok := m[name]; !ok {
				r.warn(v.StartOffset, "%s has no %s, so it allows nothing", kind.what, name)
				m[name] = hujson.Value{Value: &hujson.Array{}}
			}
		}
		if action, ok := r.string(m["action"], "action"); ok && action != "accept" {
			r.problem(m["action"].StartOffset, "unsupported action %q: use accept; everything that no rule accepts is denied", action)
		}
		rule := Rule{Line: r.line(v.StartOffset), Comment: r.comment(m)}
		protocol := 0
		if p, ok := m["proto"]; ok {
			protocol = r.protocol(p, "proto")
		}
		rule.Src = r.targetsOf(m["src"], "src", asSource)
		r.names(m["dst"], "dst", func(text string, at int) {
			name, ports, err := splitPorts(text)
			if err != nil {
				r.problem(at, "%s", err.Error())
				return
			}
			t, ok := r.target(name, at, "dst", asDestination)
			s, err := service(protocol, ports)
			if err != nil {
				r.problem(at, "%s", err.Error())
				return
			}
			if ok {
				rule.Dst = append(rule.Dst, Destination{Target: t, Services: []Service{s}})
				r.self(t, at, rule.Src, asPerson|1<<Any)
			}
		})
		r.doc.Rules = append(r.doc.Rules, rule)
	})
}

// former reads a field of a rule under its former name. Old policies of Tailscale and Headscale use
// these names.
func (r *reader) former(m map[string]hujson.Value, was, is string) {
	v, ok := m[was]
	if !ok {
		return
	}
	if _, both := m[is]; both {
		r.problem(v.StartOffset, "%s is the former name of %s, which is also set: remove %s", was, is, was)
		return
	}
	r.warn(v.StartOffset, "%s is the former name of %s: rename it", was, is)
	m[is] = v
}

// self checks the sources of a rule that has t as a destination: autogroup:self needs
// sources that are users.
func (r *reader) self(t Target, at int, sources []Target, allowed kinds) {
	if t.Kind != Self {
		return
	}
	for _, s := range sources {
		if !allowed.has(s.Kind) {
			r.problem(at, "autogroup:self means the nodes of the same user, so src can be %s here, but not %s", allowed, s.Name)
			return
		}
	}
}

func (r *reader) grants(v hujson.Value) {
	kind := entry{what: "a grant", members: []string{"src", "dst", "ip", "app", "via", "comment"}, required: []string{"src", "dst"}}
	r.entries(v, memberGrants, kind, func(v hujson.Value, m map[string]hujson.Value) {
		rule := Rule{Line: r.line(v.StartOffset), Grant: true, Comment: r.comment(m)}
		services := r.offers(v, m, &rule)
		rule.Src = r.targetsOf(m["src"], "src", asSource)
		r.names(m["dst"], "dst", func(text string, at int) {
			t, ok := r.target(text, at, "dst", asDestination)
			if !ok {
				return
			}
			r.self(t, at, rule.Src, asPerson)
			switch {
			case t.Kind == Internet && len(rule.App) > 0:
				r.problem(at, "app cannot be granted on autogroup:internet: only nodes have capabilities")
			case t.Kind == Self && len(rule.Via) > 0:
				r.problem(at, "autogroup:self cannot be combined with via: these nodes are reached directly")
			}
			rule.Dst = append(rule.Dst, Destination{Target: t, Services: services})
		})
		r.doc.Rules = append(r.doc.Rules, rule)
	})
}

// offers reads what a grant allows, which must not be empty.
func (r *reader) offers(v hujson.Value, m map[string]hujson.Value, rule *Rule) (services []Service) {
	before := len(r.problems)
	if ip, ok := m["ip"]; ok {
		services = r.services(ip, "ip")
	}
	if app, ok := m["app"]; ok {
		rule.App = r.capabilities(app, "app")
	}
	if via, ok := m["via"]; ok {
		rule.Via = r.via(via)
	}
	switch {
	case len(r.problems) > before || len(services) > 0:
	case len(rule.App) == 0:
		r.problem(v.StartOffset, "a grant requires ip or app: use \"ip\": [\"*\"] to allow all ports")
	case len(rule.Via) > 0:
		r.problem(m["via"].StartOffset, "via requires ip: without it there is no traffic to route")
	}
	return services
}

func (r *reader) via(v hujson.Value) (tags []string) {
	r.names(v, "via", func(text string, at int) {
		if t, ok := r.target(text, at, "via", 1<<Tag); ok {
			tags = append(tags, t.Name)
		}
	})
	return tags
}

func (r *reader) comment(m map[string]hujson.Value) string {
	v, ok := m["comment"]
	if !ok {
		return ""
	}
	text, _ := r.string(v, "comment")
	return text
}

// capabilities reads an object that maps names to lists of values. The values are passed
// on to clients without being interpreted.
func (r *reader) capabilities(v hujson.Value, what string) map[string][]json.RawMessage {
	all := map[string][]json.RawMessage{}
	r.members(v, what, func(name string, key, value hujson.Value) {
		if domain, path, ok := strings.Cut(name, "/"); !ok || domain == "" || path == "" || strings.ContainsAny(name, " \t\r\n") {
			r.problem(key.StartOffset, "invalid capability %q: use a domain, a slash and a name, such as example.com/cap/edit", name)
			return
		}
		values := []json.RawMessage{}
		r.list(value, name, func(e hujson.Value) {
			if !r.passable(e, maxDepth) {
				return
			}
			e = e.Clone()
			e.Minimize()
			values = append(values, json.RawMessage(e.Pack()))
		})
		all[name] = values
	})
	return all
}

// passable checks a value that is passed on. Programs disagree on values that are deeply
// nested or have duplicate fields.
func (r *reader) passable(v hujson.Value, levels int) bool {
	if levels == 0 {
		r.problem(v.StartOffset, "the value is nested more than %d levels deep", maxDepth)
		return false
	}
	switch c := v.Value.(type) {
	case *hujson.Object:
		seen := map[string]bool{}
		for _, m := range c.Members {
			if name := textOf(m.Name); seen[name] {
				r.problem(m.Name.StartOffset, "duplicate %q in the value", name)
				return false
			}
			seen[textOf(m.Name)] = true
			if !r.passable(m.Value, levels-1) {
				return false
			}
		}
	case *hujson.Array:
		for _, e := range c.Elements {
			if !r.passable(e, levels-1) {
				return false
			}
		}
	}
	return true
}
