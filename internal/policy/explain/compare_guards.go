package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// maxGuards limits the number of warnings of one kind.
const maxGuards = 20

// guard adds warnings about changes that are likely to be mistakes.
func (c *comparison) guard(viewer *End) {
	c.guardUnreachable()
	if viewer != nil {
		c.guardOwnWayIn(viewer)
	}
	if c.fullAfter && !c.fullBefore && c.some {
		c.effect.Guards = append(c.effect.Guards, Guard{Kind: GuardEverything, Text: "all nodes can now reach each other on all ports"})
	}
}

// guardUnreachable warns about nodes with tags or routes whose port 22 nobody can reach
// any more.
func (c *comparison) guardUnreachable() {
	left, all := map[string][]mesh.NodeID{}, map[string]int{}
	for n := range c.after.Nodes.All() {
		e := c.subsetOf[n.ID]
		if e == nil || !n.Tagged() && len(n.Routes) == 0 {
			continue
		}
		principal := n.Name
		if n.Tagged() {
			principal = c.after.principalOf(n)
		}
		all[principal]++
		before, after := e.sshBefore || e.bucket.sshBefore, e.sshAfter || e.bucket.sshAfter
		if before && !after {
			left[principal] = append(left[principal], n.ID)
		}
	}
	for _, principal := range slices.Sorted(maps.Keys(left)) {
		what := principal
		if nodes := left[principal]; len(nodes) < all[principal] {
			what = c.nodeNames(nodes)
		}
		if len(c.effect.Guards) < maxGuards {
			c.effect.Guards = append(c.effect.Guards, Guard{
				Kind: GuardUnreachable, Text: fmt.Sprintf("no node can reach %s on port 22 any more", what), Nodes: left[principal],
			})
		}
	}
}

// guardOwnWayIn warns about nodes whose port 22 the viewer no longer reaches from any of
// the viewer's nodes.
func (c *comparison) guardOwnWayIn(viewer *End) {
	var own []*subset
	for n := range c.after.Nodes.All() {
		e := c.subsetOf[n.ID]
		isViewer := n.ID == viewer.Node || viewer.Node == 0 && !viewer.Addr.IsValid() && c.after.isPartOf(n, *viewer)
		if e != nil && isViewer && !slices.Contains(own, e) {
			own = append(own, e)
		}
	}
	ssh := func(s *evaluator, a, b *classRules, own bool) bool {
		return c.accesses.ssh(s.reach(a, b, own))
	}
	var lost []mesh.NodeID
	for _, b := range c.subsets {
		before, after := false, false
		for _, a := range own {
			if pairsBetween(a, b) == 0 {
				continue
			}
			before = before || ssh(c.before, a.srcBefore, b.dstBefore, a.ownerBefore != 0 && a.ownerBefore == b.ownerBefore)
			after = after || ssh(c.after, a.srcAfter, b.dstAfter, a.ownerAfter != 0 && a.ownerAfter == b.ownerAfter)
		}
		if before && !after {
			for _, n := range b.nodes {
				lost = append(lost, n.ID)
			}
		}
	}
	if len(lost) > 0 {
		slices.Sort(lost)
		c.effect.Guards = append(c.effect.Guards, Guard{
			Kind: GuardOwnWayIn, Text: fmt.Sprintf("this locks you out: you can no longer reach %s on port 22", c.nodeNames(lost)), Nodes: lost,
		})
	}
}

func (c *comparison) nodeNames(ids []mesh.NodeID) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		if n, ok := c.after.Nodes.Get(id); ok {
			names[i] = n.Name
		}
	}
	return inWords(names)
}

// inWords joins names with "and". If there are many, it names only the first ones.
func inWords(names []string) string {
	const most = 3
	switch {
	case len(names) == 1:
		return names[0]
	case len(names) > most+1:
		return fmt.Sprintf("%s and %d others", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
