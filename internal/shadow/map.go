package shadow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go4.org/netipx"
)

// Map is what a device knows: the part of the clients' map response that has an effect.
type Map struct {
	// Asker is the key of the device that asked for the map, or empty if the text does not contain the question.
	Asker string `json:"-"`

	Node         *Node
	Peers        []*Node
	PeersChanged []*Node
	PeersRemoved []int64
	// PeersChangedPatch changes what is set.
	PeersChangedPatch []struct {
		NodeID    int64
		Key       string
		KeyExpiry time.Time
	}
	DERPMap       json.RawMessage
	UserProfiles  []Profile
	DNSConfig     *DNS
	PacketFilter  []Rule
	PacketFilters map[string][]Rule
	SSHPolicy     *struct{ Rules []SSHRule }
}

// Node is a device.
type Node struct {
	ID         int64
	StableID   string
	Name       string
	User       int64
	Key        string
	KeyExpiry  time.Time
	Expired    bool
	Addresses  []netip.Prefix
	AllowedIPs []netip.Prefix
	Tags       []string
}

// Profile is a person.
type Profile struct {
	ID        int64
	LoginName string
}

// DNS is how a device resolves names.
type DNS struct {
	Proxied           bool
	Domains           []string
	Resolvers         []Resolver
	FallbackResolvers []Resolver
	Routes            map[string][]Resolver
	ExtraRecords      []Record
}

// Resolver is a DNS server.
type Resolver struct{ Addr string }

// Record is a DNS record.
type Record struct{ Name, Type, Value string }

// Rule lets traffic in.
type Rule struct {
	SrcIPs   []string
	DstPorts []struct {
		IP    string
		Ports struct{ First, Last uint16 }
	}
	IPProto []int
}

// SSHRule lets sessions in.
type SSHRule struct {
	Principals []struct {
		NodeIP, UserLogin string
		Any               bool
	}
	SSHUsers map[string]string
	Action   struct {
		Accept          bool
		HoldAndDelegate string
	}
}

// Parse reads a map response. Headscale before 0.27 wrapped those that it dumped.
func Parse(text []byte) (*Map, error) {
	var wrapped struct {
		MapRequest  struct{ NodeKey string }
		MapResponse json.RawMessage
	}
	if err := json.Unmarshal(text, &wrapped); err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	if len(wrapped.MapResponse) > 0 {
		text = wrapped.MapResponse
	}
	m := Map{Asker: wrapped.MapRequest.NodeKey}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("not a map response: %w", err)
	}
	return &m, nil
}

// Full reports whether the response replaces all that the device knew. It has no peers if the device sees none.
func (m *Map) Full() bool { return m.Node != nil && (m.Peers != nil || m.DERPMap != nil) }

// Update adds a later response to what the device knows.
func (m *Map) Update(next *Map) {
	if next.Full() {
		*m = *next
		return
	}
	if next.Node != nil {
		m.Node = next.Node
	}
	if next.DNSConfig != nil {
		m.DNSConfig = next.DNSConfig
	}
	if next.SSHPolicy != nil {
		m.SSHPolicy = next.SSHPolicy
	}
	if next.PacketFilter != nil {
		m.PacketFilter = next.PacketFilter
	}
	if next.PacketFilters != nil {
		m.PacketFilters = next.PacketFilters
	}
	m.UserProfiles = append(m.UserProfiles, next.UserProfiles...)
	m.Peers = slices.DeleteFunc(slices.Clone(m.Peers), func(p *Node) bool {
		return slices.Contains(next.PeersRemoved, p.ID) || slices.ContainsFunc(next.PeersChanged, func(c *Node) bool { return c.ID == p.ID })
	})
	m.Peers = append(m.Peers, next.PeersChanged...)
	for _, patch := range next.PeersChangedPatch {
		for _, p := range m.Peers {
			if p.ID == patch.NodeID {
				p.Key = cmp.Or(patch.Key, p.Key)
				if !patch.KeyExpiry.IsZero() {
					p.KeyExpiry = patch.KeyExpiry
				}
			}
		}
	}
}

func (m *Map) rules() []Rule {
	all := slices.Clone(m.PacketFilter)
	for _, rules := range m.PacketFilters {
		all = append(all, rules...)
	}
	return all
}

// addresses are ranges of addresses. The zero value is empty.
type addresses []netipx.IPRange

func everywhere() addresses {
	return addresses{netipx.RangeOfPrefix(netip.MustParsePrefix("0.0.0.0/0")), netipx.RangeOfPrefix(netip.MustParsePrefix("::/0"))}
}

// parseAddresses reads an address, a network, a range, or * for everything. Anything else, such as a capability, is empty.
func parseAddresses(text string) addresses {
	if text == "*" {
		return everywhere()
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return addresses{netipx.IPRangeFrom(a, a)}
	}
	if p, err := netip.ParsePrefix(text); err == nil {
		return addresses{netipx.RangeOfPrefix(p.Masked())}
	}
	if strings.Contains(text, "-") {
		if r, err := netipx.ParseIPRange(text); err == nil {
			return addresses{r}
		}
	}
	return nil
}

func (a addresses) contains(addr netip.Addr) bool {
	return slices.ContainsFunc(a, func(r netipx.IPRange) bool { return r.Contains(addr) })
}

// set returns the addresses in a form for many questions.
func (a addresses) set() *netipx.IPSet {
	var b netipx.IPSetBuilder
	for _, r := range a {
		b.AddRange(r)
	}
	s, err := b.IPSet()
	if err != nil { // only for invalid ranges, which parseAddresses does not return
		return &netipx.IPSet{}
	}
	return s
}
