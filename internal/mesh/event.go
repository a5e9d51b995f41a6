package mesh

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Kind names an event in the log. A kind is never removed and its payload only
// grows; what an older binary cannot read makes it load the tables anew.
//
// The list is append-only:
//
//	2026-11  user.put user.gone node.put node.gone node.net node.online
//	         node.offline preauthkey.put preauthkey.gone apikey.put
//	         apikey.gone address.cursor
//	2026-11  login.put login.gone setting.put setting.gone
//	2026-11  policy.put ssh.put ssh.gone
//	2026-11  webhook.put webhook.gone webhook.moved deadletter.put
//	         deadletter.gone
//	2026-11  node.facts preauthkey.used apikey.used
//	2026-11  receipt.put receipt.gone
//	2026-11  clock.set
type Kind string

// The kinds of event.
const (
	KindUserPut        Kind = "user.put"
	KindUserGone       Kind = "user.gone"
	KindNodePut        Kind = "node.put"
	KindNodeGone       Kind = "node.gone"
	KindNodeNet        Kind = "node.net"
	KindOnline         Kind = "node.online"
	KindOffline        Kind = "node.offline"
	KindPreAuthKeyPut  Kind = "preauthkey.put"
	KindPreAuthKeyGone Kind = "preauthkey.gone"
	KindAPIKeyPut      Kind = "apikey.put"
	KindAPIKeyGone     Kind = "apikey.gone"
	KindAddressCursor  Kind = "address.cursor"
	KindLoginPut       Kind = "login.put"
	KindLoginGone      Kind = "login.gone"
	KindSettingPut     Kind = "setting.put"
	KindSettingGone    Kind = "setting.gone"
	KindPolicyPut      Kind = "policy.put"
	KindSSHGrantPut    Kind = "ssh.put"
	KindSSHGrantGone   Kind = "ssh.gone"
	KindWebhookPut     Kind = "webhook.put"
	KindWebhookGone    Kind = "webhook.gone"
	KindWebhookMoved   Kind = "webhook.moved"
	KindDeadLetterPut  Kind = "deadletter.put"
	KindDeadLetterGone Kind = "deadletter.gone"
	KindNodeFacts      Kind = "node.facts"
	KindPreAuthKeyUsed Kind = "preauthkey.used"
	KindAPIKeyUsed     Kind = "apikey.used"
	KindRemembered     Kind = "receipt.put"
	KindForgotten      Kind = "receipt.gone"
	KindClockSet       Kind = "clock.set"
)

// Event is a committed fact with the full new value.
type Event interface{ Kind() Kind }

// UserPut adds or replaces a user.
type UserPut struct {
	User *User `json:"user"`
}

// UserGone removes a user. Settle adds what goes with it.
type UserGone struct {
	ID UserID `json:"id"`
}

// NodePut adds or replaces a node, all but its Net and Presence.
type NodePut struct {
	Node *Node `json:"node"`
}

// NodeGone removes a node.
type NodeGone struct {
	ID NodeID `json:"id"`
}

// NodeNet replaces how peers reach a node.
type NodeNet struct {
	ID  NodeID `json:"id"`
	Net Net    `json:"net"`
}

// Online says that a replica holds a node's stream.
type Online struct {
	ID      NodeID `json:"id"`
	Replica string `json:"replica"`
	Conn    int64  `json:"conn"`
	At      Time   `json:"at"`
}

// Offline says that no replica holds a node's stream any more.
type Offline struct {
	ID NodeID `json:"id"`
	At Time   `json:"at"`
}

// PreAuthKeyPut adds or replaces a pre-auth key.
type PreAuthKeyPut struct {
	Key *PreAuthKey `json:"key"`
}

// PreAuthKeyGone removes a pre-auth key.
type PreAuthKeyGone struct {
	ID KeyID `json:"id"`
}

// APIKeyPut adds or replaces an API key.
type APIKeyPut struct {
	Key *APIKey `json:"key"`
}

// APIKeyGone removes an API key.
type APIKeyGone struct {
	ID KeyID `json:"id"`
}

// AddressCursor records the addresses given last, so that the next search
// starts behind them.
type AddressCursor struct {
	V4 netip.Addr `json:"v4"`
	V6 netip.Addr `json:"v6"`
}

