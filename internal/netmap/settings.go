package netmap

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Settings holds the rendered settings, which are the same for all viewers.
type Settings struct {
	domain  string
	clients mesh.Clients
	dns     json.RawMessage
	relays  json.RawMessage
	plans   []json.RawMessage // see dialPlan
}

// Relays returns the relay map in the clients' format.
func (s *Settings) Relays() []byte { return s.relays }

// sameSelf reports whether both settings have the same effect on what a node is sent about
// itself.
func (s *Settings) sameSelf(t *Settings) bool {
	a, b := s.clients, t.clients
	a.ServerAddrs, b.ServerAddrs = nil, nil
	return s.domain == t.domain && a.Equal(b)
}

// noDomain is the domain of nodes while no base domain is set.
const noDomain = "mesh.internal"

type resolver struct{ Addr string }

type record struct{ Name, Type, Value string }

type dnsConfig struct {
	Proxied             bool
	Domains             []string
	Resolvers           []resolver            `json:",omitempty"`
	FallbackResolvers   []resolver            `json:",omitempty"`
	Routes              map[string][]resolver `json:",omitempty"`
	ExtraRecords        []record              `json:",omitempty"`
	ExitNodeFilteredSet []string              `json:",omitempty"`
}

// SettingsOf renders the settings of a snapshot.
func SettingsOf(s *mesh.Snapshot) *Settings {
	d := s.DNS()
	d.ExtraRecords = slices.Concat(d.ExtraRecords, s.FileRecords())
	out := &Settings{domain: d.BaseDomain, clients: s.Clients(), dns: renderDNS(d), relays: renderRelays(s), plans: renderPlans(s)}
	if out.domain == "" {
		out.domain = noDomain
	}
	return out
}

func renderDNS(d mesh.DNS) json.RawMessage {
	c := dnsConfig{Proxied: d.MagicDNS, Domains: []string{}, Routes: map[string][]resolver{}}
	if d.MagicDNS {
		c.Domains = append(c.Domains, d.BaseDomain)
		c.ExitNodeFilteredSet = []string{"." + d.BaseDomain}
	}
	c.Domains = append(c.Domains, d.SearchDomains...)
	if c.Resolvers = resolvers(d.Nameservers); d.KeepLocal {
		c.Resolvers, c.FallbackResolvers = nil, c.Resolvers
	}
	for domain, servers := range d.Split {
		c.Routes[domain] = resolvers(servers)
	}
	for _, r := range d.ExtraRecords {
		c.ExtraRecords = append(c.ExtraRecords, record{r.Name, r.Type, r.Value.String()})
		if !d.MagicDNS || !strings.HasSuffix(r.Name, "."+d.BaseDomain) {
			if _, routed := c.Routes[r.Name]; !routed {
				// Without a route, a query for this name would not reach the client's own
				// resolver. The list is empty, not null: clients drop null when they copy
				// the configuration.
				c.Routes[r.Name] = []resolver{}
			}
		}
	}
	return encode(c)
}

func resolvers(addrs []string) []resolver {
	out := make([]resolver, len(addrs))
	for i, a := range addrs {
		out[i].Addr = a
	}
	return out
}

// renderRelays merges the external relay map with the embedded relays and those that run
// as processes of their own, which take precedence if they have the same region. Unknown
// fields are passed on to clients unchanged.
func renderRelays(s *mesh.Snapshot) json.RawMessage {
	external, embedded := s.RelaySettings()
	whole := map[string]json.RawMessage{}
	_ = json.Unmarshal([]byte(external), &whole) // checked before it was stored; an unreadable one counts as empty
	regions := map[string]json.RawMessage{}
	_ = json.Unmarshal(whole["Regions"], &regions)
	for id, relay := range embedded {
		if len(relay.Region) > 0 {
			regions[id] = relay.Region
		}
	}
	for id, region := range joinedRegions(s) {
		regions[strconv.Itoa(id)] = encode(region)
	}
	whole["Regions"] = encode(regions)
	whole["omitDefaultRegions"] = json.RawMessage("true")
	return encode(whole)
}

