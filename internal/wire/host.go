package wire

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"tailscale.com/tailcfg"

	"github.com/fairlead-mesh/fairlead/internal/control"
)

// maxDepth bounds nested values. Clients refuse a map that is nested too deep,
// and a device's description is in the map of all its peers.
const maxDepth = 16

// hostDescription is what a client says of its host.
type hostDescription struct {
	control.Host
	tags      []string
	homeRelay int
	latency   float64 // to the home relay in seconds; zero when unknown
}

// parseHost reads a tailcfg.Hostinfo. Members that this binary does not know are
// kept for peers that do. What peers could not read costs the device its
// description, never its place: the rest is then left out.
func parseHost(raw json.RawMessage) (h hostDescription) {
	members := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&members); err != nil || members == nil {
		members = map[string]any{}
	}
	h.take(members)
	object, host, ok := readable(members)
	if !ok {
		subset := map[string]any{}
		for _, name := range []string{"Hostname", "OS", "GoArch", "Machine", "IPNVersion"} {
			if text, ok := members[name].(string); ok && len(text) <= control.MaxHostObject/8 {
				subset[name] = text
			}
		}
		object, host, _ = readable(subset)
	}
	h.Object = object
	h.Hostname, h.OS, h.ClientVersion, h.Arch = host.Hostname, host.OS, host.IPNVersion, host.GoArch
	if h.Arch == "" {
		h.Arch = host.Machine
	}
	return h
}

// take removes and reads what is not for peers. Clients match the names of
// members without regard to case, so nothing may slip through in another.
func (h *hostDescription) take(members map[string]any) {
	private := []string{"BackendLogID", "FrontendLogID", "PushDeviceToken", "TPM"}
	for name, value := range members {
		switch {
		case strings.EqualFold(name, "RoutableIPs"):
			for _, text := range texts(value) {
				if p, err := netip.ParsePrefix(text); err == nil {
					h.RoutableIPs = append(h.RoutableIPs, p)
				}
			}
		case strings.EqualFold(name, "RequestTags"):
			h.tags = texts(value)
		case strings.EqualFold(name, "NetInfo"):
			h.takeNetInfo(value)
		case slices.ContainsFunc(private, func(p string) bool { return strings.EqualFold(name, p) }):
		default:
			continue
		}
		delete(members, name)
	}
}

func (h *hostDescription) takeNetInfo(value any) {
	info, _ := value.(map[string]any)
	home, _ := info["PreferredDERP"].(json.Number)
	h.homeRelay, _ = strconv.Atoi(home.String()) // zero means unknown
	latencies, _ := info["DERPLatency"].(map[string]any)
	for _, family := range []string{"-v4", "-v6"} {
		number, _ := latencies[home.String()+family].(json.Number)
		if seconds, err := number.Float64(); err == nil && seconds > 0 && (h.latency == 0 || seconds < h.latency) {
			h.latency = seconds
		}
	}
}

func texts(value any) []string {
	list, _ := value.([]any)
	var found []string
	for _, v := range list {
		if text, ok := v.(string); ok {
			found = append(found, text)
		}
	}
	return found
}

// readable encodes members in the one form they have, and reports whether a
// client could decode it.
func readable(members map[string]any) (string, tailcfg.Hostinfo, bool) {
	var host tailcfg.Hostinfo
	if depth(members) > maxDepth {
		return "", host, false
	}
	object, err := json.Marshal(members)
	if err != nil || len(object) > control.MaxHostObject || json.Unmarshal(object, &host) != nil {
		return "", tailcfg.Hostinfo{}, false
	}
	return string(object), host, true
}

func depth(value any) int {
	deepest := 0
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			deepest = max(deepest, depth(inner))
		}
	case []any:
		for _, inner := range v {
			deepest = max(deepest, depth(inner))
		}
	default:
		return 0
	}
	return deepest + 1
}