// LoginPut adds or replaces the answer to a device that waits.
type LoginPut struct {
	Login *Login `json:"login"`
}

// LoginGone removes an answer: the device has it, or its time is over.
type LoginGone struct {
	ID LoginID `json:"id"`
}

// SettingPut adds or replaces a setting.
type SettingPut struct {
	Setting *Setting `json:"setting"`
}

// SettingGone removes a setting.
type SettingGone struct {
	ID SettingID `json:"id"`
}

// PolicyPut adds a version of the policy, or confirms the one there is.
type PolicyPut struct {
	Policy *Policy `json:"policy"`
}

// SSHGrantPut adds or replaces the answer to a checked SSH session.
type SSHGrantPut struct {
	Grant *SSHGrant `json:"grant"`
}

// SSHGrantGone removes an answer to a checked SSH session.
type SSHGrantGone struct {
	ID SSHGrantID `json:"id"`
}

// WebhookPut adds or replaces a webhook, all but its Progress.
type WebhookPut struct {
	Webhook *Webhook `json:"webhook"`
}

// WebhookGone removes a webhook.
type WebhookGone struct {
	ID WebhookID `json:"id"`
}

// WebhookMoved replaces how far a receiver has been told.
type WebhookMoved struct {
	ID       WebhookID       `json:"id"`
	Progress WebhookProgress `json:"progress"`
}

// DeadLetterPut keeps an event that a receiver did not take in time.
type DeadLetterPut struct {
	Letter *DeadLetter `json:"letter"`
}

// DeadLetterGone removes one that the receiver has taken after all.
type DeadLetterGone struct {
	ID DeadLetterID `json:"id"`
}

// NodeFacts replaces what a device measured. No peer hears of it.
type NodeFacts struct {
	Facts *Facts `json:"facts"`
}

// PreAuthKeyUsed says that a pre-auth key let a node in.
type PreAuthKeyUsed struct {
	ID  KeyID  `json:"id"`
	Use KeyUse `json:"use"`
}

// APIKeyUsed says that an API key was used. Not every use becomes an event.
type APIKeyUsed struct {
	ID  KeyID  `json:"id"`
	Use KeyUse `json:"use"`
}

// Remembered adds the receipt of a request that was done.
type Remembered struct {
	Receipt *Receipt `json:"receipt"`
}

// Forgotten removes the receipt of a request.
type Forgotten struct {
	ID ReceiptID `json:"id"`
}

// ClockSet records that the time of the mesh was set back, because earlier changes
// were made while a clock was ahead.
type ClockSet struct {
	Was Time `json:"was"`
}

// Kind names the event in the log.
func (UserPut) Kind() Kind { return KindUserPut }

// Kind names the event in the log.
func (UserGone) Kind() Kind { return KindUserGone }

// Kind names the event in the log.
func (NodePut) Kind() Kind { return KindNodePut }

// Kind names the event in the log.
func (NodeGone) Kind() Kind { return KindNodeGone }

// Kind names the event in the log.
func (NodeNet) Kind() Kind { return KindNodeNet }

// Kind names the event in the log.
func (Online) Kind() Kind { return KindOnline }

// Kind names the event in the log.
func (Offline) Kind() Kind { return KindOffline }

// Kind names the event in the log.
func (PreAuthKeyPut) Kind() Kind { return KindPreAuthKeyPut }

// Kind names the event in the log.
func (PreAuthKeyGone) Kind() Kind { return KindPreAuthKeyGone }

// Kind names the event in the log.
func (APIKeyPut) Kind() Kind { return KindAPIKeyPut }

// Kind names the event in the log.
func (APIKeyGone) Kind() Kind { return KindAPIKeyGone }

// Kind names the event in the log.
func (AddressCursor) Kind() Kind { return KindAddressCursor }

// Kind names the event in the log.
func (LoginPut) Kind() Kind { return KindLoginPut }

// Kind names the event in the log.
func (LoginGone) Kind() Kind { return KindLoginGone }

// Kind names the event in the log.
func (SettingPut) Kind() Kind { return KindSettingPut }

// Kind names the event in the log.
func (SettingGone) Kind() Kind { return KindSettingGone }

// Kind names the event in the log.
func (PolicyPut) Kind() Kind { return KindPolicyPut }

// Kind names the event in the log.
func (SSHGrantPut) Kind() Kind { return KindSSHGrantPut }

