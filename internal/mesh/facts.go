package mesh

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// Facts is what a device measured of the network that it is in, and what
// troubles it. Peers are not told, so it stands beside the node: a change of it
// touches nobody.
type Facts struct {
	Node NodeID `json:"node"`
	// At is when the device last said any of it.
	At Time `json:"at"`
	NAT
	// Latencies are in the order of their regions.
	Latencies []Latency `json:"latencies,omitempty"`
	// Warnings are in the order of their sources.
	Warnings []Warning `json:"warnings,omitempty"`
}

// NAT says how a device can be reached from outside. What it has not found out
// is nil.
type NAT struct {
	UDP  *bool `json:"udp,omitempty"`
	IPv6 *bool `json:"ipv6,omitempty"`
	// Varies says that the device appears under another port or address to
	// everyone it speaks to, so that strangers hardly reach it.
	Varies *bool `json:"varies,omitempty"`
	// PortMapping are the protocols by which its router would open a port, in
	// order: pcp, pmp, upnp. PortMapped says that it has done so.
	PortMapping []string `json:"portMapping,omitempty"`
	PortMapped  bool     `json:"portMapped,omitempty"`
}

// Latency is how far a relay is.
type Latency struct {
	Region int   `json:"region"`
	Micros int64 `json:"us"`
}

// Warning is something that a device complains of.
type Warning struct {
	Source string `json:"source"` // a part of the device, unique among its warnings
	Text   string `json:"text"`
	Since  Time   `json:"since"`
}

// NodeFacts replaces what a device measured. No peer hears of it.
type NodeFacts struct {
	Facts *Facts `json:"facts"`
}

// Kind names the event in the log.
func (NodeFacts) Kind() Kind    { return KindNodeFacts }
func (e NodeFacts) valid() bool { return e.Facts != nil && valid(e.Facts.Node) }
func (e NodeFacts) apply(d *Draft) {
	if _, ok := d.s.Node(e.Facts.Node); ok {
		d.s.facts.put(d.e, int64(e.Facts.Node), e.Facts)
	}
}

// Facts returns what a node measured, if it said so.
func (s *Snapshot) Facts(id NodeID) (*Facts, bool) { return found(s.facts.at(int64(id))) }

// AllFacts yields what nodes measured in the order of their ids.
func (s *Snapshot) AllFacts() iter.Seq[*Facts] { return s.facts.all() }

// Equal reports whether both say the same.
func (n NAT) Equal(o NAT) bool {
	same := func(a, b *bool) bool { return a == b || a != nil && b != nil && *a == *b }
	return same(n.UDP, o.UDP) && same(n.IPv6, o.IPv6) && same(n.Varies, o.Varies) &&
		slices.Equal(n.PortMapping, o.PortMapping) && n.PortMapped == o.PortMapped
}

// Equal reports whether both say the same, no matter when.
func (f *Facts) Equal(o *Facts) bool {
	return f.NAT.Equal(o.NAT) && slices.Equal(f.Latencies, o.Latencies) && slices.Equal(f.Warnings, o.Warnings)
}

// Warn sets the warning of a source; an empty text ends it. The list is not
// written to: others may hold it.
func (f *Facts) Warn(source, text string, at Time) {
	i, has := slices.BinarySearchFunc(f.Warnings, source, func(w Warning, s string) int { return strings.Compare(w.Source, s) })
	switch {
	case !has && text == "", has && f.Warnings[i].Text == text:
		return
	case text == "":
		f.Warnings = slices.Delete(slices.Clone(f.Warnings), i, i+1)
	case has:
		f.Warnings = slices.Clone(f.Warnings)
		f.Warnings[i] = Warning{source, text, at}
	default:
		f.Warnings = slices.Insert(slices.Clone(f.Warnings), i, Warning{source, text, at})
	}
	if len(f.Warnings) == 0 {
		f.Warnings = nil
	}
}

// SortLatencies brings them into their order.
func SortLatencies(list []Latency) {
	slices.SortFunc(list, func(a, b Latency) int { return cmp.Compare(a.Region, b.Region) })
}
