package netmap

import (
	"encoding/json"
	"net/netip"
	"time"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Response is one message of a map stream. Members are named as clients know
// them. The clients' own type cannot say that a list is now empty; here a nil
// list is absent, "as before", and one of length zero is sent as empty.
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
	ControlTime       *time.Time        `json:",omitzero"`
	PingRequest       *PingRequest      `json:",omitzero"`

	profiled map[int64]bool // the users in UserProfiles
}

// empty reports whether there is nothing to say.
func (r *Response) empty() bool {
	return r.Node == nil && r.DERPMap == nil && r.Peers == nil && r.PeersChanged == nil && r.PeersRemoved == nil &&
		r.PeersChangedPatch == nil && r.DNSConfig == nil && r.Domain == "" && r.PacketFilters == nil && r.SSHPolicy == nil && r.UserProfiles == nil
}

// Node is a device as its peers, or the device itself, are told of it. Who
// shares a Node does not write to it.
type Node struct {
	ID       mesh.NodeID
	StableID string
	Name     string // with a dot at the end
	User     int64
	Key      key.NodePublic
	// KeyExpiry is absent for a key without end: clients take the zero time
	// for one that is long past.
	KeyExpiry time.Time         `json:",omitzero"`
	Machine   key.MachinePublic `json:",omitzero"`
	DiscoKey  key.DiscoPublic   `json:",omitzero"`
	Addresses []netip.Prefix
	// AllowedIPs is spelt out: clients before capability version 112 do not
	// take it for Addresses when it is missing.
	AllowedIPs []netip.Prefix
	// PrimaryRoutes are the routes among AllowedIPs, the internet apart.
	PrimaryRoutes []netip.Prefix   `json:",omitempty"`
	Endpoints     []netip.AddrPort `json:",omitempty"`
	// DERP says the same as HomeDERP to clients before capability version 111.
	DERP     string          `json:",omitzero"`
	HomeDERP int             `json:",omitzero"`
	Hostinfo json.RawMessage `json:",omitzero"`
	Created  time.Time
	Cap      int      `json:",omitzero"`
	Tags     []string `json:",omitempty"`
	// LastSeen and Online are always there: clients lose a change from
	// nothing to something.
	LastSeen          time.Time
	Online            bool
	MachineAuthorized bool
	CapMap            map[string][]json.RawMessage `json:",omitzero"`
	Expired           bool                         `json:",omitzero"`
}

// Patch changes some facts of a peer that the viewer knows.
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
}

// Profile names a user.
type Profile struct {
	ID            int64
	LoginName     string
	DisplayName   string
	ProfilePicURL string `json:",omitzero"`
}

// Rule lets sources reach destinations, or grants capabilities to them.
type Rule struct {
	// SrcIPs are addresses, prefixes, ranges, "*", or "cap:" and a mark.
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

// Ports is a range, both ends included.
type Ports struct{ First, Last uint16 }

// PingRequest makes a node ask for a URL, which it does once.
type PingRequest struct {
	URL        string
	URLIsNoise bool // the service is asked, on the node's connection to it
}

// Debug switches parts of a client.
type Debug struct {
	// DisableLogTail keeps clients from sending their logs to their maker.
	DisableLogTail bool
}
