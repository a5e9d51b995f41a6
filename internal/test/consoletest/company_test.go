//go:build !race

package consoletest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/types/opt"

	"github.com/fairlead-mesh/fairlead/internal/test/meshtest"
)

// device is a device of the company: a person's laptop or phone, or a server.
type device struct {
	name      string
	user      string   // owner, if it is a person's device
	tags      []string // tags, if it is a server
	ephemeral bool
	routes    []netip.Prefix
	approved  bool // whether its routes, if any, are approved
	expired   bool
	expiresIn time.Duration // time until the key expires, or zero
	away      bool          // offline for a while now
	flaps     bool          // connects and disconnects repeatedly
	host      tailcfg.Hostinfo
	endpoints []netip.AddrPort

	id   string // ID that the server assigned
	node *meshtest.Node
}

// relays returns the relay regions that devices use as home.
func relays() []*tailcfg.DERPRegion {
	region := func(id int, code, name string) *tailcfg.DERPRegion {
		return &tailcfg.DERPRegion{RegionID: id, RegionCode: code, RegionName: name, Nodes: []*tailcfg.DERPNode{{
			Name: fmt.Sprintf("%da", id), RegionID: id, HostName: "relay-" + code + ".example.net", IPv4: "127.0.0.1", IPv6: "none", DERPPort: 9, STUNPort: -1,
		}}}
	}
	return []*tailcfg.DERPRegion{region(901, "ams", "Amsterdam"), region(902, "fra", "Frankfurt"), region(903, "nyc", "New York")}
}

// people returns the users. The first three are in group:ops.
func people() []string {
	return strings.Fields("ana goran mei bjorn chidi dana emeka fatima hana ivo jun kira lars nadia omar priya quentin rosa sven tomoko ursula viktor wanda yusuf zoe")
}

type role struct {
	name string
	tags []string
}

func roles() []role {
	return []role{
		{"api", []string{"tag:api", "tag:prod"}},
		{"web", []string{"tag:web", "tag:prod"}},
		{"db", []string{"tag:db", "tag:prod"}},
		{"ci-runner", []string{"tag:ci"}},
		{"k8s-worker", []string{"tag:k8s", "tag:prod"}},
		{"mon", []string{"tag:monitoring"}},
		{"gw", []string{"tag:router"}},
		{"backup", []string{"tag:backup"}},
	}
}

const (
	newestClient = "1.102.5"
	day          = 24 * time.Hour
)

// company generates devices, always the same ones for the same count.
type company struct {
	*rand.Rand
	count int
	taken map[string]bool
	last  map[string]int // the last number given to a numbered name
}

func devices(count int) []*device {
	c := company{rand.New(rand.NewPCG(2026, 11)), count, map[string]bool{}, map[string]int{}}
	all := make([]*device, count)
	for i := range all {
		if i%2 == 0 {
			all[i] = c.server(i / 2)
		} else {
			all[i] = c.personal()
		}
		c.fate(all[i])
		all[i].endpoints = endpoints(i)
	}
	return all
}

// endpoints returns a public and a local address. Neighbours share a local network, four devices in each.
func endpoints(i int) []netip.AddrPort {
	network := byte(1 + i/4%250)
	return []netip.AddrPort{
		netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, network}), uint16(20000+i)),
		netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 168, network, byte(10 + i%4)}), 41641),
	}
}

func pick[T any](c company, list ...T) T { return list[c.IntN(len(list))] }

// unique appends a number to a name that is taken.
func (c company) unique(name string) string {
	for c.taken[name] {
		base := strings.TrimRight(name, "0123456789")
		c.last[base] = max(c.last[base], 1) + 1
		name = fmt.Sprintf("%s-%d", strings.TrimSuffix(base, "-"), c.last[base])
	}
	c.taken[name] = true
	return name
}

func (c company) server(i int) *device {
	role, site := roles()[i%len(roles())], pick(c, "ams", "fra", "ber", "lis", "nyc")
	d := &device{tags: role.tags, name: c.unique(fmt.Sprintf("%s-%s-1", role.name, site))}
	d.ephemeral = role.name == "ci-runner" && c.Float64() < 0.7
	d.host = tailcfg.Hostinfo{OS: "linux", Distro: pick(c, "debian", "ubuntu", "alpine"), OSVersion: "6.12.48", GoArch: pick(c, "amd64", "amd64", "arm64")}
	if role.name == "gw" {
		c.router(d, i/len(roles()))
	}
	return d
}