// Candidates of a dial plan start one after the other, so that a client that reaches the first
// one does not connect to the others, too. A client uses DNS only after all have failed: the
// timeout leaves it at least half of the time that it would have had without a plan.
const (
	dialStagger = 1 // seconds
	dialTimeout = 4 // seconds
)

type dialPlan struct{ Candidates []dialCandidate }

type dialCandidate struct {
	IP                netip.Addr
	DialStartDelaySec float64 `json:",omitempty"`
	DialTimeoutSec    float64
}

// noDialPlan returns a plan that removes an earlier one from a client.
func noDialPlan() json.RawMessage { return encode(dialPlan{Candidates: []dialCandidate{}}) }

// renderPlans returns a dial plan for each address of the server, which begins with that address.
// Without addresses, it is one plan that removes an earlier one from clients. It returns nil if
// the configuration has never asked anything of clients.
func renderPlans(s *mesh.Snapshot) []json.RawMessage {
	if _, ok := s.Settings.ByKey(mesh.SettingClients); !ok {
		return nil
	}
	addrs := s.Clients().ServerAddrs
	plans := make([]json.RawMessage, max(len(addrs), 1))
	for first := range plans {
		plan := dialPlan{Candidates: []dialCandidate{}}
		for i := range addrs {
			plan.Candidates = append(plan.Candidates, dialCandidate{addrs[(first+i)%len(addrs)], float64(i) * dialStagger, dialTimeout})
		}
		plans[first] = encode(plan)
	}
	return plans
}

// dialPlan returns how a node connects to the server, or nil if it need not be told. Nodes try
// the addresses in different orders, so that each address gets its share of them.
func (s *Settings) dialPlan(id mesh.NodeID) json.RawMessage {
	if len(s.plans) == 0 {
		return nil
	}
	return s.plans[uint64(id)%uint64(len(s.plans))]
}

// relayRegion and relayNode are the client's format of a region and a relay.
type relayRegion struct {
	RegionID               int
	RegionCode, RegionName string
	Nodes                  []relayNode
}

type relayNode struct {
	Name       string
	RegionID   int
	HostName   string
	IPv4, IPv6 string `json:",omitempty"`
	STUNPort   int    `json:",omitempty"`
	DERPPort   int    `json:",omitempty"`
}

// joinedRegions returns the regions of relays that run as processes of their own. The
// relays of a region are connected to each other, and clients use the first one that they
// can reach.
func joinedRegions(s *mesh.Snapshot) map[int]*relayRegion {
	regions := map[int]*relayRegion{}
	for r := range s.Relays.All() {
		if !r.Offered() {
			continue
		}
		region := regions[r.Region]
		if region == nil {
			region = &relayRegion{RegionID: r.Region, RegionCode: r.RegionCode, RegionName: r.RegionName}
			regions[r.Region] = region
		}
		host, port := r.Place.Host()
		n := relayNode{Name: strconv.Itoa(r.Region) + "-" + r.Name, RegionID: r.Region, HostName: host, STUNPort: r.Place.STUNPort, DERPPort: port}
		if a, err := netip.ParseAddr(host); err == nil {
			// Clients would otherwise look for an address of the other family.
			if n.IPv4, n.IPv6 = "none", a.String(); a.Is4() {
				n.IPv4, n.IPv6 = n.IPv6, n.IPv4
			}
		}
		if r.Place.IPv4.IsValid() {
			n.IPv4 = r.Place.IPv4.String()
		}
		if r.Place.IPv6.IsValid() {
			n.IPv6 = r.Place.IPv6.String()
		}
		region.Nodes = append(region.Nodes, n)
	}
	return regions
}

// encode encodes v, whose type must be one that can always be encoded.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("netmap: " + err.Error())
	}
	return b
}
