package api

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/identity"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// taggedDevices returns the user that is shown for tagged nodes. It is never stored.
func taggedDevices() *openapi.User {
	return &openapi.User{ID: mesh.TaggedDevices.String(), Name: control.TaggedDevices, DisplayName: "Tagged Devices"}
}

func moment(t mesh.Time) *time.Time {
	if t == 0 {
		return nil
	}
	at := t.Time()
	return &at
}

func userShape(s *mesh.Snapshot, u *mesh.User) openapi.User {
	shape := *userView{u, s.Nodes.OwnedCount(u.ID)}.shape()
	shape.Groups = u.Groups
	if u.NeedsApproval {
		shape.NeedsApproval = &u.NeedsApproval
	}
	return shape
}

func userOrNull(s *mesh.Snapshot, id mesh.UserID) *openapi.User { return viewUser(s, id).shape() }

func preAuthKeyShape(s *mesh.Snapshot, k *mesh.PreAuthKey, text string, at mesh.Time) openapi.PreAuthKey {
	shape := *viewPreAuthKey(s, k, at).shape()
	if text != "" {
		shape.Key = text
	}
	return shape
}

func apiKeyShape(s *mesh.Snapshot, k *mesh.APIKey, at mesh.Time) openapi.APIKey {
	return openapi.APIKey{
		User: userOrNull(s, k.User),
		ID:   k.ID.String(), Prefix: identity.Mask(identity.KindAPI, k.Prefix), Role: openapi.Role(k.Role), Scopes: list(k.Scopes), Comment: k.Comment,
		Expiration: k.Expiry.Time(), Expired: k.Expiry.Reached(at), CreatedAt: k.CreatedAt.Time(), LastSeen: moment(k.LastUse.At), LastUsedFrom: k.LastUse.From,
	}
}

func sessionShape(s *mesh.Snapshot, v *mesh.Session, current mesh.SessionID) openapi.Session {
	out := openapi.Session{
		ID: v.ID.String(), Prefix: identity.Mask(identity.KindSession, v.Prefix), Client: openapi.SessionClient(v.Client), Description: v.Description, Current: v.ID == current,
		Expiration: v.Expiry.Time(), CreatedAt: v.CreatedAt.Time(), LastSeen: moment(v.LastUse.At), LastUsedFrom: v.LastUse.From,
	}
	if u, ok := s.Users.Get(v.User); ok {
		out.User = userShape(s, u)
	}
	return out
}

func nodeShape(s *mesh.Snapshot, n *mesh.Node, at mesh.Time) openapi.Node {
	return viewNode(s, n, at).shape()
}

// nodeShapeFor returns a node as the caller may see it. It hides from members the notes of
// administrators, and pre-auth keys that are not theirs.
func nodeShapeFor(a mesh.Actor, s *mesh.Snapshot, n *mesh.Node, at mesh.Time) openapi.Node {
	view := viewNode(s, n, at)
	if k := view.key.key; k != nil && !control.OwnsPreAuthKey(a, k) {
		view.key = preAuthKeyView{}
	}
	shape := view.shape()
	if a.Member {
		shape.Note = nil
	}
	return shape
}

func registerMethod(m mesh.RegisterMethod) openapi.RegisterMethod {
	switch m {
	case mesh.RegisterAuthKey:
		return openapi.RegisterMethodAuthKey
	case mesh.RegisterOIDC:
		return openapi.RegisterMethodOIDC
	case mesh.RegisterApproved:
		return openapi.RegisterMethodCLI
	}
	return openapi.RegisterMethodUnspecified
}

func loginShape(s *mesh.Snapshot, l *mesh.Login) openapi.Login {
	return openapi.Login{
		ID: strconv.FormatInt(int64(l.ID), 10), MachineKey: l.MachineKey.String(), NodeKey: l.NodeKey.String(),
		User: userOrNull(s, l.User), Rejected: l.Rejected, Until: l.Until.Time(),
	}
}

// discoKey returns the disco key of a node. It is empty until the node has connected once.
func discoKey(n *mesh.Node) string {
	if n.Net.DiscoKey.IsZero() {
		return ""
	}
	return n.Net.DiscoKey.String()
}

// list replaces nil with an empty list, which is encoded as [] instead of null.
func list(texts []string) []string {
	if texts == nil {
		return []string{}
	}
	return texts
}

func texts[T fmt.Stringer](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = v.String()
	}
	return out
}

