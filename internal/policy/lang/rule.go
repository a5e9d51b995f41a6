package lang

import (
	"encoding/json"
	"net/netip"
	"slices"
	"time"
)

// Line is where something stands in the text, from 1; 0 means nowhere.
type Line int

// Kind says what a target names.
type Kind int

// The kinds of target.
const (
	Any       Kind = iota // "*": every node, and what routers lead to
	User                  // the nodes of a person that have no tags
	Group                 // the same of several people
	Tag                   // the nodes with a tag
	Member                // autogroup:member: all nodes without tags
	Tagged                // autogroup:tagged: all nodes with tags
	Self                  // autogroup:self, a destination: the nodes of whoever asks
	Internet              // autogroup:internet, a destination: the world beyond exit nodes
	DangerAll             // autogroup:danger-all, a source: every address there is
	Addresses             // an address, a prefix, a host or an ipset
)

// IsIdentity reports whether targets of a kind identify nodes by their owner or
// their tags.
func (k Kind) IsIdentity() bool { return asNode.has(k) }

// Target is one who may, or where to.
type Target struct {
	Kind Kind
	// Name is the user (as userOf gives it), group:… or tag:…; for Addresses it
	// is the text as written.
	Name string
	// Prefixes of a target of kind Addresses, masked, in order, none within
	// another.
	Prefixes []netip.Prefix
	Line     Line
}

// PortRange is a range of ports, both ends included.
type PortRange struct{ First, Last uint16 }

// Service is a set of protocols with the ports that count, in order and apart. No
// protocols means TCP, UDP and ICMP. Protocols without ports have the whole range.
type Service struct {
	Protocols []int
	Ports     []PortRange
}

// Destination is a target with what may be reached there.
type Destination struct {
	Target
	Services []Service // none for a rule that only grants capabilities
}

// Rule lets sources reach destinations: one of acls, or one of grants.
type Rule struct {
	Line    Line
	Grant   bool // it stands in grants
	Comment string
	Src     []Target
	Dst     []Destination
	// App maps capabilities to their values, which are passed on as they are.
	App map[string][]json.RawMessage
	// Via names tags of routers: the destinations are reached through them
	// alone.
	Via []string
}

// AllowAll is what holds where nothing is said about access: a rule that stands
// nowhere.
func AllowAll() Rule {
	return Rule{
		Src: []Target{{Kind: Any, Name: "*"}},
		Dst: []Destination{{
			Target:   Target{Kind: Any, Name: "*"},
			Services: []Service{{Ports: []PortRange{AllPorts()}}},
		}},
	}
}

// SSHRule lets sources open a shell.
type SSHRule struct {
	Line  Line
	Check bool // after a person has agreed
	// CheckPeriod is how long the agreement holds; zero means for one session.
	CheckPeriod time.Duration
	Src         []Target
	Dst         []Target
	Users       []string // names, autogroup:nonroot, root
	AcceptEnv   []string
}

// HasUser reports whether a rule applies to a user of the operating system.
func (r *SSHRule) HasUser(user string) bool {
	return slices.Contains(r.Users, user) || user != "root" && slices.Contains(r.Users, NonRoot)
}

// Approvers say whose routes need no approval.
type Approvers struct {
	Routes   []RouteApprovers
	ExitNode []Target
}

// RouteApprovers may announce any part of a prefix.
type RouteApprovers struct {
	Line   Line
	Column int
	Prefix netip.Prefix
	Who    []Target
}

// Attribute gives nodes capabilities.
type Attribute struct {
	Line    Line
	Targets []Target
	Attrs   map[string][]json.RawMessage
}

// Test is a statement about the rules that must hold.
type Test struct {
	Line         Line
	Src          Target
	Protocol     int // 0: TCP or UDP
	Accept, Deny []TestDestination
}

// TestDestination is one place and one port.
type TestDestination struct {
	Target
	Text string // as written
	Port uint16
}

// SSHTest is a statement about the SSH rules that must hold.
type SSHTest struct {
	Line                Line
	Src                 Target
	Dst                 []Target
	Accept, Check, Deny []string
}
