package relay

import (
	"net/netip"

	"tailscale.com/types/key"
)

// Paths of the server at which relays report and follow the set of admitted nodes. Both need the relay's key as a
// bearer token.
const (
	ReportPath = "/relay/v1/report"
	FollowPath = "/relay/v1/follow"
)

// Report is what a relay sends to ReportPath: where clients reach it, and its work since it started.
type Report struct {
	URL      string         `json:"url"`
	STUNPort int            `json:"stunPort"` // negative without STUN
	IPv4     netip.Addr     `json:"ipv4,omitzero"`
	IPv6     netip.Addr     `json:"ipv6,omitzero"`
	Key      key.NodePublic `json:"key"`
	Version  string         `json:"version,omitempty"`
	Stats
	// LatencyMicros is how long the previous report took.
	LatencyMicros int64 `json:"latencyMicros,omitempty"`
	// Leaving means that the relay stops.
	Leaving bool `json:"leaving,omitempty"`
}

// Stats is the work of a relay since it started.
type Stats struct {
	Clients       int   `json:"clients"`
	BytesReceived int64 `json:"bytesReceived"`
	BytesSent     int64 `json:"bytesSent"`
	Refused       int64 `json:"refused"`
	Peers         int   `json:"peers"`
}

// Update is one line of the stream at FollowPath. The first lines contain the whole set of nodes, the others its changes.
type Update struct {
	// Reset means that the set of nodes begins here, and is complete at the next line with Complete.
	Reset    bool             `json:"reset,omitempty"`
	Add      []key.NodePublic `json:"add,omitempty"`
	Remove   []key.NodePublic `json:"remove,omitempty"`
	Complete bool             `json:"complete,omitempty"`
	// Mesh is set if it has changed, and in a line with Complete.
	Mesh *Mesh `json:"mesh,omitempty"`
}

// MaxUpdateKeys limits the keys in one line, and MaxUpdate the bytes.
const (
	MaxUpdateKeys = 2000
	MaxUpdate     = 1 << 20
)

// Mesh is how a relay connects to the other relays of its region.
type Mesh struct {
	// Key is what the relays have in common.
	Key   string `json:"key"`
	Peers []Peer `json:"peers,omitempty"`
}

// Peer is another relay of the same region.
type Peer struct {
	Name string         `json:"name"`
	URL  string         `json:"url"`
	Key  key.NodePublic `json:"key"`
	// Addr is where to connect, if it is not the host of URL.
	Addr string `json:"-"`
}
