package mesh

import (
	"iter"
	"net/netip"
	"slices"
	"strings"

	"tailscale.com/types/key"
)

// Snapshot is everything durable at one revision. It never changes; readers
// take a pointer and need no lock.
type Snapshot struct {
	// Rev is the last change of any kind.
	Rev Revision
	// At is the time of the newest entry, and Batch the transaction it came
	// with: two histories with the same revisions differ in it.
	At    Time
	Batch BatchID
	// IdentityRev is the last change of a user, owner, tag, address or route.
	// It is known only as far back as this process has followed the log.
	IdentityRev Revision
	// SettingsRev is the last change of a setting, known as far back.
	SettingsRev Revision
	// PolicyRev is the last change of the policy's text, known as far back.
	PolicyRev Revision
	// Counters says which ids and addresses come next.
	Counters Counters

	users     table[User]
	nodes     table[Node]
	preAuth   table[PreAuthKey]
	api       table[APIKey]
	logins    table[Login]
	settings  table[Setting]
	sshGrants table[SSHGrant]
	webhooks  table[Webhook]
	facts     table[Facts] // by the id of the node
	receipts  table[Receipt]
	policy    *Policy  // the newest
	policySum [32]byte // its digest, taken once because the text may be long

	userByName      index[string, UserID]   // by folded name
	usersByEmail    index[string, []UserID] // by folded e-mail
	nodesByMachine  index[key.MachinePublic, []NodeID]
	nodeByKey       index[key.NodePublic, NodeID]
	nodeByAddr      index[netip.Addr, NodeID]
	nodeByName      index[string, NodeID]
	preAuthByPrefix index[string, KeyID]
	apiByPrefix     index[string, KeyID]
	loginByNodeKey  index[key.NodePublic, LoginID]
	settingByKey    index[string, SettingID]
	sshGrantByAsk   index[sshAsk, SSHGrantID]
	receiptByAsk    index[receiptAsk, ReceiptID]
	receiptsByOwner index[string, []ReceiptID]
	routers         index[netip.Prefix, []NodeID] // by each of their Routes
	owned           index[UserID, int]            // nodes a user owns
	online          int
	line            *edit // shared by all snapshots that follow one Load
}

// Counters live in the head of the log, so that an id or address that was
// given back is not handed out again soon, even after a restart.
type Counters struct {
	User     UserID        `json:"user"` // the last one used
	Node     NodeID        `json:"node"`
	PreAuth  KeyID         `json:"preAuth"`
	API      KeyID         `json:"api"`
	Login    LoginID       `json:"login,omitempty"`
	Setting  SettingID     `json:"setting,omitempty"`
	Policy   PolicyVersion `json:"policy,omitempty"`
	SSHGrant SSHGrantID    `json:"sshGrant,omitempty"`
	Route    RouteID       `json:"route,omitempty"`
	Webhook  WebhookID     `json:"webhook,omitempty"`
	Receipt  ReceiptID     `json:"receipt,omitempty"`
	// DeadLetter is of the letters of all webhooks.
	DeadLetter DeadLetterID `json:"deadLetter,omitempty"`
	V4         netip.Addr   `json:"v4"` // the address given last
	V6         netip.Addr   `json:"v6"`
}

// AtLeast returns the counters with no id below those of o.
func (c Counters) AtLeast(o Counters) Counters {
	c.User, c.Node, c.PreAuth, c.API = max(c.User, o.User), max(c.Node, o.Node), max(c.PreAuth, o.PreAuth), max(c.API, o.API)
	c.Login, c.Setting, c.Policy = max(c.Login, o.Login), max(c.Setting, o.Setting), max(c.Policy, o.Policy)
	c.SSHGrant, c.Route, c.Webhook = max(c.SSHGrant, o.SSHGrant), max(c.Route, o.Route), max(c.Webhook, o.Webhook)
	c.Receipt, c.DeadLetter = max(c.Receipt, o.Receipt), max(c.DeadLetter, o.DeadLetter)
	return c
}

// After returns the counters once e is committed.
func (c Counters) After(e Event) Counters {
	switch e := e.(type) {
	case UserPut:
		c.User = max(c.User, e.User.ID)
	case NodePut:
		c.Node = max(c.Node, e.Node.ID)
		for _, r := range e.Node.AllRoutes {
			c.Route = max(c.Route, r.ID)
		}
	case PreAuthKeyPut:
		c.PreAuth = max(c.PreAuth, e.Key.ID)
	case APIKeyPut:
		c.API = max(c.API, e.Key.ID)
	case LoginPut:
		c.Login = max(c.Login, e.Login.ID)
	case SettingPut:
		c.Setting = max(c.Setting, e.Setting.ID)
	case PolicyPut:
		c.Policy = max(c.Policy, e.Policy.Version)
	case SSHGrantPut:
		c.SSHGrant = max(c.SSHGrant, e.Grant.ID)
	case WebhookPut:
		c.Webhook = max(c.Webhook, e.Webhook.ID)
	case DeadLetterPut:
		c.DeadLetter = max(c.DeadLetter, e.Letter.ID)
	case Remembered:
		c.Receipt = max(c.Receipt, e.Receipt.ID)
	case AddressCursor:
		c.V4, c.V6 = e.V4, e.V6
	}
	return c
}

