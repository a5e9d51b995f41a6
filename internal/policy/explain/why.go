package explain

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// maxNearest limits the length of Answer.Nearest.
const maxNearest = 3

// Question asks whether one end may open a connection to another.
type Question struct {
	From, To End
	Protocol int // by its number; 0 means TCP
	// Port matters for protocols that have ports; 0 means any port.
	Port uint16
}

// Answer says whether a connection is allowed, and by which rules.
type Answer struct {
	Allowed bool
	// Rules holds the rules that allow it, in the order of the text. It is still not
	// allowed if there are Notes.
	Rules []Finding
	// Nearest holds rules that almost allow it, if no rule does.
	Nearest []Finding
	// Notes holds reasons other than the rules why it is not allowed.
	Notes []string
	// At lists the routers and exit nodes for an address that no node has.
	At []mesh.NodeID
}

// Finding is a rule with the reason why it allows something, or why not.
type Finding struct {
	Line    lang.Line // 0 for the implicit rule of a policy that does not restrict access
	Grant   bool      // it is in grants, not in acls
	Comment string
	Text    string
	// Source is the part of Text about the source, or all of it if it names nothing.
	Source string
}

func (f Finding) String() string {
	if f.Line == 0 {
		return f.Text
	}
	return fmt.Sprintf("line %d: %s", f.Line, f.Text)
}

// Why answers a question by the rules in force. A user, a group or a tag is allowed
// something if any of its nodes, existing or possible, is allowed it.
func Why(world *policy.World, q Question) Answer {
	var a Answer
	w := newWorld(world)
	ask := portQuery{protocol: cmp.Or(q.Protocol, lang.TCP), port: q.Port, anyPort: q.Port == 0}
	src, dst := w.endpoints(q.From), w.endpoints(q.To)
	if q.To.Node == 0 && q.To.Addr.IsValid() {
		dst = w.routersTo(q.To.Addr, &a)
	}
	e := candidates{src, dst}
	if len(src) > 0 && len(dst) > 0 && !e.meet() {
		a.Notes = append(a.Notes, fmt.Sprintf("%s and %s have no addresses of the same IP version", w.text(q.From), w.text(q.To)))
	}
	for _, end := range []End{q.From, q.To} {
		n, ok := w.Nodes.Get(end.Node)
		switch {
		case ok && n.Suspended():
			a.Notes = append(a.Notes, n.Name+" belongs to a suspended user and cannot connect until the user is restored")
		case ok && n.KeyExpired:
			a.Notes = append(a.Notes, n.Name+" has expired and must sign in again before it can connect")
		}
		if ok && n.NeedsApproval {
			a.Notes = append(a.Notes, n.Name+" cannot connect until an administrator approves it: fairlead nodes approve "+n.Name)
		}
	}
	a.Rules, a.Nearest = w.findRules(e, ask)
	a.Allowed = len(a.Rules) > 0 && len(a.Notes) == 0
	return a
}

// candidates holds possible sources and destinations; one allowed pair is enough.
type candidates struct{ src, dst []endpoint }

// meet reports whether a source and a destination are of the same address family.
func (e candidates) meet() bool {
	return slices.ContainsFunc(e.src, func(s endpoint) bool {
		return slices.ContainsFunc(e.dst, func(d endpoint) bool { return s.six() == d.six() })
	})
}

// pair is the source and the destination of a packet.
type pair struct{ src, dst endpoint }

// findRules returns the rules that allow one of the candidates, or those that almost
// do.
func (w *world) findRules(e candidates, ask portQuery) (rules, nearest []Finding) {
	const tooFar = 3
	var near []nearMiss
	for i := range w.rules {
		r, best := &w.rules[i], nearMiss{misses: tooFar}
		for _, six := range []bool{false, true} {
			p, v, ok := w.closest(r, e, six, ask)
			if !ok {
				continue
			}
			if v.allowed() {
				rules, best.misses = append(rules, w.because(r, v, &p)), tooFar
				break
			}
			if m := misses(r, v, p, ask); m.misses < best.misses {
				best = m
			}
		}
		if best.misses < tooFar {
			near = append(near, best)
		}
	}
	if len(rules) > 0 {
		return rules, nil
	}
	return nil, w.nearestOf(near)
}

