package control

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

const (
	maxHostname = 255
	maxHostText = 128
	maxRoutes   = 256
	// MaxHostObject limits the part of a device's description that its peers get, because
	// every peer's map contains it.
	MaxHostObject = 16 << 10
)

// Host is a device's description of itself.
type Host struct {
	Hostname      string
	OS            string
	Arch          string
	ClientVersion string
	// Object is the JSON object that peers get. Equal descriptions have equal bytes.
	Object      string
	RoutableIPs []netip.Prefix
}

// bounded trims a description to what can be stored. It never fails, because nobody can
// change what an unknown device sends.
func (h Host) bounded() Host {
	h.Hostname = cleaned(h.Hostname, maxHostname)
	h.OS, h.Arch, h.ClientVersion = cleaned(h.OS, maxHostText), cleaned(h.Arch, maxHostText), cleaned(h.ClientVersion, maxHostText)
	if len(h.Object) > MaxHostObject || !utf8.ValidString(h.Object) || strings.ContainsRune(h.Object, 0) {
		h.Object = ""
	}
	if h.Object == "" {
		h.Object = h.object()
	}
	routes := make([]netip.Prefix, 0, min(len(h.RoutableIPs), maxRoutes))
	for _, p := range h.RoutableIPs {
		if p.IsValid() && len(routes) < maxRoutes {
			routes = append(routes, p.Masked())
		}
	}
	h.RoutableIPs = sortedRoutes(routes)
	return h
}

// check refuses a description that cannot be stored unchanged, and sorts the routes.
// Characters that are not allowed in a hostname are replaced.
func (h *Host) check(w *policy.World) error {
	if len(h.RoutableIPs) > maxRoutes {
		return refuse(Invalid, "routableIPs", "routableIPs must have at most %d routes", maxRoutes)
	}
	h.Hostname = cleanHostname(h.Hostname)
	for _, f := range []struct {
		path, text string
		limit      int
	}{
		{"hostname", h.Hostname, maxHostname},
		{"os", h.OS, maxHostText},
		{"arch", h.Arch, maxHostText},
		{"clientVersion", h.ClientVersion, maxHostText},
	} {
		if err := checkText(f.path, f.text, f.limit); err != nil {
			return err
		}
	}
	routes := make([]netip.Prefix, 0, len(h.RoutableIPs))
	for i, p := range h.RoutableIPs {
		path := fmt.Sprintf("routableIPs[%d]", i)
		if !p.IsValid() || p != p.Masked() {
			return refuse(Invalid, path, "invalid network %s: host bits are set; use %s", p, p.Masked())
		}
		if err := mayRoute(w, path, p); err != nil {
			return err
		}
		routes = append(routes, p)
	}
	h.RoutableIPs = sortedRoutes(routes)
	h.Object = h.object()
	return nil
}

// object returns a minimal object for peers: hostname and operating system.
func (h Host) object() string {
	members := map[string]string{"Hostname": h.Hostname}
	if h.OS != "" {
		members["OS"] = h.OS
	}
	text, _ := json.Marshal(members) // cannot fail
	return string(text)
}

func cleaned(text string, limit int) string {
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "")
	}
	return cleanHostname(text)
}

// sortedRoutes returns the networks sorted and without duplicates, or nil if there are
// none.
func sortedRoutes(routes []netip.Prefix) []netip.Prefix {
	slices.SortFunc(routes, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	if routes = slices.Compact(routes); len(routes) == 0 {
		return nil
	}
	return routes
}

// describe copies h into n and reports whether anything changed. The DNS name follows the
// hostname unless a person chose it. Routes that the mesh does not allow are dropped.
func (h Host) describe(w *policy.World, n *mesh.Node) (changed bool) {
	if forbids := forbidden(w); slices.ContainsFunc(h.RoutableIPs, forbids) {
		h.RoutableIPs = sortedRoutes(slices.DeleteFunc(slices.Clone(h.RoutableIPs), forbids))
	}
	if n.Name == "" || h.Hostname != n.Hostname && !n.Renamed {
		n.Name = w.UniqueName(h.Hostname, n.ID)
	}
	before := hostOf(n)
	n.Hostname, n.OS, n.Arch, n.ClientVersion, n.Host, n.RoutableIPs = h.Hostname, h.OS, h.Arch, h.ClientVersion, h.Object, h.RoutableIPs
	return !before.equal(h)
}

// hostOf returns the description of n.
func hostOf(n *mesh.Node) Host {
	return Host{n.Hostname, n.OS, n.Arch, n.ClientVersion, n.Host, n.RoutableIPs}
}

func (h Host) equal(o Host) bool {
	return h.Hostname == o.Hostname && h.OS == o.OS && h.Arch == o.Arch && h.ClientVersion == o.ClientVersion && h.Object == o.Object &&
		slices.Equal(h.RoutableIPs, o.RoutableIPs)
}