// Empty is the snapshot before the first revision.
func Empty() *Snapshot {
	return &Snapshot{
		line:            new(edit),
		userByName:      newIndex[string, UserID](),
		usersByEmail:    newIndex[string, []UserID](),
		nodesByMachine:  newIndex[key.MachinePublic, []NodeID](),
		nodeByKey:       newIndex[key.NodePublic, NodeID](),
		nodeByAddr:      newIndex[netip.Addr, NodeID](),
		nodeByName:      newIndex[string, NodeID](),
		preAuthByPrefix: newIndex[string, KeyID](),
		apiByPrefix:     newIndex[string, KeyID](),
		loginByNodeKey:  newIndex[key.NodePublic, LoginID](),
		settingByKey:    newIndex[string, SettingID](),
		sshGrantByAsk:   newIndex[sshAsk, SSHGrantID](),
		receiptByAsk:    newIndex[receiptAsk, ReceiptID](),
		receiptsByOwner: newIndex[string, []ReceiptID](),
		routers:         newIndex[netip.Prefix, []NodeID](),
		owned:           newIndex[UserID, int](),
	}
}

// SameIdentities reports whether users, owners, tags, addresses and routes are
// the same in both: they follow one Load, and none has changed in between.
func (s *Snapshot) SameIdentities(t *Snapshot) bool {
	return s.line == t.line && s.IdentityRev == t.IdentityRev
}

// SameSettings reports whether the settings are the same in both: they follow
// one Load, and none has changed in between.
func (s *Snapshot) SameSettings(t *Snapshot) bool {
	return s.line == t.line && s.SettingsRev == t.SettingsRev
}

// SamePolicy reports whether the policy's text is the same in both: they follow
// one Load, and it has not changed in between.
func (s *Snapshot) SamePolicy(t *Snapshot) bool {
	return s.line == t.line && s.PolicyRev == t.PolicyRev
}

// found turns a pointer into the usual pair.
func found[V any](v *V) (*V, bool) { return v, v != nil }

// User returns the user with this id.
func (s *Snapshot) User(id UserID) (*User, bool) { return found(s.users.at(int64(id))) }

// UserByName finds a user without regard to case.
func (s *Snapshot) UserByName(name string) (*User, bool) {
	id, ok := s.userByName.at(FoldName(name))
	if !ok {
		return nil, false
	}
	return s.User(id)
}

// KnownAs finds the users whose name or e-mail this is, without regard to case.
func (s *Snapshot) KnownAs(text string) (known []*User) {
	if u, ok := s.UserByName(text); ok {
		known = append(known, u)
	}
	ids, _ := s.usersByEmail.at(FoldName(text))
	for _, id := range ids {
		if u, ok := s.User(id); ok && !slices.Contains(known, u) {
			known = append(known, u)
		}
	}
	return known
}

// FoldName is the form in which user names and e-mails are compared.
func FoldName(name string) string { return strings.ToLower(name) }

// Users yields all users in the order of their ids.
func (s *Snapshot) Users() iter.Seq[*User] { return s.users.all() }

// UserCount is the number of users.
func (s *Snapshot) UserCount() int { return s.users.count }

// NodesOwned is the number of untagged nodes of a user.
func (s *Snapshot) NodesOwned(id UserID) int {
	n, _ := s.owned.at(id)
	return n
}

// Node returns the node with this id.
func (s *Snapshot) Node(id NodeID) (*Node, bool) { return found(s.nodes.at(int64(id))) }

// Nodes yields all nodes in the order of their ids.
func (s *Snapshot) Nodes() iter.Seq[*Node] { return s.nodes.all() }

// NodeCount is the number of nodes.
func (s *Snapshot) NodeCount() int { return s.nodes.count }

// OnlineCount is the number of nodes with a live stream on any replica.
func (s *Snapshot) OnlineCount() int { return s.online }

// NodesByMachine returns the nodes of one machine: one for each user who
// signed in there.
func (s *Snapshot) NodesByMachine(k key.MachinePublic) []*Node {
	ids, _ := s.nodesByMachine.at(k)
	ns := make([]*Node, 0, len(ids))
	for _, id := range ids {
		ns = append(ns, s.nodes.at(int64(id)))
	}
	return ns
}

// NodeByKey finds the node that holds a node key.
func (s *Snapshot) NodeByKey(k key.NodePublic) (*Node, bool) { return s.nodeAt(s.nodeByKey.at(k)) }

// NodeByAddr finds the node that holds an address.
func (s *Snapshot) NodeByAddr(a netip.Addr) (*Node, bool) { return s.nodeAt(s.nodeByAddr.at(a)) }