// closest returns the pair of one address family that matches most of a rule. Sources
// and destinations match independently of each other, except by autogroup:self.
func (w *world) closest(r *lang.Rule, e candidates, six bool, ask portQuery) (p pair, v verdict, ok bool) {
	var s, d *endpoint
	v = verdict{src: -1, dst: -1}
	for i := range e.src {
		if c := &e.src[i]; c.six() == six && (s == nil || v.src < 0) {
			if v.src = w.sourceIn(r.Src, c); s == nil || v.src >= 0 {
				s = c
			}
		}
	}
	if s == nil {
		return p, v, false
	}
	for i := range e.dst {
		c := &e.dst[i]
		if c.six() != six {
			continue
		}
		switch found := w.judge(r, s, c, ask); {
		case found.reached():
			return pair{*s, *c}, found, true
		case d == nil || v.dst < 0 && found.dst >= 0:
			d, v = c, found
		}
	}
	if d == nil {
		return p, v, false
	}
	if slices.ContainsFunc(r.Dst, func(t lang.Destination) bool { return t.Kind == lang.Self }) {
		return w.closestOwn(r, e, pair{*s, *d}, v, ask)
	}
	return pair{*s, *d}, v, true
}

// closestOwn returns the first pair of the same user that a rule allows, or p and v if
// there is none.
func (w *world) closestOwn(r *lang.Rule, e candidates, p pair, v verdict, ask portQuery) (pair, verdict, bool) {
	for i := range e.src {
		for k := range e.dst {
			s, d := &e.src[i], &e.dst[k]
			if s.six() == p.src.six() && d.six() == p.src.six() && samePerson(s, d) {
				if found := w.judge(r, s, d, ask); found.allowed() {
					return pair{*s, *d}, found, true
				}
			}
		}
	}
	return p, v, true
}

// routersTo returns an address as a destination at each node that routes to it, or at a
// hypothetical router if there is none.
func (w *world) routersTo(addr netip.Addr, a *Answer) (list []endpoint) {
	announced := ""
	for n := range w.Nodes.All() {
		switch p := w.destination(addr, n); {
		case (p.behind || p.beyond) && n.Suspended():
			announced = "; " + n.Name + " has such a route but belongs to a suspended user"
		case (p.behind || p.beyond) && n.KeyExpired:
			announced = "; " + n.Name + " has such a route but has expired"
		case p.behind || p.beyond:
			a.At = append(a.At, n.ID)
			list = append(list, p)
		case slices.ContainsFunc(n.RoutableIPs, func(r netip.Prefix) bool { return r.Bits() > 0 && r.Contains(addr) }):
			announced = "; " + n.Name + " advertises one that is waiting for approval"
		}
	}
	if len(list) > 0 {
		return list
	}
	a.Notes = append(a.Notes, addr.String()+" is not the address of a node, and no approved route contains it"+announced)
	return []endpoint{somewhere(addr)}
}

// somewhere returns an address behind a hypothetical router.
func somewhere(a netip.Addr) endpoint {
	return endpoint{span: netip.PrefixFrom(a, a.BitLen()), behind: true, beyond: policy.IsPublic(a)}
}

// because returns the reason why a rule allows a packet.
func (w *world) because(r *lang.Rule, v verdict, p *pair) Finding {
	f := Finding{Line: r.Line, Grant: r.Grant, Comment: r.Comment}
	switch {
	case w.Doc == nil:
		f.Text = "no policy is set, so all nodes can reach each other"
		f.Source = f.Text
		return f
	case r.Line == 0:
		f.Text = "the policy has no access rules, so all nodes can reach each other"
		f.Source = f.Text
		return f
	}
	f.Source = w.sourceReason(&r.Src[v.src], &p.src)
	f.Text = f.Source + ", and " + w.destinationReason(&r.Dst[v.dst].Target, &p.src, &p.dst)
	if len(r.Via) > 0 {
		f.Text += ", through routers with " + either(r.Via)
	}
	return f
}

