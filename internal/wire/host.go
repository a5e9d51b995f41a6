package wire

import (
	"encoding/json"
	"strconv"
	"strings"

	"tailscale.com/tailcfg"
	"tailscale.com/types/opt"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

const (
	// maxPriority is small enough for all clients to decode: some use 32 bits.
	maxPriority = 1 << 20
	maxLatency  = 60 // seconds; anything above is not a measurement
)

// hostDescription is what a client reports about its host.
type hostDescription struct {
	control.Host
	tags      []string
	homeRelay int
	latency   float64 // to the home relay in seconds; zero if unknown
	measured  control.Measured
}

// parseHost reads a tailcfg.Hostinfo. The result is sent to all peers, so it must hold nothing that a client
// could fail to decode. Fields that this binary does not know are dropped, because a newer client may define
// them differently. A description with an invalid field is reduced to its main text fields.
func parseHost(raw json.RawMessage) (h hostDescription) {
	var host tailcfg.Hostinfo
	if json.Unmarshal(raw, &host) != nil {
		host = plainTexts(raw)
	}
	h.tags, h.RoutableIPs = host.RequestTags, host.RoutableIPs
	h.takeNetInfo(host.NetInfo)
	host.RequestTags, host.RoutableIPs, host.NetInfo = nil, nil, nil
	if l := host.Location; l != nil && (l.Priority < 0 || l.Priority > maxPriority) {
		host.Location = nil
	}
	host.BackendLogID, host.FrontendLogID, host.PushDeviceToken, host.TPM = "", "", "", nil // not for peers
	object, err := json.Marshal(&host)
	if err != nil || len(object) > control.MaxHostObject {
		host = plainTexts(raw)
		object, _ = json.Marshal(&host) // text can always be encoded
	}
	h.Object = string(object)
	h.Hostname, h.OS, h.ClientVersion, h.Arch = host.Hostname, host.OS, host.IPNVersion, host.GoArch
	if h.Arch == "" {
		h.Arch = host.Machine
	}
	return h
}

// StoredHost reads a tailcfg.Hostinfo that another server stored.
func StoredHost(raw json.RawMessage) control.Host { return parseHost(raw).Host }

// plainTexts returns only the main text fields of a description that is invalid or too large.
func plainTexts(raw json.RawMessage) (host tailcfg.Hostinfo) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(raw, &members) // members stays empty on an error
	for name, text := range map[string]*string{
		"Hostname": &host.Hostname, "OS": &host.OS, "GoArch": &host.GoArch, "Machine": &host.Machine, "IPNVersion": &host.IPNVersion,
	} {
		if len(members[name]) <= control.MaxHostObject/8 {
			_ = json.Unmarshal(members[name], text) // the text stays empty on an error
		}
	}
	return host
}

func (h *hostDescription) takeNetInfo(info *tailcfg.NetInfo) {
	if info == nil {
		return
	}
	h.homeRelay = info.PreferredDERP
	h.measured = measuredIn(info)
	for _, l := range h.measured.Latencies {
		if l.Region == h.homeRelay {
			h.latency = float64(l.Micros) / 1e6
		}
	}
}

// netInfoOf reads only the NetInfo of a tailcfg.Hostinfo; it is nil if there is none.
func netInfoOf(raw json.RawMessage) *tailcfg.NetInfo {
	var host struct{ NetInfo *tailcfg.NetInfo }
	if json.Unmarshal(raw, &host) != nil {
		return nil
	}
	return host.NetInfo
}

// measuredIn returns how a client can be reached and its latency to each relay, over IPv4 or IPv6, whichever
// is faster.
func measuredIn(info *tailcfg.NetInfo) (m control.Measured) {
	if info == nil {
		return m
	}
	m.NAT = &mesh.NAT{
		UDP: known(info.WorkingUDP), IPv6: known(info.WorkingIPv6), Varies: known(info.MappingVariesByDestIP), PortMapped: info.HavePortMap,
	}
	for _, p := range []struct {
		name   string
		offers opt.Bool
	}{{"pcp", info.PCP}, {"pmp", info.PMP}, {"upnp", info.UPnP}} {
		if p.offers.EqualBool(true) {
			m.NAT.PortMapping = append(m.NAT.PortMapping, p.name)
		}
	}
	nearest := map[int]int64{}
	for name, seconds := range info.DERPLatency {
		number, _, _ := strings.Cut(name, "-")
		region, err := strconv.Atoi(number)
		if err != nil || region <= 0 || seconds <= 0 || seconds >= maxLatency {
			continue
		}
		micros := max(1, int64(seconds*1e6))
		if best, ok := nearest[region]; !ok || micros < best {
			nearest[region] = micros
		}
	}
	for region, micros := range nearest {
		m.Latencies = append(m.Latencies, mesh.Latency{Region: region, Micros: micros})
	}
	mesh.SortLatencies(m.Latencies)
	return m
}

func known(b opt.Bool) *bool {
	v, ok := b.Get()
	if !ok {
		return nil
	}
	return &v
}
