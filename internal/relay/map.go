package relay

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strconv"

	"tailscale.com/tailcfg"
)

// RegionConfig describes a region with one relay. ID and HostName are required.
type RegionConfig struct {
	ID         int
	Code, Name string
	// HostName is the host that clients connect to over TLS.
	HostName string
	DERPPort int // defaults to 443
	STUNPort int // defaults to 3478; negative disables STUN
	// IPv4 and IPv6 save clients a DNS lookup. If they are invalid, clients use DNS.
	IPv4, IPv6 netip.Addr
	// Insecure lets clients accept any certificate. It is for tests.
	Insecure bool
}

// Region returns the relay's entry in the relay map. If HostName is an address, the entry says that it has no
// other address, because clients would otherwise look for the other family at each start, which takes three
// seconds.
func Region(c RegionConfig) *tailcfg.DERPRegion {
	unknown := ""
	if a, err := netip.ParseAddr(c.HostName); err == nil {
		unknown = "none"
		if a.Is4() && !c.IPv4.IsValid() {
			c.IPv4 = a
		} else if a.Is6() && !c.IPv6.IsValid() {
			c.IPv6 = a
		}
	}
	text := func(a netip.Addr) string {
		if !a.IsValid() {
			return unknown
		}
		return a.String()
	}
	return &tailcfg.DERPRegion{
		RegionID: c.ID, RegionCode: c.Code, RegionName: c.Name,
		Nodes: []*tailcfg.DERPNode{{
			Name: strconv.Itoa(c.ID) + "a", RegionID: c.ID, HostName: c.HostName,
			IPv4: text(c.IPv4), IPv6: text(c.IPv6), DERPPort: c.DERPPort, STUNPort: c.STUNPort, InsecureForTests: c.Insecure,
		}},
	}
}

// maxRegion is the largest number that old clients can send to each other: they encode the region as the port
// of an address.
const maxRegion = 65535

// hostName matches a host name. Underscores are allowed, because some names in private networks have them.
var hostName = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z_.-]{0,251}[0-9A-Za-z])?$`)

// Check returns an error that lists everything in m that clients could not use, one problem per line.
func Check(m *tailcfg.DERPMap) error {
	if len(m.Regions) == 0 {
		return errors.New("the map has no regions")
	}
	var problems []error
	names := map[string]bool{}
	for _, id := range m.RegionIDs() {
		report := func(format string, args ...any) {
			problems = append(problems, fmt.Errorf("region %d: "+format, append([]any{id}, args...)...))
		}
		region := m.Regions[id]
		if id < 1 || id > maxRegion {
			report("the region ID must be from 1 to %d", maxRegion)
		}
		if region == nil {
			report("the region is null: remove it")
			continue
		}
		if region.RegionID != id {
			report("RegionID is %d, but must be the same as the key of the region", region.RegionID)
		}
		if !(math.Abs(region.Latitude) <= 90 && math.Abs(region.Longitude) <= 180) {
			report("invalid coordinates %v, %v", region.Latitude, region.Longitude)
		}
		if len(region.Nodes) == 0 {
			report("the region has no nodes")
		}
		for i, node := range region.Nodes {
			if node == nil {
				report("node %d is null: remove it", i)
				continue
			}
			if names[node.Name] {
				report("node %q: another node has this name", node.Name)
			}
			names[node.Name] = true
			for _, problem := range checkNode(node, id) {
				report("node %q: %s", node.Name, problem)
			}
		}
	}
	if m.HomeParams != nil {
		for _, id := range slices.Sorted(maps.Keys(m.HomeParams.RegionScore)) {
			if score := m.HomeParams.RegionScore[id]; !(score > 0 && score <= math.MaxFloat64) {
				problems = append(problems, fmt.Errorf("region %d: the score %v must be above 0", id, score))
			}
		}
	}
	return errors.Join(problems...)
}

func checkNode(n *tailcfg.DERPNode, region int) (problems []string) {
	want := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	_, notAddr := netip.ParseAddr(n.HostName)
	want(n.Name != "", "the node has no name")
	want(n.RegionID == region, fmt.Sprintf("RegionID is %d, but must be that of its region", n.RegionID))
	want(hostName.MatchString(n.HostName) || notAddr == nil, fmt.Sprintf("invalid host name %q", n.HostName))
	want(n.DERPPort >= 0 && n.DERPPort <= 65535, fmt.Sprintf("invalid DERP port %d", n.DERPPort))
	want(n.STUNPort >= -1 && n.STUNPort <= 65535, fmt.Sprintf("invalid STUN port %d; -1 means no STUN", n.STUNPort))
	want(isAddr(n.IPv4, netip.Addr.Is4), fmt.Sprintf(`invalid IPv4 address %q; "none" means no IPv4`, n.IPv4))
	want(isAddr(n.IPv6, netip.Addr.Is6), fmt.Sprintf(`invalid IPv6 address %q; "none" means no IPv6`, n.IPv6))
	return problems
}

func isAddr(s string, family func(netip.Addr) bool) bool {
	if s == "" || s == "none" {
		return true
	}
	a, err := netip.ParseAddr(s)
	return err == nil && family(a) && a.Zone() == ""
}

// Encode returns m in the client's format. Equal maps give equal bytes.
func Encode(m *tailcfg.DERPMap) ([]byte, error) {
	text, err := json.Marshal(m) // sorts the regions
	if err != nil {
		return nil, fmt.Errorf("encoding the relay map: %w", err)
	}
	return text, nil
}
