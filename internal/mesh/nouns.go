package mesh

import (
	"net/netip"
	"slices"

	"tailscale.com/types/key"
)

// User owns nodes and pre-auth keys.
type User struct {
	ID            UserID `json:"id"`
	Name          string `json:"name"`
	DisplayName   string `json:"displayName,omitempty"`
	Email         string `json:"email,omitempty"`
	Provider      string `json:"provider,omitempty"`
	ProviderID    string `json:"providerId,omitempty"`
	ProfilePicURL string `json:"profilePicUrl,omitempty"`
	CreatedAt     Time   `json:"createdAt"`
}

// RegisterMethod says how a node was let in.
type RegisterMethod string

// The ways in.
const (
	RegisterAuthKey RegisterMethod = "authkey"
	// RegisterApproved: an administrator let the node in by its link or code.
	RegisterApproved RegisterMethod = "approved"
)

// Node is one device. A node inside a snapshot is never written again.
type Node struct {
	ID NodeID `json:"id"`
	// Owner is zero for a tagged node: it belongs to its tags.
	Owner UserID `json:"owner,omitempty"`
	// CreatedBy is the user whose key let a tagged node in; that user may be
	// gone.
	CreatedBy  UserID            `json:"createdBy,omitempty"`
	MachineKey key.MachinePublic `json:"machineKey"`
	NodeKey    key.NodePublic    `json:"nodeKey"`
	// Hostname is what the device calls itself; Name is its label in the
	// mesh's DNS, unique among all nodes.
	Hostname string `json:"hostname"`
	Name     string `json:"name"`
	// Renamed says that Name was chosen by a person and stays when the device
	// calls itself something else.
	Renamed       bool           `json:"renamed,omitempty"`
	IPv4          netip.Addr     `json:"ipv4"`
	IPv6          netip.Addr     `json:"ipv6"`
	Tags          []string       `json:"tags,omitempty"`
	Method        RegisterMethod `json:"method"`
	PreAuthKey    KeyID          `json:"preAuthKey,omitempty"`
	Ephemeral     bool           `json:"ephemeral,omitempty"`
	OS            string         `json:"os,omitempty"`
	Arch          string         `json:"arch,omitempty"`
	ClientVersion string         `json:"clientVersion,omitempty"`
	// CapVersion is the protocol version that the client speaks.
	CapVersion int `json:"capVersion,omitempty"`
	// Host is what the device says of itself, as the JSON object that peers
	// are given.
	Host string `json:"host,omitempty"`
	// RoutableIPs are the routes that the device announces.
	RoutableIPs []netip.Prefix `json:"routableIPs,omitempty"`
	// Routes are the routes that peers reach through this node: announced by
	// it and approved.
	Routes []netip.Prefix `json:"routes,omitempty"`
	// AllRoutes is every route that the device announces or once announced, with
	// what was decided about it, in the order of the prefixes.
	AllRoutes []Route `json:"allRoutes,omitempty"`
	// Primary are those of Routes that peers use through this node and no other;
	// the internet is not among them. Settle decides.
	Primary []netip.Prefix `json:"primary,omitempty"`
	// Unwell says that the device holds its stream and does not answer: others
	// take over its routes.
	Unwell bool `json:"unwell,omitempty"`
	Expiry Time `json:"expiry,omitempty"`
	// Lapsed says that Expiry has passed and peers are told so. What others
	// see must change by an event, never by the mere passage of time.
	Lapsed    bool `json:"lapsed,omitempty"`
	CreatedAt Time `json:"createdAt"`
	// UpdatedAt is the last change other than of Net and Presence.
	UpdatedAt Time `json:"updatedAt"`

	// Net and Presence change often. They travel in events of their own:
	// NodePut leaves them as they are.
	Net      Net      `json:"-"`
	Presence Presence `json:"-"`
}

// Net is how peers reach a node.
type Net struct {
	Endpoints []netip.AddrPort `json:"endpoints,omitempty"`
	DiscoKey  key.DiscoPublic  `json:"discoKey,omitzero"`
	HomeRelay int              `json:"homeRelay,omitempty"`
}

// Presence says which replica holds a node's stream. Of two streams of one
// node the one with the greater Conn is the newer.
type Presence struct {
	Online   bool   `json:"online,omitempty"`
	Replica  string `json:"replica,omitempty"`
	Conn     int64  `json:"conn,omitempty"`
	LastSeen Time   `json:"lastSeen,omitempty"`
}

