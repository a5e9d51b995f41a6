package policy

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/policy/bitset"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// answerOf returns the capability that a client must grant to a node before it uses what the
// policy grants to it there: a client looks for relays and shared folders only on peers to which its
// own filter gives this capability. It returns "" for all other capabilities.
func answerOf(capability string) string {
	switch capability {
	case "tailscale.com/cap/relay":
		return "tailscale.com/cap/relay-target"
	case "tailscale.com/cap/drive":
		return "tailscale.com/cap/drive-sharer"
	}
	return ""
}

// answers returns the capabilities that the sources of a rule grant to its destinations in return,
// or nil if there are none.
func answers(app map[string][]json.RawMessage) map[string][]json.RawMessage {
	var back map[string][]json.RawMessage
	for capability := range app {
		if answer := answerOf(capability); answer != "" {
			if back == nil {
				back = map[string][]json.RawMessage{}
			}
			back[answer] = []json.RawMessage{}
		}
	}
	return back
}

// noteMirror records that the addresses of a rule's destinations are listed if its sources must
// grant capabilities in return.
func (c *Rules) noteMirror(i int) {
	if len(answers(c.rules[i].App)) == 0 || c.via.Has(i) { // via applies to traffic, not to nodes
		return
	}
	c.mirrored.Add(i)
	for _, selectors := range c.dsts[i] {
		for _, s := range selectors {
			c.selectors[s].held = true
		}
	}
}

// Mirrored returns the rules by which nodes of a class grant capabilities, in return, to the nodes
// on which the policy grants capabilities to them. Their sources are listed by address.
func (c *Rules) Mirrored(class Class) []Inbound {
	if class == Nobody {
		return nil
	}
	return c.info(class).mirrored()
}

func (c *Rules) mirroredOf(i *classInfo) (list []Inbound) {
	for r := range bitset.Both(i.src.any(), c.mirrored) {
		in := Inbound{Rule: &lang.Rule{Line: c.rules[r].Line, Grant: true, App: answers(c.rules[r].App)}, Index: r, Listed: true}
		for _, s := range c.srcs[r] {
			if i.own.Has(s) {
				in.Dst = append(in.Dst, Reach{Destination: lang.Destination{Target: c.selectors[s].target}, Own: true})
			}
		}
		for _, selectors := range c.dsts[r] {
			for _, s := range selectors {
				in.Src = append(in.Src, c.mirrorSource(s))
			}
		}
		if len(in.Dst) > 0 && len(in.Src) > 0 {
			list = append(list, in)
		}
	}
	return list
}

// mirrorSource returns the source that a destination becomes. Only nodes have capabilities, so "*"
// does not include what is behind routers.
func (c *Rules) mirrorSource(s int) Source {
	t := c.selectors[s].target
	if t.Kind == lang.Any {
		t = lang.Target{Kind: lang.Addresses, Name: t.Name, Prefixes: MeshPrefixes()}
	}
	return Source{Target: t, selector: s}
}

// withAnswers returns a rule between the nodes of one user, which are both its sources and its
// destinations, with the capabilities that they grant in return.
func withAnswers(r *lang.Rule) *lang.Rule {
	back := answers(r.App)
	if len(back) == 0 {
		return r
	}
	both := *r
	both.App = maps.Clone(r.App)
	maps.Copy(both.App, back)
	return &both
}

// listsMirrored reports whether nodes of a class are sent the addresses of nodes in Mirrored.
func (c *Rules) listsMirrored(i *classInfo) bool {
	for r := range bitset.Both(i.src.any(), c.mirrored) {
		if slices.ContainsFunc(c.rules[r].Dst, func(d lang.Destination) bool { return d.Kind.IsIdentity() }) {
			return true
		}
	}
	return false
}
