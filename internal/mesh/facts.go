package mesh

import (
	"cmp"
	"slices"
	"strings"
)

// Facts are a device's measurements of its network, and its health warnings. Peers do not
// receive them, so they are stored separately and touch no node.
type Facts struct {
	Node NodeID `json:"node"`
	// At is when the device last reported any of these facts.
	At Time `json:"at"`
	NAT
	// Latencies are sorted by region.
	Latencies []Latency `json:"latencies,omitempty"`
	// Warnings are sorted by source.
	Warnings []Warning `json:"warnings,omitempty"`
	// NoiseKey is the number of the server's key that the device used last while the server accepted two keys. It is
	// zero if the device has not connected in such a time.
	NoiseKey int `json:"noiseKey,omitempty"`
}

// NAT is how a device can be reached from outside. Unknown values are nil.
type NAT struct {
	UDP  *bool `json:"udp,omitempty"`
	IPv6 *bool `json:"ipv6,omitempty"`
	// Varies means that the device's public address or port depends on the
	// destination, which makes direct connections unlikely.
	Varies *bool `json:"varies,omitempty"`
	// PortMapping lists the port mapping protocols that its router offers, in the order
	// pcp, pmp, upnp. PortMapped means that a port is mapped.
	PortMapping []string `json:"portMapping,omitempty"`
	PortMapped  bool     `json:"portMapped,omitempty"`
}

// Latency is the latency to a relay.
type Latency struct {
	Region int   `json:"region"`
	Micros int64 `json:"us"`
}

// Warning is a health warning of a device.
type Warning struct {
	Source string `json:"source"` // a part of the device, unique among its warnings
	Text   string `json:"text"`
	Since  Time   `json:"since"`
}

// NodeFacts replaces the measurements of a device. It touches no node.
type NodeFacts struct {
	Facts *Facts `json:"facts"`
}

// Kind names the event in the log.
func (NodeFacts) Kind() Kind    { return KindNodeFacts }
func (e NodeFacts) valid() bool { return e.Facts != nil && valid(e.Facts.Node) }
func (e NodeFacts) apply(d *Draft) {
	if _, ok := d.s.Nodes.Get(e.Facts.Node); ok {
		d.s.Facts.put(d.e, e.Facts.Node, e.Facts)
	}
}

// Equal reports whether both have the same values.
func (n NAT) Equal(o NAT) bool {
	same := func(a, b *bool) bool { return a == b || a != nil && b != nil && *a == *b }
	return same(n.UDP, o.UDP) && same(n.IPv6, o.IPv6) && same(n.Varies, o.Varies) &&
		slices.Equal(n.PortMapping, o.PortMapping) && n.PortMapped == o.PortMapped
}

// Equal reports whether both have the same values, apart from At.
func (f *Facts) Equal(o *Facts) bool {
	return f.NAT.Equal(o.NAT) && slices.Equal(f.Latencies, o.Latencies) && slices.Equal(f.Warnings, o.Warnings) && f.NoiseKey == o.NoiseKey
}

// Warn sets the warning of a source; an empty string removes it. It does not modify the
// old list, which others may hold.
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

// SortLatencies sorts latencies by region.
func SortLatencies(list []Latency) {
	slices.SortFunc(list, func(a, b Latency) int { return cmp.Compare(a.Region, b.Region) })
}
