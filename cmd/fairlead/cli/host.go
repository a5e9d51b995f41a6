package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-mesh/fairlead/apiclient"
)

// system returns the operating system and architecture, in as much detail as is known.
func system(n apiclient.Node) string {
	words := []string{n.OS}
	if h := n.Host; h != nil {
		words = append(words, h.OSVersion, h.Distro, h.DistroVersion, h.DeviceModel)
	}
	words = append(words, n.Arch)
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// hostDetails returns the lines about the network of a device.
func hostDetails(h *apiclient.NodeHost) [][]string {
	if h == nil {
		return nil
	}
	relay := "none"
	if h.Relay != nil {
		relay = regionName(*h.Relay)
	}
	rows := [][]string{
		{"Endpoints", strings.Join(h.Endpoints, ", ")},
		{"Home relay", relay},
	}
	near := slices.SortedFunc(slices.Values(h.Latencies), func(a, b apiclient.RelayLatency) int { return int(100 * (a.Milliseconds - b.Milliseconds)) })
	var relays []string
	for _, l := range near {
		relays = append(relays, fmt.Sprintf("%s %s ms", regionName(l.Region), strconv.FormatFloat(l.Milliseconds, 'f', -1, 64)))
	}
	rows = append(
		rows,
		[]string{"Relays", strings.Join(relays, ", ")},
		[]string{"UDP", found(h.Nat.UDP, "works", "blocked; all traffic goes through relays")},
		[]string{"IPv6", found(h.Nat.Ipv6, "works", "no internet access")},
		[]string{"NAT", found(h.Nat.MappingVaries, "hard (a different port for every peer)", "easy")},
		[]string{"Port mapping", portMapping(h)},
		[]string{"Last measured", lastUsed(h.ReportedAt)},
	)
	for _, m := range h.Health {
		rows = append(rows, []string{"Warning", fmt.Sprintf("%s (%s, since %s)", m.Message, m.Source, timeText(m.Since))})
	}
	return rows
}

// regionName returns a readable name for a relay region.
func regionName(r apiclient.RelayRegion) string {
	if r.Code == "" {
		return "region " + strconv.Itoa(r.ID)
	}
	return r.Code
}

func found(b *bool, yes, no string) string {
	switch {
	case b == nil:
		return "unknown"
	case *b:
		return yes
	}
	return no
}

func portMapping(h *apiclient.NodeHost) string {
	offered := strings.Join(h.Nat.PortMapping, ", ")
	switch {
	case h.ReportedAt == nil:
		return "unknown"
	case h.Nat.PortMapped:
		if offered == "" {
			return "active"
		}
		return "active (" + offered + ")"
	case offered == "":
		return "not available"
	}
	return "available (" + offered + ")"
}