// NodeByName finds the node with this label.
func (s *Snapshot) NodeByName(name string) (*Node, bool) { return s.nodeAt(s.nodeByName.at(name)) }

// NodeNamed finds a node by its label or its full name, without regard to case.
func (s *Snapshot) NodeNamed(name string) (*Node, bool) {
	name = strings.ToLower(name)
	if domain := s.DNS().BaseDomain; domain != "" {
		name = strings.TrimSuffix(strings.TrimSuffix(name, "."), "."+domain)
	}
	return s.NodeByName(name)
}

func (s *Snapshot) nodeAt(id NodeID, ok bool) (*Node, bool) {
	if !ok {
		return nil, false
	}
	return s.Node(id)
}

// Facts returns what a node measured, if it said so.
func (s *Snapshot) Facts(id NodeID) (*Facts, bool) { return found(s.facts.at(int64(id))) }

// AllFacts yields what nodes measured in the order of their ids.
func (s *Snapshot) AllFacts() iter.Seq[*Facts] { return s.facts.all() }

// PreAuthKey returns the pre-auth key with this id.
func (s *Snapshot) PreAuthKey(id KeyID) (*PreAuthKey, bool) { return found(s.preAuth.at(int64(id))) }

// PreAuthKeyByPrefix finds a pre-auth key by its public part.
func (s *Snapshot) PreAuthKeyByPrefix(prefix string) (*PreAuthKey, bool) {
	id, ok := s.preAuthByPrefix.at(prefix)
	if !ok {
		return nil, false
	}
	return s.PreAuthKey(id)
}

// PreAuthKeys yields all pre-auth keys in the order of their ids.
func (s *Snapshot) PreAuthKeys() iter.Seq[*PreAuthKey] { return s.preAuth.all() }

// APIKey returns the API key with this id.
func (s *Snapshot) APIKey(id KeyID) (*APIKey, bool) { return found(s.api.at(int64(id))) }

// APIKeyByPrefix finds an API key by its public part.
func (s *Snapshot) APIKeyByPrefix(prefix string) (*APIKey, bool) {
	id, ok := s.apiByPrefix.at(prefix)
	if !ok {
		return nil, false
	}
	return s.APIKey(id)
}

// APIKeys yields all API keys in the order of their ids.
func (s *Snapshot) APIKeys() iter.Seq[*APIKey] { return s.api.all() }

// Login returns the answer to the device that asked with this node key.
func (s *Snapshot) Login(k key.NodePublic) (*Login, bool) {
	id, ok := s.loginByNodeKey.at(k)
	if !ok {
		return nil, false
	}
	return found(s.logins.at(int64(id)))
}

// Logins yields all answers that wait for their device.
func (s *Snapshot) Logins() iter.Seq[*Login] { return s.logins.all() }

// Setting returns the setting with this key.
func (s *Snapshot) Setting(key string) (*Setting, bool) {
	id, ok := s.settingByKey.at(key)
	if !ok {
		return nil, false
	}
	return found(s.settings.at(int64(id)))
}

// Settings yields all settings in the order of their ids.
func (s *Snapshot) Settings() iter.Seq[*Setting] { return s.settings.all() }

// Policy returns the newest version of the policy.
func (s *Snapshot) Policy() (*Policy, bool) { return found(s.policy) }

// SSHGrant returns the answer to a checked session from src to dst as user.
func (s *Snapshot) SSHGrant(src, dst NodeID, user string) (*SSHGrant, bool) {
	id, ok := s.sshGrantByAsk.at(sshAsk{src, dst, user})
	if !ok {
		return nil, false
	}
	return found(s.sshGrants.at(int64(id)))
}

// SSHGrants yields all answers to checked sessions in the order of their ids.
func (s *Snapshot) SSHGrants() iter.Seq[*SSHGrant] { return s.sshGrants.all() }

// BlockSize is the number of neighbouring ids that NodeBlocks yields at once.
const BlockSize = 64

// NodeBlocks yields all nodes in the order of their ids, in blocks that start
// at multiples of BlockSize; ids without a node are nil. Two blocks with the
// same first element hold the same nodes, in any snapshot.
func (s *Snapshot) NodeBlocks() iter.Seq2[NodeID, []*Node] {
	return func(yield func(NodeID, []*Node) bool) {
		for first, p := range s.nodes.numbered() {
			for at := 0; at < pageSize; at += BlockSize {
				if !yield(NodeID(first+int64(at)), p.vals[at:at+BlockSize:at+BlockSize]) {
					return
				}
			}
		}
	}
}

// ChangedNodes returns the nodes that differ between s and an older snapshot,
// in the order of their ids. What both share is not looked at.
func (s *Snapshot) ChangedNodes(old *Snapshot) []NodeID { return changed[NodeID](&s.nodes, &old.nodes) }

// ChangedUsers returns the users that differ between s and an older snapshot.
func (s *Snapshot) ChangedUsers(old *Snapshot) []UserID { return changed[UserID](&s.users, &old.users) }
