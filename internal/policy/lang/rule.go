package lang

import (
	"encoding/json"
	"net/netip"
	"slices"
	"time"
)

// Line is a line number in the text, counted from 1; 0 means none.
type Line int

// Kind is what a target refers to.
type Kind int

// The kinds of target. Clients are sent hashes of the numbers of the kinds up to Tagged,
// so new kinds must be added at the end.
const (
	Any       Kind = iota // "*": every node, and everything behind routers
	User                  // the nodes of a user that have no tags
	Group                 // the untagged nodes of several users
	Tag                   // the nodes with a tag
	Member                // autogroup:member: all nodes without tags
	Tagged                // autogroup:tagged: all nodes with tags
	Self                  // autogroup:self, a destination: the nodes of the source's user
	Internet              // autogroup:internet, a destination: the public internet behind exit nodes
	DangerAll             // autogroup:danger-all, a source: every address
	Addresses             // an address, a prefix, a host or an ipset
	Admin                 // autogroup:admin: the untagged nodes of users with the assigned role admin
)

// IsIdentity reports whether targets of a kind identify nodes by their owner or
// their tags.
func (k Kind) IsIdentity() bool { return asNode.has(k) }

// Target is a source or a destination of a rule.
type Target struct {
	Kind Kind
	// Name is the user in the form of UserName, group:… or tag:…; for Addresses it is
	// the text as written.
	Name string
	// Prefixes is set for Addresses. The prefixes are masked, sorted and do not overlap.
	Prefixes []netip.Prefix
	Line     Line
}

// PortRange is an inclusive range of ports.
type PortRange struct{ First, Last uint16 }

// Service is a set of protocols with ports, which are sorted and do not overlap. No
// protocols means TCP, UDP and ICMP. Protocols without ports have the whole range.
type Service struct {
	Protocols []int
	Ports     []PortRange
}

// Destination is a target with the services that may be reached there.
type Destination struct {
	Target
	Services []Service // none for a rule that only grants capabilities
}

// Rule lets sources reach destinations. It is an entry of acls or of grants.
type Rule struct {
	Line    Line
	Grant   bool // it is an entry of grants
	Comment string
	Src     []Target
	Dst     []Destination
	// App maps capabilities to their values, which are passed on unchanged.
	App map[string][]json.RawMessage
	// Via lists tags of routers: the destinations are reachable only through these.
	Via []string
}

// AllowAll returns the implicit rule of a policy that does not restrict access. It has no
// line.
func AllowAll() Rule {
	return Rule{
		Src: []Target{{Kind: Any, Name: "*"}},
		Dst: []Destination{{
			Target:   Target{Kind: Any, Name: "*"},
			Services: []Service{{Ports: []PortRange{AllPorts()}}},
		}},
	}
}

// SSHRule lets sources open SSH sessions.
type SSHRule struct {
	Line  Line
	Check bool // only after approval
	// CheckPeriod is how long an approval is valid; zero means for one session.
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

// Approvers lists the users, groups and tags whose routes need no approval.
type Approvers struct {
	Routes   []RouteApprovers
	ExitNode []Target
}

// RouteApprovers lists the users, groups and tags that may advertise any part of a prefix
// without approval.
type RouteApprovers struct {
	Line   Line
	Column int
	Prefix netip.Prefix
	Who    []Target
}

// Attribute gives capabilities to nodes.
type Attribute struct {
	Line    Line
	Targets []Target
	Attrs   map[string][]json.RawMessage
}

// Test is what the rules must allow and deny.
type Test struct {
	Line         Line
	Src          Target
	Protocol     int // 0 means TCP or UDP
	Accept, Deny []TestDestination
}

// TestDestination is a destination with one port.
type TestDestination struct {
	Target
	Text string // as written
	Port uint16
}

// SSHTest is what the SSH rules must allow, check and deny.
type SSHTest struct {
	Line                Line
	Src                 Target
	Dst                 []Target
	Accept, Check, Deny []string
}