func (w *world) sourceReason(t *lang.Target, p *endpoint) string {
	if t.Kind == lang.Any || t.Kind == lang.DangerAll {
		return "the source matches everyone"
	}
	return w.reason(t, p)
}

func (w *world) destinationReason(t *lang.Target, s, d *endpoint) string {
	where := ""
	if d.at != nil && !d.own {
		where = " behind " + d.at.Name
	}
	switch {
	case t.Kind == lang.Any && d.own:
		return "the destination matches all nodes"
	case t.Kind == lang.Any && d.behind:
		return "the destination matches everything" + where
	case t.Kind == lang.Any || t.Kind == lang.Internet:
		return d.called() + " is on the internet" + where
	case t.Kind == lang.Self:
		return "both nodes belong to " + w.personOf(s)
	case d.own:
		return w.reason(t, d)
	default:
		return w.reason(t, d) + where
	}
}

// reason returns why a target matches an endpoint.
func (w *world) reason(t *lang.Target, p *endpoint) string {
	switch t.Kind {
	case lang.User:
		if p.called() == t.Name {
			return "the rule names " + p.called()
		}
		return p.called() + p.relation() + t.Name
	case lang.Group:
		return w.membership(t.Name, p)
	case lang.Tag:
		if p.imagined() {
			return "the rule names " + t.Name
		}
		return p.called() + " has " + t.Name
	case lang.Member:
		return p.called() + " is untagged"
	case lang.Admin:
		return p.administrator()
	case lang.Tagged:
		return p.called() + " is tagged"
	case lang.Addresses:
	case lang.Any, lang.Self, lang.Internet, lang.DangerAll: // sourceReason and destinationReason have their own texts
	}
	switch {
	case p.own && p.imagined():
		return t.Name + " contains the addresses of all nodes"
	case t.Name == p.called():
		return "the rule names " + p.called()
	case p.own && t.Name != p.span.Addr().String():
		return fmt.Sprintf("%s has %s, which is in %s", p.called(), p.span.Addr(), t.Name)
	case p.own:
		return p.called() + " has " + t.Name
	default:
		return p.called() + " is in " + t.Name
	}
}

// membership says that an endpoint is in a group, and where that is defined.
func (w *world) membership(group string, p *endpoint) string {
	members, defined := w.groups[group]
	where, text := " from the identity provider", ""
	switch i := p.MemberOf(members); {
	case defined:
		where, text = w.lineOfMember(group, i), members[i]
	case slices.Contains(p.Names, group): // any member
		return "the rule names " + group + where
	case slices.Contains(p.Names, p.called()):
		text = p.called()
	default:
		text = p.Names[0]
	}
	if p.called() != text {
		text = p.called() + p.relation() + text + ", who"
	}
	return text + " is in " + group + where
}

// administrator says that an endpoint belongs to an administrator.
func (p *endpoint) administrator() string {
	text := p.called()
	switch {
	case slices.Contains(p.Names, anyAdmin):
		return "the rule names " + anyAdmin
	case !slices.Contains(p.Names, text):
		text += p.relation() + p.Names[0] + ", who"
	}
	return text + " has the role admin"
}

// relation returns the words that connect an endpoint with a user name in a sentence.
func (p *endpoint) relation() string {
	if !p.imagined() {
		return " belongs to "
	}
	return " is "
}

func (w *world) lineOfMember(group string, i int) string {
	if w.Doc == nil || i >= len(w.Doc.MemberLines[group]) {
		return ""
	}
	return fmt.Sprintf(" (line %d)", w.Doc.MemberLines[group][i])
}

