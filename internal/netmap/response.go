package netmap

import (
	"encoding/json"
	"net/netip"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Response is one message of a map stream. Its fields have the names that clients use.
// Unlike the clients' own type, it can express that a list is now empty: a nil list is
// omitted, which means "unchanged", and an empty one is sent.
type Response struct {
	KeepAlive         bool              `json:",omitzero"`
	Node              *Node             `json:",omitzero"`
	DERPMap           json.RawMessage   `json:",omitzero"`
	Peers             []*Node           `json:",omitzero"`
	PeersChanged      []*Node           `json:",omitzero"`
	PeersRemoved      []mesh.NodeID     `json:",omitzero"`
	PeersChangedPatch []*Patch          `json:",omitzero"`
	DNSConfig         json.RawMessage   `json:",omitzero"`
	Domain            string            `json:",omitzero"`
	CollectServices   *bool             `json:",omitzero"`
	PacketFilters     map[string][]Rule `json:",omitzero"`
	SSHPolicy         *SSHPolicy        `json:",omitzero"`
	UserProfiles      []Profile         `json:",omitzero"`
	Debug             *Debug            `json:",omitzero"`
	ControlDialPlan   json.RawMessage   `json:",omitzero"`
	ControlTime       *time.Time        `json:",omitzero"`
	PingRequest       *PingRequest      `json:",omitzero"`
	// Health holds messages for clients that do not support DisplayMessages. An empty list
	// clears them.
	Health []string `json:",omitzero"`
	// DisplayMessages adds or replaces messages by id, or removes them if they are nil.
	DisplayMessages map[string]*DisplayMessage `json:",omitzero"`

	profiled map[int64]bool // the users in UserProfiles
}

// empty reports whether there is nothing to send.
func (r *Response) empty() bool {
	return r.Node == nil && r.DERPMap == nil && r.Peers == nil && r.PeersChanged == nil && r.PeersRemoved == nil &&
		r.PeersChangedPatch == nil && r.DNSConfig == nil && r.Domain == "" && r.PacketFilters == nil &&
		r.SSHPolicy == nil && r.UserProfiles == nil && r.ControlDialPlan == nil && r.Health == nil && r.DisplayMessages == nil
}

// Node is a node as sent to its peers or to the node itself. It may be shared, so it is
// never modified.
type Node struct {
	ID       mesh.NodeID
	StableID string
	Name     string // with a trailing dot
	User     int64
	Key      key.NodePublic
	// KeyExpiry is absent for a key that does not expire: clients would treat the zero
	// time as long past.
	KeyExpiry time.Time         `json:",omitzero"`
	Machine   key.MachinePublic `json:",omitzero"`
	DiscoKey  key.DiscoPublic   `json:",omitzero"`
	Addresses []netip.Prefix
	// AllowedIPs is always set: clients before capability version 112 do not use
	// Addresses in its place.
	AllowedIPs []netip.Prefix
	// PrimaryRoutes are the routes in AllowedIPs, without those to the internet.
	PrimaryRoutes []netip.Prefix   `json:",omitempty"`
	Endpoints     []netip.AddrPort `json:",omitempty"`
	// DERP is HomeDERP for clients before capability version 111.
	DERP     string          `json:",omitzero"`
	HomeDERP int             `json:",omitzero"`
	Hostinfo json.RawMessage `json:",omitzero"`
	Created  time.Time
	Cap      int      `json:",omitzero"`
	Tags     []string `json:",omitempty"`
	// LastSeen and Online are always set: clients miss a change from absent to
	// present.
	LastSeen          time.Time
	Online            bool
	MachineAuthorized bool
	CapMap            map[string][]json.RawMessage `json:",omitzero"`
	Expired           bool                         `json:",omitzero"`
}

// Patch changes some fields of a peer that the viewer has.
type Patch struct {
	NodeID     mesh.NodeID
	DERPRegion int              `json:",omitzero"`
	Cap        int              `json:",omitzero"`
	Endpoints  []netip.AddrPort `json:",omitzero"`
	Key        *key.NodePublic  `json:",omitzero"`
	DiscoKey   *key.DiscoPublic `json:",omitzero"`
	Online     *bool            `json:",omitzero"`
	LastSeen   *time.Time       `json:",omitzero"`
	KeyExpiry  *time.Time       `json:",omitzero"`
	// CapMap replaces all marks. Unlike nil, an empty map removes them.
	CapMap map[string][]json.RawMessage `json:",omitzero"`
}

// Profile names a user.
type Profile struct {
	ID            int64
	LoginName     string
	DisplayName   string
	ProfilePicURL string `json:",omitzero"`
	// Groups holds the groups of the user that the viewer may know, sorted. Applications on
	// the viewer's node can ask its client for them.
	Groups []string `json:",omitempty"`
}

// Rule lets sources reach destinations, or grants capabilities to them.
type Rule struct {
	// SrcIPs holds addresses, prefixes, ranges, "*", or "cap:" and a mark.
	SrcIPs   []string
	DstPorts []PortRange `json:",omitempty"`
	IPProto  []int       `json:",omitempty"` // none means TCP, UDP and ICMP
	CapGrant []CapGrant  `json:",omitempty"`
}

// CapGrant tells applications what a source may do.
type CapGrant struct {
	Dsts   []netip.Prefix
	CapMap map[string][]json.RawMessage
}

// PortRange is an address, or "*", with ports.
type PortRange struct {
	IP    string
	Ports Ports
}

// Ports is an inclusive range of ports.
type Ports struct{ First, Last uint16 }

// PingRequest makes a node send one request to a URL.
type PingRequest struct {
	URL        string
	URLIsNoise bool // the request goes to this server, on the node's connection
}

// Debug switches features of a client on or off.
type Debug struct {
	// DisableLogTail keeps clients from sending their logs to Tailscale.
	DisableLogTail bool
}
