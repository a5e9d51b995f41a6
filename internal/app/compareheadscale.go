package app

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/fairlead-mesh/fairlead/internal/config"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/netmap"
	"github.com/fairlead-mesh/fairlead/internal/shadow"
)

// HeadscaleComparison says how the maps of this server would differ from those that Headscale sent.
type HeadscaleComparison struct {
	Nodes, Equal, Different int
	Differences             []NodeDifference
	// Known lists the reasons for expected differences, which do not make nodes different.
	Known []KnownDifference
	// Missing lists the nodes to which Headscale has not sent a map.
	Missing []string
}

// NodeDifference is a difference between the maps of a node.
type NodeDifference struct{ Node, Kind, Text string }

// KnownDifference is the reason for differences between the maps of some nodes.
type KnownDifference struct {
	Reason string
	Nodes  int
}

// compareMaps compares the maps that Headscale has written to a directory with those that nodes would get after an import.
func compareMaps(dir string, whole control.Import, c *config.Config, now mesh.Time) (*HeadscaleComparison, error) {
	dumped, err := readDumps(dir)
	if err != nil {
		return nil, err
	}
	settings := map[string]string{}
	for key, value := range map[string]any{mesh.SettingDNS: dnsOf(c.DNS), mesh.SettingClients: clientsOf(c)} {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		settings[key] = string(text)
	}
	if c.DNS.ExtraRecordsPath != "" {
		if settings[mesh.SettingRecords], err = control.ReadRecordsFile(c.DNS.ExtraRecordsPath); err != nil {
			return nil, err
		}
	}
	w, err := whole.World(mesh.ReservedFor(c.Prefixes.V4, c.Prefixes.V6), now, settings)
	if err != nil {
		return nil, err
	}
	net := shadow.Network{Routes: map[int64][]netip.Prefix{}, Now: now.Time()}
	for n := range w.Nodes.All() {
		net.Sources = append(net.Sources, n.Addrs()...)
		for _, r := range n.Routes {
			net.Routes[int64(n.ID)] = append(net.Routes[int64(n.ID)], r)
			net.Sources = append(net.Sources, r.Addr())
		}
	}
	r, known, scene := &HeadscaleComparison{}, map[string]int{}, netmap.SceneOf(w, nil)
	for n := range w.Nodes.All() {
		name := fmt.Sprintf("%s (%s)", n.ID, n.Name)
		old := dumped[int64(n.ID)]
		if old == nil {
			r.Missing = append(r.Missing, name)
			continue
		}
		text, err := json.Marshal(netmap.Full(scene, n.ID))
		if err != nil {
			return nil, err
		}
		own, err := shadow.Parse(text)
		if err != nil {
			return nil, err
		}
		reasons, differs := map[string]bool{}, false
		for _, d := range shadow.Compare(old, own, net) {
			if d.Known != "" {
				reasons[d.Known] = true
				continue
			}
			differs = true
			r.Differences = append(r.Differences, NodeDifference{Node: name, Kind: string(d.Kind), Text: d.Text})
		}
		for reason := range reasons {
			known[reason]++
		}
		if r.Nodes++; differs {
			r.Different++
		}
	}
	r.Equal = r.Nodes - r.Different
	for _, reason := range slices.Sorted(maps.Keys(known)) {
		r.Known = append(r.Known, KnownDifference{reason, known[reason]})
	}
	return r, nil
}

// maxDump is far above the size of any map.
const maxDump = 256 << 20

// readDumps reads the maps that Headscale has written, by node: the last whole one, and what changed since. Their names begin with
// the time.
func readDumps(dir string) (map[int64]*shadow.Map, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && filepath.Ext(path) == ".json" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the maps of Headscale: %w", err)
	}
	slices.Sort(files)
	all := map[int64]*shadow.Map{}
	// Before 0.27, devices with the same hostname share a directory. The dumps of these versions say who asked.
	type session struct{ dir, asker string }
	current := map[session]*shadow.Map{}
	for _, path := range files {
		if info, err := os.Stat(path); err != nil || info.Size() > maxDump {
			return nil, fmt.Errorf("cannot read the maps of Headscale: %s cannot be read or is larger than %d MiB", path, maxDump>>20)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read the maps of Headscale: %w", err)
		}
		m, err := shadow.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		at := session{filepath.Dir(path), m.Asker}
		if known := current[at]; known != nil {
			known.Update(m)
			m = known
		} else if !m.Full() {
			continue // a change of a map that was written before
		}
		current[at], all[m.Node.ID] = m, m
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s contains no maps: set HEADSCALE_DEBUG_DUMP_MAPRESPONSE_PATH to it, restart Headscale, and wait until devices have reconnected", dir)
	}
	return all, nil
}