// router gives a gateway its routes: some pending, some overlapping, some exit routes.
func (c company) router(d *device, i int) {
	second := 20 + c.IntN(max(20, c.count/25))%200
	d.routes = append(d.routes, netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", second)))
	switch i % 5 {
	case 0:
		d.routes = append(d.routes, netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0"))
	case 1:
		d.routes = append(d.routes, netip.MustParsePrefix(fmt.Sprintf("10.%d.%d.0/24", 20+c.IntN(20), c.IntN(8))))
	case 2:
		d.routes = append(d.routes, netip.MustParsePrefix(fmt.Sprintf("192.168.%d.0/24", c.IntN(200))))
	}
	d.approved = i%4 != 3
}

func (c company) personal() *device {
	d := &device{user: pick(c, people()...)}
	d.host.GoArch = "arm64"
	switch model := pick(c, "mbp", "air", "thinkpad", "framework", "surface", "iphone", "ipad", "pixel", "galaxy"); model {
	case "mbp", "air":
		d.host.OS, d.host.OSVersion = "macOS", pick(c, "26.1.0", "26.0.1", "15.7.2")
	case "iphone", "ipad":
		d.host.OS, d.host.OSVersion = "iOS", pick(c, "26.1", "26.0")
	case "pixel", "galaxy":
		d.host.OS, d.host.OSVersion = "android", pick(c, "16", "15")
	case "framework":
		d.host.OS, d.host.OSVersion, d.host.Distro, d.host.GoArch = "linux", "6.17.7", "arch", "amd64"
	default:
		d.host.OS, d.host.OSVersion, d.host.GoArch = "windows", "10.0.26200.7171", "amd64"
	}
	models := map[string][]string{"macOS": {"mbp", "air"}, "iOS": {"iphone", "ipad"}, "android": {"pixel", "galaxy"}, "linux": {"framework"}, "windows": {"thinkpad", "surface"}}
	d.host.DeviceModel = pick(c, models[d.host.OS]...)
	d.name = c.unique(d.user + "-" + d.host.DeviceModel)
	if d.expired = c.Float64() < 0.06; !d.expired && c.Float64() < 0.7 {
		d.expiresIn = time.Duration(c.Float64()*170*24) * time.Hour
	}
	return d
}

// fate sets a device's state and what it reports about its network.
func (c company) fate(d *device) {
	d.away = d.expired || !d.ephemeral && c.Float64() < cmp.Or(map[bool]float64{true: 0.22}[d.user != ""], 0.05)
	d.flaps = !d.away && !d.ephemeral && c.IntN(max(40, c.count/8)) == 0
	d.host.Hostname = d.name
	d.host.IPNVersion = newestClient
	if c.Float64() < 0.22 {
		d.host.IPNVersion = pick(c, "1.92.1", "1.94.0", "1.96.4", "1.90.8", "1.98.2")
	}
	d.host.RoutableIPs = d.routes
	home := relays()[c.IntN(len(relays()))].RegionID
	d.host.NetInfo = &tailcfg.NetInfo{
		PreferredDERP: home, WorkingUDP: opt.NewBool(c.Float64() < 0.95), WorkingIPv6: opt.NewBool(c.Float64() < 0.6),
		MappingVariesByDestIP: opt.NewBool(d.user != "" && c.Float64() < 0.15), DERPLatency: map[string]float64{},
	}
	for _, r := range relays() {
		latency := 0.004 + 0.01*c.Float64()
		if r.RegionID != home {
			latency += 0.02 + 0.06*c.Float64()
		}
		d.host.NetInfo.DERPLatency[fmt.Sprintf("%d-v4", r.RegionID)] = latency
	}
	d.host.Services = []tailcfg.Service{{Proto: tailcfg.PeerAPI4, Port: 40000}}
}

// policies returns the versions of the policy, oldest first, with their reasons.
func policies() (texts, reasons []string) {
	rules := []string{
		"    // Operators reach everything.\n    {\"action\": \"accept\", \"src\": [\"group:ops\"], \"dst\": [\"*:*\"]},\n",
		"    // Everyone reaches the web servers and their own devices.\n    {\"action\": \"accept\", \"src\": [\"autogroup:member\"], \"dst\": [\"tag:web:443\", \"autogroup:self:*\"]},\n",
		"    // The application and its databases.\n    {\"action\": \"accept\", \"src\": [\"tag:web\"], \"dst\": [\"tag:api:8443\"]},\n    {\"action\": \"accept\", \"src\": [\"tag:api\"], \"dst\": [\"tag:db:5432\"]},\n",
		"    // Monitoring asks every server for its metrics.\n    {\"action\": \"accept\", \"src\": [\"tag:monitoring\"], \"dst\": [\"tag:prod:9100\"]},\n",
		"    // Developers look at staging behind the Frankfurt gateway.\n    {\"action\": \"accept\", \"src\": [\"group:dev\"], \"dst\": [\"10.20.0.0/14:80,443\", \"tag:ci:22\"]},\n",
		"    // Backups read the databases at night.\n    {\"action\": \"accept\", \"src\": [\"tag:backup\"], \"dst\": [\"tag:db:5432\", \"tag:k8s:2049\"]},\n",
	}
	reasons = []string{"first rules", "web servers for everyone", "application tiers", "metrics of all servers", "staging for developers", "backups of the databases"}
	for i := range rules {
		texts = append(texts, policyOf(strings.Join(rules[:i+1], "")))
	}
	return texts, reasons
}

func policyOf(rules string) string {
	var owners []string
	for _, r := range roles() {
		for _, tag := range r.tags {
			owners = append(owners, fmt.Sprintf("    %q: [\"group:ops\"],\n", tag))
		}
	}
	slices.Sort(owners)
	return `{
  "groups": {
    "group:ops": ["ana", "goran", "mei"],
    "group:dev": ["bjorn", "chidi", "dana", "fatima", "kira", "priya"],
  },
  "tagOwners": {
` + strings.Join(slices.Compact(owners), "") + `  },
  "acls": [
` + rules + `  ],
  "autoApprovers": {"routes": {"192.168.0.0/16": ["tag:router"]}},
  "tests": [
    {"src": "ana", "accept": ["tag:db:5432"]},
    {"src": "zoe", "deny": ["tag:db:5432"]},
  ],
}
`
}