// Kind names the event in the log.
func (SSHGrantGone) Kind() Kind { return KindSSHGrantGone }

// Kind names the event in the log.
func (WebhookPut) Kind() Kind { return KindWebhookPut }

// Kind names the event in the log.
func (WebhookGone) Kind() Kind { return KindWebhookGone }

// Kind names the event in the log.
func (WebhookMoved) Kind() Kind { return KindWebhookMoved }

// Kind names the event in the log.
func (DeadLetterPut) Kind() Kind { return KindDeadLetterPut }

// Kind names the event in the log.
func (DeadLetterGone) Kind() Kind { return KindDeadLetterGone }

// Kind names the event in the log.
func (NodeFacts) Kind() Kind { return KindNodeFacts }

// Kind names the event in the log.
func (PreAuthKeyUsed) Kind() Kind { return KindPreAuthKeyUsed }

// Kind names the event in the log.
func (APIKeyUsed) Kind() Kind { return KindAPIKeyUsed }

// Kind names the event in the log.
func (Remembered) Kind() Kind { return KindRemembered }

// Kind names the event in the log.
func (Forgotten) Kind() Kind { return KindForgotten }

// Kind names the event in the log.
func (ClockSet) Kind() Kind { return KindClockSet }

// Settle adds the consequences of evs, as events, so that nothing is derived
// when they are applied: what goes with a user or a node goes in the same
// revision.
func Settle(before *Snapshot, evs []Event) []Event {
	settled := evs
	// What was granted to a node ends with it, and when it becomes somebody else's.
	users, nodes, grantees := map[UserID]bool{}, map[NodeID]bool{}, map[NodeID]bool{}
	for _, e := range evs {
		switch e := e.(type) {
		case UserGone:
			users[e.ID] = true
		case NodeGone:
			nodes[e.ID], grantees[e.ID] = true, true
		case NodePut:
			if old, ok := before.Node(e.Node.ID); ok && (old.Owner != e.Node.Owner || !slices.Equal(old.Tags, e.Node.Tags)) {
				grantees[e.Node.ID] = true
			}
		}
	}
	if len(users) > 0 {
		for n := range before.Nodes() {
			if users[n.Owner] && !nodes[n.ID] {
				nodes[n.ID], grantees[n.ID] = true, true
				settled = append(settled, NodeGone{ID: n.ID})
			}
		}
		for k := range before.PreAuthKeys() {
			if users[k.User] {
				settled = append(settled, PreAuthKeyGone{ID: k.ID})
			}
		}
		for l := range before.Logins() {
			if users[l.User] {
				settled = append(settled, LoginGone{ID: l.ID})
			}
		}
	}
	if len(grantees) > 0 {
		for g := range before.SSHGrants() {
			if grantees[g.Src] || grantees[g.Dst] {
				settled = append(settled, SSHGrantGone{ID: g.ID})
			}
		}
	}
	return settleRoutes(before, settled)
}

// ErrUnknownKind says that a newer binary wrote the event.
var ErrUnknownKind = errors.New("unknown event kind")

type envelope struct {
	Kind Kind            `json:"k"`
	Data json.RawMessage `json:"d"`
}

// EncodeEvents gives the form in which the log keeps events.
func EncodeEvents(evs []Event) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, e := range evs {
		data, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", e.Kind(), err)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"k":%q,"d":%s}`, e.Kind(), data)
	}
	b.WriteByte(']')
	return b.Bytes(), nil
}

// DecodeEvents reads what EncodeEvents wrote. The error is ErrUnknownKind when
// an event is well-formed but not of a kind this binary knows.
func DecodeEvents(data []byte) ([]Event, error) {
	var list []envelope
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("decoding events: %w", err)
	}
	evs := make([]Event, len(list))
	for i, env := range list {
		e, err := env.event()
		if err != nil {
			return nil, fmt.Errorf("decoding event %d: %w", i, err)
		}
		evs[i] = e
	}
	return evs, nil
}

