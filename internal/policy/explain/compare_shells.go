package explain

import (
	"fmt"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/policy/bitset"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// shellTable computes what sets of SSH rules of one world allow, and caches the results
// by the key of the set.
type shellTable struct {
	*evaluator
	known map[string][]ShellUser
}

// matched returns the SSH rules by which nodes of class a may log in on those of
// class b.
func (s *shellTable) matched(a, b *classRules, own bool) (rules bitset.Set) {
	for r := range bitset.Both(a.shellOf, b.shellAt) {
		rules.Add(r)
	}
	if own {
		for r := range a.shellOf.All() {
			if s.shellSelf.Has(r) && (b.has[0] || b.has[1]) {
				rules.Add(r)
			}
		}
	}
	return rules
}

// users returns the operating system users that rules allow logins for. If several rules
// name a user, the first applies.
func (s *shellTable) users(rules bitset.Set) []ShellUser {
	key := rules.Key()
	if list, ok := s.known[key]; ok {
		return list
	}
	var list []ShellUser
	for r := range rules.All() {
		for _, name := range s.ssh[r].Users {
			if resolve(list, name) == nil {
				list = append(list, ShellUser{name, s.ssh[r].Check})
			}
		}
	}
	s.known[key] = list
	return list
}

// resolve returns the first entry that matches a user, or nil.
func resolve(list []ShellUser, name string) *ShellUser {
	i := slices.IndexFunc(list, func(u ShellUser) bool { return u.Name == name || u.Name == lang.NonRoot && name != "root" })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// shellsWithout returns the users in a that b does not contain, or contains with another
// action.
func shellsWithout(a, b []ShellUser) (list []ShellUser) {
	for _, u := range slices.Concat(a, b) {
		has, other := resolve(a, u.Name), resolve(b, u.Name)
		if has == nil || other != nil && other.Check == has.Check {
			continue
		}
		if lost := (ShellUser{u.Name, has.Check}); !slices.Contains(list, lost) {
			list = append(list, lost)
		}
	}
	return list
}

// lines adds the lines of the rules that allow a login as one of the given users.
func (s *shellTable) lines(list []lang.Line, rules bitset.Set, users []ShellUser) []lang.Line {
	for r := range rules.All() {
		rule := &s.ssh[r]
		if slices.ContainsFunc(users, func(u ShellUser) bool { return rule.Check == u.Check && rule.HasUser(u.Name) }) {
			list = addLine(list, rule.Line)
		}
	}
	return list
}

// compareShells determines for whom SSH access changes.
func (c *comparison) compareShells() {
	if len(c.before.ssh)+len(c.after.ssh) == 0 {
		return
	}
	before, after := &shellTable{c.before, map[string][]ShellUser{}}, &shellTable{c.after, map[string][]ShellUser{}}
	equal := map[string]bool{} // by both keys
	changes := func(was, is bitset.Set) bool {
		key := fmt.Sprintf("%q %q", was.Key(), is.Key())
		same, ok := equal[key]
		if !ok {
			a, b := before.users(was), after.users(is)
			same = len(shellsWithout(a, b))+len(shellsWithout(b, a)) == 0
			equal[key] = same
		}
		return !same
	}
	for _, a := range c.buckets {
		for _, b := range c.buckets {
			if !a.srcBefore.shellOf.Meets(b.dstBefore.shellAt) && !a.srcAfter.shellOf.Meets(b.dstAfter.shellAt) {
				continue
			}
			was, is := before.matched(a.srcBefore, b.dstBefore, false), after.matched(a.srcAfter, b.dstAfter, false)
			if !changes(was, is) {
				continue
			}
			for _, x := range a.subsets {
				for _, y := range b.subsets {
					if !same(x, y) {
						c.noteShells(before, after, x, y, false, was, is)
					}
				}
			}
		}
	}
	for a, b := range c.ownPairs {
		was := before.matched(a.srcBefore, b.dstBefore, a.ownerBefore != 0 && a.ownerBefore == b.ownerBefore)
		is := after.matched(a.srcAfter, b.dstAfter, a.ownerAfter != 0 && a.ownerAfter == b.ownerAfter)
		if changes(was, is) {
			c.noteShells(before, after, a, b, true, was, is)
		}
	}
}

func (c *comparison) noteShells(before, after *shellTable, a, b *subset, own bool, was, is bitset.Set) {
	n := pairsBetween(a, b)
	if n == 0 {
		return
	}
	key := shiftKey{a.principals, b.principals, own}
	s := c.shells[key]
	if s == nil {
		if len(c.shells) >= maxFollowed {
			c.effect.MoreShells++
			return
		}
		s = &shellShift{
			ShellShift: ShellShift{From: c.principals(key.from), To: c.principals(key.to), Own: own},
			affected:   affected{key: key},
		}
		c.shells[key] = s
	}
	s.Pairs += n
	s.add(c, a, b)
	s.Samples = sample(s.Samples, a, b)
	add := func(list, more []ShellUser) []ShellUser {
		for _, u := range more {
			if !slices.Contains(list, u) {
				list = append(list, u)
			}
		}
		return list
	}
	lost, gained := shellsWithout(before.users(was), after.users(is)), shellsWithout(after.users(is), before.users(was))
	s.Lost, s.Gained = add(s.Lost, lost), add(s.Gained, gained)
	s.LostLines, s.GainedLines = before.lines(s.LostLines, was, lost), after.lines(s.GainedLines, is, gained)
}
