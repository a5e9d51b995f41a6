package explain

import (
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/bitset"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// world is a policy.World with its rules.
type world struct {
	*policy.World
	rules           []lang.Rule
	ssh             []lang.SSHRule
	groups          map[string][]string
	self, shellSelf bitset.Set // rules and SSH rules with the destination autogroup:self
}

func newWorld(w *policy.World) *world {
	v := &world{World: w, rules: w.Rules().List()}
	if w.Doc != nil {
		v.ssh, v.groups = w.Doc.SSH, w.Doc.Groups
	}
	for i := range v.rules {
		if slices.ContainsFunc(v.rules[i].Dst, func(d lang.Destination) bool { return d.Kind == lang.Self }) {
			v.self.Add(i)
		}
	}
	for i := range v.ssh {
		if slices.ContainsFunc(v.ssh[i].Dst, func(t lang.Target) bool { return t.Kind == lang.Self }) {
			v.shellSelf.Add(i)
		}
	}
	return v
}

// owner returns the owner of a node, or nil if it is tagged.
func (w *world) owner(n *mesh.Node) *mesh.User {
	u, _ := w.Users.Get(n.Owner)
	return u
}

// ownCounts reports whether it matters to some rule that both nodes of a pair have the
// same owner.
func (w *world) ownCounts() bool { return len(w.self)+len(w.shellSelf) > 0 }