func (env envelope) event() (Event, error) {
	switch env.Kind {
	case KindUserPut:
		return decode(env.Data, func(e UserPut) bool { return e.User != nil && valid(e.User.ID) })
	case KindUserGone:
		return decode(env.Data, func(e UserGone) bool { return valid(e.ID) })
	case KindNodePut:
		return decode(env.Data, func(e NodePut) bool { return e.Node != nil && valid(e.Node.ID) })
	case KindNodeGone:
		return decode(env.Data, func(e NodeGone) bool { return valid(e.ID) })
	case KindNodeNet:
		return decode(env.Data, func(e NodeNet) bool { return valid(e.ID) })
	case KindOnline:
		return decode(env.Data, func(e Online) bool { return valid(e.ID) })
	case KindOffline:
		return decode(env.Data, func(e Offline) bool { return valid(e.ID) })
	case KindPreAuthKeyPut:
		return decode(env.Data, func(e PreAuthKeyPut) bool { return e.Key != nil && valid(e.Key.ID) })
	case KindPreAuthKeyGone:
		return decode(env.Data, func(e PreAuthKeyGone) bool { return valid(e.ID) })
	case KindAPIKeyPut:
		return decode(env.Data, func(e APIKeyPut) bool { return e.Key != nil && valid(e.Key.ID) && e.Key.completed() })
	case KindAPIKeyGone:
		return decode(env.Data, func(e APIKeyGone) bool { return valid(e.ID) })
	case KindAddressCursor:
		return decode(env.Data, func(AddressCursor) bool { return true })
	case KindLoginPut:
		return decode(env.Data, func(e LoginPut) bool { return e.Login != nil && valid(e.Login.ID) })
	case KindLoginGone:
		return decode(env.Data, func(e LoginGone) bool { return valid(e.ID) })
	case KindSettingPut:
		return decode(env.Data, func(e SettingPut) bool { return e.Setting != nil && valid(e.Setting.ID) })
	case KindSettingGone:
		return decode(env.Data, func(e SettingGone) bool { return valid(e.ID) })
	case KindPolicyPut:
		return decode(env.Data, func(e PolicyPut) bool { return e.Policy != nil && valid(e.Policy.Version) })
	case KindSSHGrantPut:
		return decode(env.Data, func(e SSHGrantPut) bool { return e.Grant != nil && valid(e.Grant.ID) })
	case KindSSHGrantGone:
		return decode(env.Data, func(e SSHGrantGone) bool { return valid(e.ID) })
	case KindWebhookPut:
		return decode(env.Data, func(e WebhookPut) bool { return e.Webhook != nil && valid(e.Webhook.ID) })
	case KindWebhookGone:
		return decode(env.Data, func(e WebhookGone) bool { return valid(e.ID) })
	case KindWebhookMoved:
		return decode(env.Data, func(e WebhookMoved) bool { return valid(e.ID) })
	case KindDeadLetterPut:
		return decode(env.Data, func(e DeadLetterPut) bool { return e.Letter != nil && valid(e.Letter.ID) })
	case KindDeadLetterGone:
		return decode(env.Data, func(e DeadLetterGone) bool { return valid(e.ID) })
	case KindNodeFacts:
		return decode(env.Data, func(e NodeFacts) bool { return e.Facts != nil && valid(e.Facts.Node) })
	case KindPreAuthKeyUsed:
		return decode(env.Data, func(e PreAuthKeyUsed) bool { return valid(e.ID) })
	case KindAPIKeyUsed:
		return decode(env.Data, func(e APIKeyUsed) bool { return valid(e.ID) })
	case KindRemembered:
		return decode(env.Data, func(e Remembered) bool { return e.Receipt != nil && valid(e.Receipt.ID) })
	case KindForgotten:
		return decode(env.Data, func(e Forgotten) bool { return valid(e.ID) })
	case KindClockSet:
		return decode(env.Data, func(ClockSet) bool { return true })
	}
	return nil, fmt.Errorf("%w: %q", ErrUnknownKind, env.Kind)
}

func valid[ID ~int64](id ID) bool { return id > 0 && id <= MaxID }

func decode[E Event](data []byte, ok func(E) bool) (Event, error) {
	var e E
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, err
	}
	if !ok(e) {
		return nil, fmt.Errorf("%s names no valid object", e.Kind())
	}
	return e, nil
}

// MarshalText gives the hexadecimal form.
func (s Secret) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText reads the hexadecimal form.
func (s *Secret) UnmarshalText(text []byte) error {
	if len(text) != 2*len(s) {
		return errors.New("a secret's hash has 64 hexadecimal digits")
	}
	_, err := hex.Decode(s[:], text)
	return err
}
