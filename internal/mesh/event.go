package mesh

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Kind names an event in the log. A kind is never removed and its payload only grows. A
// binary that reads an unknown kind reloads the tables.
type Kind string

// The kinds of event. The list is append-only.
const (
	KindUserPut         Kind = "user.put"
	KindUserGone        Kind = "user.gone"
	KindNodePut         Kind = "node.put"
	KindNodeGone        Kind = "node.gone"
	KindNodeNet         Kind = "node.net"
	KindOnline          Kind = "node.online"
	KindOffline         Kind = "node.offline"
	KindPreAuthKeyPut   Kind = "preauthkey.put"
	KindPreAuthKeyGone  Kind = "preauthkey.gone"
	KindAPIKeyPut       Kind = "apikey.put"
	KindAPIKeyGone      Kind = "apikey.gone"
	KindAddressCursor   Kind = "address.cursor"
	KindLoginPut        Kind = "login.put"
	KindLoginGone       Kind = "login.gone"
	KindSettingPut      Kind = "setting.put"
	KindSettingGone     Kind = "setting.gone"
	KindPolicyPut       Kind = "policy.put"
	KindSSHGrantPut     Kind = "ssh.put"
	KindSSHGrantGone    Kind = "ssh.gone"
	KindWebhookPut      Kind = "webhook.put"
	KindWebhookGone     Kind = "webhook.gone"
	KindWebhookMoved    Kind = "webhook.moved"
	KindDeadLetterPut   Kind = "deadletter.put"
	KindDeadLetterGone  Kind = "deadletter.gone"
	KindNodeFacts       Kind = "node.facts"
	KindPreAuthKeyUsed  Kind = "preauthkey.used"
	KindAPIKeyUsed      Kind = "apikey.used"
	KindReceiptPut      Kind = "receipt.put"
	KindReceiptGone     Kind = "receipt.gone"
	KindClockSet        Kind = "clock.set"
	KindSessionPut      Kind = "session.put"
	KindSessionGone     Kind = "session.gone"
	KindSessionUsed     Kind = "session.used"
	KindPasskeyPut      Kind = "passkey.put"
	KindPasskeyGone     Kind = "passkey.gone"
	KindInvitationPut   Kind = "invitation.put"
	KindInvitationGone  Kind = "invitation.gone"
	KindGroupPut        Kind = "group.put"
	KindGroupGone       Kind = "group.gone"
	KindRecheckPut      Kind = "recheck.put"
	KindRecheckGone     Kind = "recheck.gone"
	KindHistoryReset    Kind = "history.reset"
	KindReservationPut  Kind = "reservation.put"
	KindReservationGone Kind = "reservation.gone"
	KindRelayPut        Kind = "relay.put"
	KindRelayGone       Kind = "relay.gone"
	KindRelayReported   Kind = "relay.reported"
)

// Event is a committed fact with the full new value. An event that assigns an id also has a
// method count, which raises the counter for these ids.
type Event interface {
	// Kind names the event in the log.
	Kind() Kind
	// valid reports whether a decoded event names an object.
	valid() bool
	// apply changes a draft, which already has the revision of the event.
	apply(d *Draft)
}

// nodeEvent is an event that touches a node.
type nodeEvent interface{ node() NodeID }

// Events returns an empty event of each kind. Kinds that are not listed cannot be read from
// the log.
func Events() []Event {
	return []Event{
		UserPut{},
		UserGone{},
		NodePut{},
		NodeGone{},
		NodeNet{},
		Online{},
		Offline{},
		NodeFacts{},
		PreAuthKeyPut{},
		PreAuthKeyGone{},
		PreAuthKeyUsed{},
		APIKeyPut{},
		APIKeyGone{},
		APIKeyUsed{},
		LoginPut{},
		LoginGone{},
		SettingPut{},
		SettingGone{},
		PolicyPut{},
		SSHGrantPut{},
		SSHGrantGone{},
		WebhookPut{},
		WebhookGone{},
		WebhookMoved{},
		DeadLetterPut{},
		DeadLetterGone{},
		PasskeyPut{},
		PasskeyGone{},
		InvitationPut{},
		InvitationGone{},
		ReceiptPut{},
		ReceiptGone{},
		SessionPut{},
		SessionGone{},
		SessionUsed{},
		GroupPut{},
		GroupGone{},
		RecheckPut{},
		RecheckGone{},
		ReservationPut{},
		ReservationGone{},
		RelayPut{},
		RelayGone{},
		RelayReported{},
		AddressCursor{},
		ClockSet{},
		HistoryReset{},
	}
}

// Settle adds the consequences of evs as events of the same revision, so that nothing is
// derived when events are applied: removing a user also removes the user's nodes,
// keys and sessions, removing a node also removes its SSH grants, and suspending a user
// also suspends the user's nodes. What evs give to another user stays.
func Settle(before *Snapshot, evs []Event) []Event {
	settled := evs
	// SSH grants of a node are removed when it is deleted, and when its owner or tags
	// change.
	grantees := map[NodeID]bool{}
	var l leavers
	for _, e := range evs {
		switch e := e.(type) {
		case UserGone:
			l.remove(e.ID)
		case UserPut:
			l.put(before, e.User)
		case NodeGone:
			grantees[e.ID] = true
		case NodePut:
			if old, ok := before.Nodes.Get(e.Node.ID); ok && (old.Owner != e.Node.Owner || !slices.Equal(old.Tags, e.Node.Tags)) {
				grantees[e.Node.ID] = true
			}
		}
	}
	for _, e := range l.settle(before, evs) {
		if e, ok := e.(NodeGone); ok {
			grantees[e.ID] = true
		}
		settled = append(settled, e)
	}
	if len(grantees) > 0 {
		for g := range before.SSHGrants.All() {
			if grantees[g.Src] || grantees[g.Dst] {
				settled = append(settled, SSHGrantGone{ID: g.ID})
			}
		}
	}
	return settleRoutes(before, settleSuspended(before, settled))
}

// ErrUnknownKind means that a newer binary wrote the event.
var ErrUnknownKind = errors.New("unknown event kind")

type envelope struct {
	Kind Kind            `json:"k"`
	Data json.RawMessage `json:"d"`
}

// EncodeEvents returns events in the format of the log.
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

// DecodeEvents decodes the result of EncodeEvents. The error is ErrUnknownKind if an event
// is well-formed but of a kind that this binary does not know.
func DecodeEvents(data []byte) ([]Event, error) {
	var list []envelope
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("decoding events: %w", err)
	}
	evs, known := make([]Event, len(list)), Events()
	for i, env := range list {
		e, err := env.event(known)
		if err != nil {
			return nil, fmt.Errorf("decoding event %d: %w", i, err)
		}
		evs[i] = e
	}
	return evs, nil
}

func (env envelope) event(known []Event) (Event, error) {
	i := slices.IndexFunc(known, func(e Event) bool { return e.Kind() == env.Kind })
	if i < 0 {
		return nil, fmt.Errorf("%w: %q", ErrUnknownKind, env.Kind)
	}
	v := reflect.New(reflect.TypeOf(known[i]))
	if err := json.Unmarshal(env.Data, v.Interface()); err != nil {
		return nil, err
	}
	e := v.Elem().Interface().(Event)
	if !e.valid() {
		return nil, fmt.Errorf("%s does not refer to a valid object", env.Kind)
	}
	return e, nil
}

func valid[ID ~int64](id ID) bool { return id > 0 && id <= MaxID }