// Describe returns the object of an event for the audit log, as the API shows it. It implements
// ledger.Describe. The audit log has no entries for presence, endpoints, measurements, uses of
// keys, groups that an identity provider pushes (their members have entries), counters, deliveries of webhooks, reports of relays, idempotency receipts, settings other than DNS and rotations of the Noise key, and the
// deletion of a login when its device receives the decision.
//
// long: it has a case for each kind of event
func Describe(s *mesh.Snapshot, at mesh.Time, e mesh.Event) (kind, id string, shape []byte) {
	user := func(id mesh.UserID) (string, string, []byte) {
		u, ok := s.Users.Get(id)
		return "user", id.String(), shapeOf(ok, func() any { return userShape(s, u) })
	}
	node := func(id mesh.NodeID) (string, string, []byte) {
		n, ok := s.Nodes.Get(id)
		return "node", id.String(), shapeOf(ok, func() any { return nodeShape(s, n, at) })
	}
	preAuth := func(id mesh.KeyID) (string, string, []byte) {
		k, ok := s.PreAuthKeys.Get(id)
		return "preauthkey", id.String(), shapeOf(ok, func() any { return preAuthKeyShape(s, k, "", at) })
	}
	api := func(id mesh.KeyID) (string, string, []byte) {
		k, ok := s.APIKeys.Get(id)
		return "apikey", id.String(), shapeOf(ok, func() any { return apiKeyShape(s, k, at) })
	}
	session := func(id mesh.SessionID) (string, string, []byte) {
		v, ok := s.Sessions.Get(id)
		return "session", id.String(), shapeOf(ok, func() any { return sessionShape(s, v, 0) })
	}
	login := func(l *mesh.Login) (string, string, []byte) {
		kept, ok := s.Logins.ByNodeKey(l.NodeKey)
		return "login", strconv.FormatInt(int64(l.ID), 10), shapeOf(ok, func() any { return loginShape(s, kept) })
	}
	grant := func(g *mesh.SSHGrant) (string, string, []byte) {
		kept, ok := s.SSHGrants.For(g.Src, g.Dst, g.User)
		return "sshgrant", g.ID.String(), shapeOf(ok, func() any { return sshGrantShape(s, kept) })
	}
	switch e := e.(type) {
	case mesh.SettingPut:
		return describeSetting(s, e.Setting)
	case mesh.PolicyPut:
		return describePolicy(s, e.Policy.Version)
	case mesh.UserPut:
		return user(e.User.ID)
	case mesh.UserGone:
		return user(e.ID)
	case mesh.NodePut:
		return node(e.Node.ID)
	case mesh.NodeGone:
		return node(e.ID)
	case mesh.PreAuthKeyPut:
		return preAuth(e.Key.ID)
	case mesh.PreAuthKeyGone:
		return preAuth(e.ID)
	case mesh.APIKeyPut:
		return api(e.Key.ID)
	case mesh.APIKeyGone:
		return api(e.ID)
	case mesh.SessionPut:
		return session(e.Session.ID)
	case mesh.SessionGone:
		return session(e.ID)
	case mesh.LoginPut:
		return login(e.Login)
	case mesh.SSHGrantPut:
		return grant(e.Grant)
	case mesh.WebhookPut:
		return describeWebhook(s, e.Webhook.ID)
	case mesh.WebhookGone:
		return describeWebhook(s, e.ID)
	case mesh.RelayPut:
		return describeRelay(s, e.Relay.ID)
	case mesh.RelayGone:
		return describeRelay(s, e.ID)
	case mesh.PasskeyPut:
		return describePasskey(s, e.Passkey.ID)
	case mesh.PasskeyGone:
		return describePasskey(s, e.ID)
	case mesh.InvitationPut:
		return describeInvitation(s, e.Invitation.ID)
	case mesh.InvitationGone:
		return describeInvitation(s, e.ID)
	case mesh.ReservationPut:
		return describeReservation(s, e.Reservation.ID)
	case mesh.ReservationGone:
		return describeReservation(s, e.ID)
	case mesh.ClockSet:
		return "clock", "1", shapeOf(true, func() any { return map[string]time.Time{"time": s.At.Time()} })
	case mesh.HistoryReset:
		return describeEpoch(s, e)
	case mesh.NodeNet, mesh.Online, mesh.Offline, mesh.AddressCursor, mesh.LoginGone, mesh.SettingGone, mesh.WebhookMoved, mesh.DeadLetterPut, mesh.DeadLetterGone,
		mesh.NodeFacts, mesh.PreAuthKeyUsed, mesh.APIKeyUsed, mesh.SessionUsed, mesh.ReceiptPut, mesh.ReceiptGone,
		mesh.RecheckPut, mesh.RecheckGone, mesh.RelayReported:
	}
	return "", "", nil
}

// describeEpoch describes lost changes. An epoch that began only as a precaution is not shown.
func describeEpoch(s *mesh.Snapshot, e mesh.HistoryReset) (kind, id string, shape []byte) {
	if e.Epoch.Loss.Rev != e.Epoch.Rev {
		return "", "", nil
	}
	return control.KindHistory, strconv.FormatInt(e.Epoch.Number, 10), shapeOf(s.Counters.Epoch.Number == e.Epoch.Number, func() any {
		lost := e.Epoch.Loss
		return map[string]any{"epoch": e.Epoch.Number, "lostFrom": revision(lost.From), "lostTo": revision(lost.To), "atLeast": lost.AtLeast}
	})
}

// describePolicy omits the text, which is available from the list of versions.
func describePolicy(s *mesh.Snapshot, v mesh.PolicyVersion) (kind, id string, shape []byte) {
	p, ok := s.Policy()
	return "policy", v.String(), shapeOf(ok && p.Version == v, func() any { return policyVersionShape(p) })
}

func describeSetting(s *mesh.Snapshot, v *mesh.Setting) (kind, id string, shape []byte) {
	key := v.Key
	if key == mesh.SettingNoise {
		return describeNoiseKey(s, v)
	}
	if key != mesh.SettingDNS && key != mesh.SettingRecords {
		return "", "", nil
	}
	_, ok := s.Settings.ByKey(key)
	return "dns", mesh.SettingDNS, shapeOf(ok, func() any { return dnsShape(s) })
}

// describeNoiseKey describes rotations. The first key of a server is not shown.
func describeNoiseKey(s *mesh.Snapshot, v *mesh.Setting) (kind, id string, shape []byte) {
	var next mesh.NoiseKey
	if err := json.Unmarshal([]byte(v.Value), &next); err != nil || next.Generation() == 1 {
		return "", "", nil
	}
	record := mesh.NoiseKeyOf(s)
	return "noisekey", "1", shapeOf(!record.Public.IsZero(), func() any {
		keys := map[string]any{"publicKey": record.Public.String(), "previousKey": nil}
		if p := record.Previous; p != nil {
			keys["previousKey"] = p.Public.String()
		}
		return keys
	})
}

func shapeOf(ok bool, shape func() any) []byte {
	if !ok {
		return nil
	}
	data, err := json.Marshal(shape())
	if err != nil {
		return nil
	}
	return data
}
