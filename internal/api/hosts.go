package api

import (
	"encoding/json"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// hostShape shows what a device reported about itself, with the current names of relays.
func hostShape(n *mesh.Node, f *mesh.Facts, regions map[int]mesh.Region) *openapi.NodeHost {
	// The description comes from the device; parts that cannot be parsed are omitted.
	var said struct{ OSVersion, Distro, DistroVersion, DeviceModel string }
	_ = json.Unmarshal([]byte(n.Host), &said)
	region := func(id int) openapi.RelayRegion {
		return openapi.RelayRegion{ID: id, Code: regions[id].Code, Name: regions[id].Name}
	}
	out := &openapi.NodeHost{
		OS: n.OS, OSVersion: said.OSVersion, Distro: said.Distro, DistroVersion: said.DistroVersion, DeviceModel: said.DeviceModel,
		Arch: n.Arch, ClientVersion: n.ClientVersion, Endpoints: texts(n.Net.Endpoints),
		Nat: openapi.NodeNAT{
			UDP: f.UDP, Ipv6: f.IPv6, MappingVaries: f.Varies, PortMapped: f.PortMapped, PortMapping: list(f.PortMapping),
		},
		Latencies: []openapi.RelayLatency{}, Health: []openapi.HealthMessage{}, ReportedAt: moment(f.At),
	}
	if n.Net.HomeRelay != 0 {
		home := region(n.Net.HomeRelay)
		out.Relay = &home
	}
	for _, l := range f.Latencies {
		out.Latencies = append(out.Latencies, openapi.RelayLatency{Region: region(l.Region), Milliseconds: millis(l.Micros)})
	}
	for _, w := range f.Warnings {
		out.Health = append(out.Health, openapi.HealthMessage{Source: w.Source, Message: w.Text, Since: w.Since.Time()})
	}
	return out
}
