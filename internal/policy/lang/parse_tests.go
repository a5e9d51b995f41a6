package lang

import (
	"strconv"

	"github.com/tailscale/hujson"
)

func (r *reader) tests(v hujson.Value) {
	kind := entry{what: "a test", members: []string{"src", "proto", "accept", "deny", "comment"}, required: []string{"src"}}
	r.entries(v, memberTests, kind, func(v hujson.Value, m map[string]hujson.Value) {
		r.comment(m)
		test := Test{Line: r.line(v.StartOffset)}
		if p, ok := m["proto"]; ok {
			test.Protocol = r.protocol(p, "proto")
			if test.Protocol != 0 && !HasPorts(test.Protocol) {
				r.problem(p.StartOffset, "a test checks a port, so proto must be tcp, udp or sctp")
			}
		}
		src, ok := r.testSource(m["src"])
		if !ok {
			return
		}
		test.Src = src
		before := len(r.problems)
		test.Accept = r.testDestinations(m, "accept", test.Src)
		test.Deny = r.testDestinations(m, "deny", test.Src)
		if len(test.Accept)+len(test.Deny) == 0 && len(r.problems) == before {
			r.problem(v.StartOffset, "a test requires accept or deny")
		}
		r.doc.Tests = append(r.doc.Tests, test)
	})
}

func (r *reader) testSource(v hujson.Value) (Target, bool) {
	text, ok := r.string(v, "src")
	if !ok {
		return Target{}, false
	}
	return r.target(text, v.StartOffset, "src", asTestSource)
}

func (r *reader) testDestinations(m map[string]hujson.Value, what string, src Target) (all []TestDestination) {
	v, ok := m[what]
	if !ok {
		return nil
	}
	r.names(v, what, func(text string, at int) {
		name, ports, err1 := splitPorts(text)
		port, err2 := strconv.ParseUint(ports, 10, 16)
		if err1 != nil || err2 != nil {
			r.problem(at, "%s does not end in a single port: a test checks one connection, such as to tag:web:443", text)
			return
		}
		t, ok := r.target(name, at, what, asShell)
		if !ok || !r.single(t, at) {
			return
		}
		r.self(t, at, []Target{src}, asPerson)
		all = append(all, TestDestination{Target: t, Text: text, Port: uint16(port)})
	})
	return all
}

// single checks that a target with addresses has only one.
func (r *reader) single(t Target, at int) bool {
	if t.Kind == Addresses && (len(t.Prefixes) != 1 || !t.Prefixes[0].IsSingleIP()) {
		r.problem(at, "%s is not a single address: a test checks one connection", t.Name)
		return false
	}
	return true
}

func (r *reader) sshTests(v hujson.Value) {
	kind := entry{what: "an ssh test", members: []string{"src", "dst", "accept", "check", "deny", "comment"}, required: []string{"src", "dst"}}
	r.entries(v, memberSSHTests, kind, func(v hujson.Value, m map[string]hujson.Value) {
		r.comment(m)
		src, ok := r.testSource(m["src"])
		if !ok {
			return
		}
		test := SSHTest{Line: r.line(v.StartOffset), Src: src}
		r.names(m["dst"], "dst", func(text string, at int) {
			if t, ok := r.target(text, at, "dst", asShell); ok && r.single(t, at) {
				r.self(t, at, []Target{test.Src}, asPerson)
				test.Dst = append(test.Dst, t)
			}
		})
		before := len(r.problems)
		claimed := func(name string) []string {
			if list, ok := m[name]; ok {
				return r.shellUsers(list, name, false)
			}
			return nil
		}
		test.Accept, test.Check, test.Deny = claimed("accept"), claimed("check"), claimed("deny")
		if len(test.Accept)+len(test.Check)+len(test.Deny) == 0 && len(r.problems) == before {
			r.problem(v.StartOffset, "%s requires a user in accept, check or deny", kind.what)
		}
		r.doc.SSHTests = append(r.doc.SSHTests, test)
	})
}