// Tagged reports whether the node belongs to tags instead of a user.
func (n *Node) Tagged() bool { return len(n.Tags) > 0 }

// Expired reports whether the node must authenticate again.
func (n *Node) Expired(now Time) bool { return n.Expiry.Reached(now) }

// Addrs returns the addresses the node has, IPv4 first.
func (n *Node) Addrs() []netip.Addr {
	return slices.DeleteFunc([]netip.Addr{n.IPv4, n.IPv6}, func(a netip.Addr) bool { return !a.IsValid() })
}

// Seen is when the node was last known to be there.
func (n *Node) Seen() Time { return max(n.Presence.LastSeen, n.CreatedAt) }

// Login is the answer of an administrator to a device that asked to join
// without a key. It waits for the device until its end.
type Login struct {
	ID         LoginID           `json:"id"`
	MachineKey key.MachinePublic `json:"machineKey"`
	NodeKey    key.NodePublic    `json:"nodeKey"`
	User       UserID            `json:"user,omitempty"`
	// Rejected is the reason given to the device instead of a place.
	Rejected string `json:"rejected,omitempty"`
	Until    Time   `json:"until"`
}

// Setting is one value that clients are told, or one secret that replicas
// share. Value is JSON.
type Setting struct {
	ID     SettingID `json:"id"`
	Key    string    `json:"key"`
	Value  string    `json:"value"`
	Source string    `json:"source"` // config, api or replica
	// Pinned says that the configuration holds the value fast.
	Pinned    bool `json:"pinned,omitempty"`
	UpdatedAt Time `json:"updatedAt"`
}

// Policy is one version of the access policy.
type Policy struct {
	Version PolicyVersion `json:"version"`
	// Text is empty when there is no policy at all: everyone may reach
	// everyone.
	Text   string `json:"text,omitempty"`
	Source string `json:"source"` // api or file
	// Author is who saved it, as people see the actor.
	Author  string `json:"author,omitempty"`
	Reason  string `json:"reason,omitempty"`
	SavedAt Time   `json:"savedAt"`
	// ConfirmBy is when this version gives way to RevertTo unless it is
	// confirmed; zero when it stays.
	ConfirmBy Time `json:"confirmBy,omitempty"`
	// RevertTo is zero when no policy at all was in force before.
	RevertTo PolicyVersion `json:"revertTo,omitempty"`
}

// SSHGrant is the answer of an administrator to a checked SSH session. There is
// at most one for each Src, Dst and User: a newer answer takes its id.
type SSHGrant struct {
	ID  SSHGrantID `json:"id"`
	Src NodeID     `json:"src"`
	Dst NodeID     `json:"dst"`
	// User is the account on Dst that the session asks for.
	User     string `json:"user"`
	Rejected bool   `json:"rejected,omitempty"`
	// By is who answered, as people see the actor.
	By        string `json:"by,omitempty"`
	Until     Time   `json:"until"`
	GrantedAt Time   `json:"grantedAt"`
}

// sshAsk is what an SSHGrant answers.
type sshAsk struct {
	src, dst NodeID
	user     string
}

// Secret is what is kept of a secret value: its SHA-256.
type Secret [32]byte

// PreAuthKey lets nodes in. Prefix is its public part.
type PreAuthKey struct {
	ID        KeyID    `json:"id"`
	Prefix    string   `json:"prefix"`
	Hash      Secret   `json:"hash"`
	User      UserID   `json:"user,omitempty"`
	Reusable  bool     `json:"reusable,omitempty"`
	Ephemeral bool     `json:"ephemeral,omitempty"`
	Tags      []string `json:"tags,omitempty"`
	// Used is set by the first registration, of a reusable key too.
	Used      bool `json:"used,omitempty"`
	Expiry    Time `json:"expiry"`
	CreatedAt Time `json:"createdAt"`

	// LastUse travels in events of its own: PreAuthKeyPut leaves it as it is.
	LastUse KeyUse `json:"-"`
}

// APIKey opens the admin API. Prefix is its public part.
type APIKey struct {
	ID     KeyID  `json:"id"`
	Prefix string `json:"prefix"`
	Hash   Secret `json:"hash"`
	Access
	// Comment says what the key is for.
	Comment   string `json:"comment,omitempty"`
	Expiry    Time   `json:"expiry"`
	CreatedAt Time   `json:"createdAt"`

	// LastUse travels in events of its own: APIKeyPut leaves it as it is.
	LastUse KeyUse `json:"-"`
}