func (w *world) personOf(p *endpoint) string {
	if u, ok := w.Users.Get(p.owner); ok {
		return u.Name
	}
	return p.called()
}

// nearMiss is a rule that does not allow a packet.
type nearMiss struct {
	rule   *lang.Rule
	pair   pair
	far    verdict
	misses int // how many things would have to be different
	order  int // breaks ties; the most obvious first
}

// misses counts what would have to be different for a rule to allow a packet. If no
// destination matches, it counts one more if none of them has the service.
func misses(r *lang.Rule, v verdict, p pair, ask portQuery) nearMiss {
	m := nearMiss{rule: r, pair: p, far: v}
	if v.src < 0 {
		m.misses, m.order = 1, 1
	}
	switch {
	case v.dst < 0:
		m.misses, m.order = m.misses+1, 2
		if !slices.ContainsFunc(r.Dst, func(d lang.Destination) bool { return ask.serves(d.Services, p.dst.six()) }) {
			m.misses++
		}
	case !v.service:
		m.misses++
	}
	return m
}

// finding returns the reason why a rule does not allow a packet.
func (w *world) finding(m *nearMiss) Finding {
	r, reasons := m.rule, []string(nil)
	if m.far.dst >= 0 && !m.far.service {
		reasons = append(reasons, refusal(r.Dst[m.far.dst].Services))
	}
	if m.far.src < 0 {
		reasons = append(reasons, mustBe("source", r.Src))
	}
	if m.far.dst < 0 {
		reasons = append(reasons, w.elsewhere(r, &m.pair))
	}
	return Finding{Line: r.Line, Grant: r.Grant, Comment: r.Comment, Text: strings.Join(reasons, ", and ")}
}

// elsewhere describes the destinations that a rule has instead.
func (w *world) elsewhere(r *lang.Rule, p *pair) string {
	fits := slices.ContainsFunc(r.Dst, func(d lang.Destination) bool { return w.isDestination(&d.Target, &p.src, &p.dst) })
	switch {
	case fits && p.dst.own:
		return "it applies to destinations behind routers with " + either(r.Via) + ", not to nodes"
	case fits:
		return "it applies to routers with " + either(r.Via) + ", not to " + p.dst.at.Name
	}
	targets := make([]lang.Target, len(r.Dst))
	for i, d := range r.Dst {
		targets[i] = d.Target
	}
	if len(targets) == 1 && targets[0].Kind == lang.Self {
		return "it applies only to nodes of the same user"
	}
	return mustBe("destination", targets)
}

// nearestOf returns the rules with the fewest misses.
func (w *world) nearestOf(all []nearMiss) (list []Finding) {
	slices.SortStableFunc(all, func(a, b nearMiss) int { return cmp.Or(a.misses-b.misses, a.order-b.order) })
	for i := range all[:min(len(all), maxNearest)] {
		if all[i].misses == all[0].misses {
			list = append(list, w.finding(&all[i]))
		}
	}
	return list
}

// refusal describes what services allow instead of what was asked for.
func refusal(services []lang.Service) string {
	var parts []string
	for _, s := range services {
		parts = append(parts, s.String())
	}
	if len(parts) == 0 {
		return "it grants capabilities but no ports"
	}
	return strings.Join(parts, ", ") + " only"
}

// mustBe describes what the source or the destination of a rule must be.
func mustBe(side string, targets []lang.Target) string {
	if len(targets) == 0 {
		return "the rule has no " + side
	}
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Name
	}
	return "the " + side + " must be " + either(names)
}

// either joins names with "or". If there are many, it names only the first ones.
func either(names []string) string {
	const most = 3
	names = slices.Compact(slices.Clone(names))
	if len(names) > most {
		return fmt.Sprintf("%s or one of %d others", strings.Join(names[:most-1], ", "), len(names)-most+1)
	}
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
