// Package meshgen generates random but valid values and events for tests of the packages
// that handle them. It is not for production code.
package meshgen

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"go4.org/mem"
	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// Start is the time at which generated histories begin.
const Start mesh.Time = 1_800_000_000_000_000

// MachineKey returns the n-th machine key.
func MachineKey(n uint64) key.MachinePublic { return key.MachinePublicFromRaw32(raw("machine", n)) }

// NodeKey returns the n-th node key.
func NodeKey(n uint64) key.NodePublic { return key.NodePublicFromRaw32(raw("node", n)) }

// DiscoKey returns the n-th disco key.
func DiscoKey(n uint64) key.DiscoPublic { return key.DiscoPublicFromRaw32(raw("disco", n)) }

func raw(kind string, n uint64) mem.RO {
	b := make([]byte, 32)
	copy(b, kind)
	binary.BigEndian.PutUint64(b[24:], n+1)
	return mem.B(b)
}

// User returns a plausible user with this id.
func User(id mesh.UserID) *mesh.User {
	u := &mesh.User{ID: id, Name: fmt.Sprintf("user%d", id), Email: fmt.Sprintf("User%d@example.com", id/2), CreatedAt: Start}
	if id%3 == 0 {
		u.Provider, u.ProviderID = mesh.ProviderOIDC, fmt.Sprintf("https://id.example.com/Subject%d", id)
	}
	return u
}

// Node returns a plausible node with this id and owner.
func Node(id mesh.NodeID, owner mesh.UserID) *mesh.Node {
	n := uint64(id)
	return &mesh.Node{
		ID: id, Owner: owner, MachineKey: MachineKey(n), NodeKey: NodeKey(n),
		Hostname: fmt.Sprintf("host %d", id), Name: fmt.Sprintf("host-%d", id),
		IPv4:   netip.AddrFrom4([4]byte{100, 64 + byte(id>>16), byte(id >> 8), byte(id)}),
		IPv6:   mesh.AddrAt(netip.MustParsePrefix("fd7a:115c:a1e0::/48"), n),
		Method: mesh.RegisterAuthKey, OS: "linux", Arch: "amd64", ClientVersion: "1.102.5",
		CreatedAt: Start, UpdatedAt: Start,
	}
}

// Net returns how peers reach a node, different for each n.
func Net(n int) mesh.Net {
	return mesh.Net{
		Endpoints: []netip.AddrPort{
			netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), uint16(1+n%60000)),
			netip.MustParseAddrPort("[2001:db8::1]:41641"),
		},
		DiscoKey: DiscoKey(uint64(n)), HomeRelay: 1 + n%20,
	}
}

// Event generates an event of any kind that may follow s. Ids stay below 1000, so that
// objects are replaced and removed as well as added.
//
// long: it has a case for each kind of event
func Event(r *rand.Rand, s *mesh.Snapshot) mesh.Event {
	at := Start + mesh.Time(s.Rev)*1_000_000
	if s.Users.Len() == 0 {
		return mesh.UserPut{User: User(1)}
	}
	user := mesh.UserID(1 + r.IntN(12))
	node := mesh.NodeID(1 + r.IntN(300))
	keyID := mesh.KeyID(1 + r.IntN(40))
	pick := r.IntN(35)
	if _, ok := s.Nodes.Get(node); !ok && pick >= 7 && pick <= 10 {
		pick = 2 // nobody reports for a node that does not exist
	}
	switch pick {
	case 0:
		u := User(user)
		u.Name = fmt.Sprintf("User%d-%d", user, r.IntN(3))
		u.Email = fmt.Sprintf("user%d@example.com", user)
		if r.IntN(4) == 0 {
			u = u.Suspend(mesh.SuspendedByAdmin, at)
		}
		return mesh.UserPut{User: u}
	case 1:
		return mesh.UserGone{ID: user}
	case 2, 3, 4, 5:
		return mesh.NodePut{Node: randomNode(r, s, node, user, at)}
	case 6:
		return mesh.NodeGone{ID: node}
	case 7, 8:
		return mesh.NodeNet{ID: node, Net: Net(r.IntN(1000))}
	case 9:
		return mesh.Online{ID: node, Replica: "replica-a", Conn: r.Int64N(1 << 40), At: at}
	case 10:
		return mesh.Offline{ID: node, At: at}
	case 11:
		k := &mesh.PreAuthKey{ID: keyID, Prefix: fmt.Sprintf("preauth%05d", keyID), User: user, Expiry: at.Add(1e9), CreatedAt: at}
		k.Reusable, k.Used, k.Ephemeral = r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
		if r.IntN(2) == 0 {
			k.Tags = []string{"tag:web"}
		}
		binary.BigEndian.PutUint64(k.Hash[:], r.Uint64())
		return mesh.PreAuthKeyPut{Key: k}
	case 12:
		return mesh.PreAuthKeyGone{ID: keyID}
	case 13:
		k := &mesh.APIKey{ID: keyID, Prefix: fmt.Sprintf("apikey%06d", keyID), Access: access(keyID), Comment: []string{"", "backups"}[r.IntN(2)], Expiry: at.Add(1e9), CreatedAt: at}
		binary.BigEndian.PutUint64(k.Hash[:], r.Uint64())
		return mesh.APIKeyPut{Key: k}
	case 14:
		return mesh.APIKeyGone{ID: keyID}
	case 15:
		return mesh.LoginPut{Login: login(r, mesh.LoginID(keyID), user, at)}
	case 16:
		return mesh.LoginGone{ID: mesh.LoginID(keyID)}
	case 17:
		return mesh.SettingPut{Setting: setting(r, mesh.SettingID(1+keyID%5), at)}
	case 18:
		return mesh.SettingGone{ID: mesh.SettingID(1 + keyID%5)}
	case 19:
		return mesh.PolicyPut{Policy: policy(r, s, at)}
	case 20:
		return mesh.SSHGrantPut{Grant: sshGrant(r, mesh.SSHGrantID(keyID), at)}
	case 21:
		return mesh.SSHGrantGone{ID: mesh.SSHGrantID(keyID)}
	case 22:
		return webhookEvent(r, s, keyID, at)
	case 23:
		return observation(r, s, node, keyID, at)
	case 24:
		return mesh.ReceiptPut{Receipt: receipt(r, mesh.ReceiptID(keyID), at)}
	case 25:
		return mesh.ReceiptGone{ID: mesh.ReceiptID(keyID)}
	case 26, 27:
		return sessionEvent(r, s, mesh.SessionID(keyID), user, at)
	case 28, 29:
		return passkeyEvent(r, s, keyID, user, at)
	case 30:
		return groupEvent(r, mesh.GroupID(1+keyID%9), at)
	case 31:
		return recheckEvent(r, s, user, at)
	case 32:
		return reservationEvent(r, s, mesh.ReservationID(keyID), user, at)
	case 33:
		return relayEvent(r, s, mesh.RelayID(1+keyID%9), at)
	default:
		return mesh.AddressCursor{
			V4: netip.AddrFrom4([4]byte{100, 64, byte(r.IntN(256)), byte(r.IntN(256))}),
			V6: mesh.AddrAt(netip.MustParsePrefix("fd7a:115c:a1e0::/48"), r.Uint64()),
		}
	}
}

// observation generates what a replica observes of an existing node or key.
func observation(r *rand.Rand, s *mesh.Snapshot, node mesh.NodeID, id mesh.KeyID, at mesh.Time) mesh.Event {
	if _, ok := s.Nodes.Get(node); ok && r.IntN(3) == 0 {
		return mesh.NodeFacts{Facts: facts(r, node, at)}
	}
	for k := range s.PreAuthKeys.All() {
		if k.ID >= id && r.IntN(2) == 0 {
			return mesh.PreAuthKeyUsed{ID: k.ID, Use: mesh.PreAuthKeyUse{KeyUse: mesh.KeyUse{At: at, From: "192.0.2.7"}, Count: 1 + r.Int64N(9)}}
		}
	}
	for k := range s.APIKeys.All() {
		return mesh.APIKeyUsed{ID: k.ID, Use: mesh.KeyUse{At: at, From: "2001:db8::7"}}
	}
	return mesh.NodeGone{ID: node}
}

func facts(r *rand.Rand, node mesh.NodeID, at mesh.Time) *mesh.Facts {
	f := &mesh.Facts{Node: node, At: at}
	maybe := func() *bool { return []*bool{nil, new(false), new(true)}[r.IntN(3)] }
	f.NAT = mesh.NAT{UDP: maybe(), IPv6: maybe(), Varies: maybe(), PortMapped: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		f.PortMapping = []string{"pcp", "upnp"}[r.IntN(2):]
	}
	for region := range r.IntN(4) {
		f.Latencies = append(f.Latencies, mesh.Latency{Region: 1 + region, Micros: r.Int64N(1e6)})
	}
	if r.IntN(2) == 0 {
		f.Warnings = []mesh.Warning{{Source: "router", Text: "ïptables", Since: at}}
	}
	return f
}

func login(r *rand.Rand, id mesh.LoginID, user mesh.UserID, at mesh.Time) *mesh.Login {
	return &mesh.Login{
		ID: id, MachineKey: MachineKey(uint64(id)), NodeKey: NodeKey(1_000_000 + uint64(id)),
		User: user, Rejected: []string{"", "not ours"}[r.IntN(2)], Until: at.Add(1e9),
		Method: []mesh.RegisterMethod{"", mesh.RegisterOIDC}[r.IntN(2)], Expiry: at.Add(2e9),
	}
}

func sessionEvent(r *rand.Rand, s *mesh.Snapshot, id mesh.SessionID, user mesh.UserID, at mesh.Time) mesh.Event {
	_, ok := s.Users.Get(user) // only users have sessions
	switch pick := r.IntN(3); {
	case pick == 0 && ok:
		return mesh.SessionPut{Session: session(r, id, user, at)}
	case pick == 1:
		for v := range s.Sessions.All() {
			return mesh.SessionUsed{ID: v.ID, Use: mesh.KeyUse{At: at, From: "2001:db8::8"}}
		}
	}
	return mesh.SessionGone{ID: id}
}

func groupEvent(r *rand.Rand, id mesh.GroupID, at mesh.Time) mesh.Event {
	if r.IntN(3) == 0 {
		return mesh.GroupGone{ID: id}
	}
	return mesh.GroupPut{Group: group(r, id, at)}
}

func recheckEvent(r *rand.Rand, s *mesh.Snapshot, user mesh.UserID, at mesh.Time) mesh.Event {
	if _, ok := s.Users.Get(user); !ok || r.IntN(3) == 0 { // only users have rechecks
		return mesh.RecheckGone{ID: user}
	}
	return mesh.RecheckPut{Recheck: &mesh.Recheck{
		ID: user, Issuer: "https://id.example/ä", Token: fmt.Sprintf("sealed%d", r.IntN(9)), Due: at.Add(1e9), Claim: []string{"", "claim"}[r.IntN(2)], ClaimedAt: at,
		Doubt: r.IntN(2) == 0, Refused: r.IntN(2) == 0, Cause: []mesh.SuspensionSource{"", mesh.SuspendedByLogout}[r.IntN(2)], ConfirmedAt: at,
	}}
}

func group(r *rand.Rand, id mesh.GroupID, at mesh.Time) *mesh.Group {
	g := &mesh.Group{ID: id, Name: fmt.Sprintf("group-%d", id), DisplayName: fmt.Sprintf("Gröup %d", id), ExternalID: fmt.Sprintf("ext,%d", id), CreatedAt: at}
	for user := range mesh.UserID(r.IntN(4)) {
		g.Members = append(g.Members, mesh.Member{User: user + 1})
	}
	return g
}

func session(r *rand.Rand, id mesh.SessionID, user mesh.UserID, at mesh.Time) *mesh.Session {
	v := &mesh.Session{
		ID: id, Prefix: fmt.Sprintf("session%05d", id), User: user, Client: []mesh.SessionClient{mesh.SessionConsole, mesh.SessionCLI}[r.IntN(2)],
		Description: []string{"", "läptop"}[r.IntN(2)], Expiry: at.Add(1e9), CreatedAt: at,
	}
	binary.BigEndian.PutUint64(v.Hash[:], r.Uint64())
	return v
}

func setting(r *rand.Rand, id mesh.SettingID, at mesh.Time) *mesh.Setting {
	return &mesh.Setting{
		ID: id, Key: fmt.Sprintf("setting-%d", id), Value: fmt.Sprintf(`{"n":%d}`, r.IntN(9)),
		Source: "config", Pinned: r.IntN(2) == 0, UpdatedAt: at,
	}
}

// policy generates the next version, or the newest one as confirmed.
func policy(r *rand.Rand, s *mesh.Snapshot, at mesh.Time) *mesh.Policy {
	if newest, ok := s.Policy(); ok && r.IntN(2) == 0 {
		confirmed := *newest
		confirmed.ConfirmBy, confirmed.RevertTo = 0, 0
		return &confirmed
	}
	texts := Policies()
	return &mesh.Policy{
		Version: s.Counters.Policy + 1, Text: texts[r.IntN(len(texts))], Source: "api",
		Author: "key:bürö", Reason: "because", SavedAt: at, ConfirmBy: at.Add(1e9), RevertTo: s.Counters.Policy,
	}
}

func sshGrant(r *rand.Rand, id mesh.SSHGrantID, at mesh.Time) *mesh.SSHGrant {
	return &mesh.SSHGrant{
		ID: id, Src: mesh.NodeID(id), Dst: mesh.NodeID(2 * id), User: fmt.Sprintf("root%d", id%3),
		Rejected: r.IntN(2) == 0, By: "key:bürö", Until: at.Add(1e9), GrantedAt: at,
	}
}

func webhookEvent(r *rand.Rand, s *mesh.Snapshot, keyID mesh.KeyID, at mesh.Time) mesh.Event {
	hook, letter := mesh.WebhookID(1+keyID%5), mesh.DeadLetterID(keyID)
	_, there := s.Webhooks.Get(hook)
	switch pick := r.IntN(5); {
	case pick == 0:
		return mesh.WebhookGone{ID: hook}
	case pick == 1:
		return mesh.DeadLetterPut{Letter: DeadLetter(letter, hook, at)}
	case pick == 2:
		return mesh.DeadLetterGone{ID: letter}
	case pick == 3 && there: // nobody delivers to a webhook that does not exist
		return mesh.WebhookMoved{ID: hook, Progress: webhookProgress(r, s, at)}
	}
	return mesh.WebhookPut{Webhook: webhook(r, hook, at)}
}

func webhook(r *rand.Rand, id mesh.WebhookID, at mesh.Time) *mesh.Webhook {
	return &mesh.Webhook{
		ID: id, URL: fmt.Sprintf("https://receiver.example.com/%d", r.IntN(9)), Description: "büro", Events: [][]string{nil, {"node.*", "policyUpdate"}}[r.IntN(2)],
		Disabled: r.IntN(2) == 0, Salt: fmt.Sprintf("salt%d", r.IntN(9)), CreatedAt: Start, UpdatedAt: at,
	}
}

func relayEvent(r *rand.Rand, s *mesh.Snapshot, id mesh.RelayID, at mesh.Time) mesh.Event {
	_, there := s.Relays.Get(id)
	switch pick := r.IntN(4); {
	case pick == 0:
		return mesh.RelayGone{ID: id}
	case pick == 1 && there: // deleted relays cannot report
		return mesh.RelayReported{ID: id, Report: mesh.RelayReport{
			At: at, Clients: r.IntN(9), BytesReceived: r.Int64N(1 << 50), BytesSent: r.Int64N(9), Refused: r.Int64N(9), LatencyMicros: r.Int64N(9), Peers: r.IntN(9),
		}}
	}
	relay := &mesh.Relay{
		ID: id, Name: fmt.Sprintf("relay-%d", id), Prefix: fmt.Sprintf("relay%06d", id), Region: 901 + r.IntN(3), RegionCode: "ams", RegionName: "Zürich",
		Draining: r.IntN(2) == 0, CreatedAt: at,
	}
	binary.BigEndian.PutUint64(relay.Hash[:], r.Uint64())
	if r.IntN(2) == 0 {
		relay.Place = mesh.RelayPlace{
			URL: fmt.Sprintf("https://relay%d.example.com", r.IntN(9)), STUNPort: 3478, IPv4: netip.AddrFrom4([4]byte{192, 0, 2, byte(id)}), Key: NodeKey(uint64(id)), Version: "1.0", JoinedAt: at,
		}
	}
	return mesh.RelayPut{Relay: relay}
}

func webhookProgress(r *rand.Rand, s *mesh.Snapshot, at mesh.Time) mesh.WebhookProgress {
	return mesh.WebhookProgress{
		Rev: s.Rev, Index: r.IntN(9), Replica: "replica-a", Until: at.Add(1e9), Failures: r.IntN(3),
		LastSuccess: at, LastFailure: at.Add(1), LastAnswer: "503 Service Unavailable: <b>später</b>",
	}
}

// DeadLetter returns a plausible dead letter with this id.
func DeadLetter(id mesh.DeadLetterID, hook mesh.WebhookID, at mesh.Time) *mesh.DeadLetter {
	return &mesh.DeadLetter{
		ID: id, Webhook: hook, Rev: mesh.Revision(id), Index: 1, Event: "node.created", Attempts: 3, Answer: "kein Anschluß", At: at,
	}
}

func receipt(r *rand.Rand, id mesh.ReceiptID, at mesh.Time) *mesh.Receipt {
	m := &mesh.Receipt{
		ID: id, Owner: fmt.Sprintf("key:%d", r.IntN(3)), Rev: mesh.Revision(r.Int64N(1000)),
		Object: fmt.Sprint(id % 7), Answer: `{"name":"zürich"}`, Until: at.Add(1e9),
	}
	binary.BigEndian.PutUint64(m.Key[:], uint64(id))
	binary.BigEndian.PutUint64(m.Request[:], r.Uint64())
	return m
}

// History generates n batches of events that follow s, each settled, and returns them with
// the snapshot after the last.
func History(r *rand.Rand, s *mesh.Snapshot, n int) ([][]mesh.Event, *mesh.Snapshot) {
	var commands [][]mesh.Event
	for range n {
		evs := mesh.Settle(s, []mesh.Event{Event(r, s)})
		s, _ = mesh.Apply(s, s.Rev+1, evs...)
		commands = append(commands, evs)
	}
	return commands, s
}

// Policies returns policy texts that distinguish the users and tags of Event in many ways.
// Most let everyone reach everyone.
func Policies() []string {
	const owners = `"tagOwners": {"tag:web": [], "tag:one": []}, "groups": {"group:some": ["user1", "user2"], "group:more": ["user2", "user3"]},`
	return []string{
		"", `{}`, "{\"groups\": {}} // zürich\n", `{"randomizeClientPort": true}`, "", `{"acls": []}`, `{"acls": [{"action": "accept", "src": ["autogroup:member"], "dst": ["*:*"]}]}`,
		`{` + owners + `"acls": [{"action": "accept", "src": ["group:some", "group:dev"], "dst": ["tag:web:80,443", "user3:*"]},
			{"action": "accept", "src": ["tag:web"], "dst": ["tag:one:5432"]}]}`,
		`{` + owners + `"acls": [{"action": "accept", "src": ["autogroup:member"], "dst": ["autogroup:self:*"]},
			{"action": "accept", "src": ["group:more"], "dst": ["autogroup:tagged:22"]}],
			"ssh": [{"action": "accept", "src": ["autogroup:member"], "dst": ["autogroup:self"], "users": ["root"]},
			{"action": "check", "src": ["group:some", "tag:one"], "dst": ["tag:web"], "users": ["autogroup:nonroot"]}]}`,
		`{` + owners + `"grants": [{"src": ["autogroup:member"], "dst": ["10.1.2.0/24", "autogroup:internet"], "ip": ["*"], "via": ["tag:web"]},
			{"src": ["group:some"], "dst": ["*"], "ip": ["22"]}]}`,
		`{` + owners + `"grants": [{"src": ["*"], "dst": ["10.0.0.0/8", "autogroup:internet"], "ip": ["tcp:443"]},
			{"src": ["group:some", "100.64.0.0/24"], "dst": ["tag:one", "tag:web"], "ip": ["gre:*"], "app": {"example.com/cap": [{"a": 1}], "tailscale.com/cap/relay": []}},
			{"src": ["user1"], "dst": ["autogroup:self"], "ip": ["igmp:*"], "app": {"tailscale.com/cap/drive": [{"shares": ["*"], "access": "rw"}]}}],
			"nodeAttrs": [{"target": ["group:more"], "attr": ["example.com/attr"]}], "randomizeClientPort": true}`,
	}
}

// randomNode generates a node.
func randomNode(r *rand.Rand, s *mesh.Snapshot, node mesh.NodeID, user mesh.UserID, at mesh.Time) *mesh.Node {
	n := Node(node, user)
	if _, ok := s.Users.Get(user); !ok || r.IntN(4) == 0 {
		n.Owner, n.CreatedBy, n.Tags = 0, user, []string{"tag:web", "tag:zürich"}[:1+r.IntN(2)]
	}
	if r.IntN(3) == 0 {
		n.RoutableIPs = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("::/0")}
		if r.IntN(2) == 0 {
			n.Routes = n.RoutableIPs[r.IntN(2):]
		}
		for _, p := range n.RoutableIPs {
			n.AllRoutes = append(n.AllRoutes, mesh.Route{
				ID: s.Counters.Route + mesh.RouteID(len(n.AllRoutes)+1), Prefix: p, Enabled: slices.Contains(n.Routes, p), ApprovedBy: mesh.PolicyVersion(s.Rev % 3), Preference: r.IntN(3),
			})
		}
		n.Unhealthy = r.IntN(4) == 0
	}
	if old, ok := s.Nodes.Get(node); ok {
		n.Primary = old.Primary
	}
	n.UpdatedAt, n.Expiry, n.Ephemeral, n.KeyExpired = at, at.Add(1), r.IntN(2) == 0, r.IntN(4) == 0
	n.Host, n.CapVersion, n.Renamed = fmt.Sprintf(`{"Hostname":"höst %d","OS":"linux"}`, r.IntN(3)), 106+r.IntN(40), r.IntN(2) == 0
	if r.IntN(3) == 0 {
		n.ExpiryNotice = n.Expiry
	}
	n.NodeKey, n.PreAuthKey = NodeKey(uint64(node)*1000+uint64(r.IntN(3))), mesh.KeyID(s.Rev%40)
	if r.IntN(3) == 0 {
		n.Note = mesh.Note{Text: "rack 7,\nZürich", Author: "local:root", At: at}
	}
	if n.NeedsApproval = r.IntN(8) == 0; n.NeedsApproval {
		n.Routes = nil
	}
	return n
}

func access(id mesh.KeyID) mesh.Access {
	a := mesh.Access{Role: mesh.Roles()[int(id)%len(mesh.Roles())]}
	if id%2 == 0 {
		a.Scopes = []string{"nodes", "users:read"}
	}
	return a
}

// passkeyEvent generates an event about a passkey or an invitation.
func passkeyEvent(r *rand.Rand, s *mesh.Snapshot, keyID mesh.KeyID, user mesh.UserID, at mesh.Time) mesh.Event {
	if r.IntN(2) == 0 {
		return invitationEvent(r, s, mesh.InvitationID(keyID), user, at)
	}
	id := mesh.PasskeyID(keyID)
	if _, ok := s.Passkeys.Get(id); ok && r.IntN(2) == 0 {
		return mesh.PasskeyGone{ID: id}
	}
	return mesh.PasskeyPut{Passkey: &mesh.Passkey{
		ID: id, User: user, Credential: fmt.Sprintf("credential-%d", id), PublicKey: "pQECAyYg", Syncable: r.IntN(2) == 0,
		CreatedAt: at, LastUse: at.Add(1e9), Uses: r.Int64N(3),
	}}
}

func reservationEvent(r *rand.Rand, s *mesh.Snapshot, id mesh.ReservationID, user mesh.UserID, at mesh.Time) mesh.Event {
	if _, ok := s.Reservations.Get(id); ok && r.IntN(2) == 0 {
		return mesh.ReservationGone{ID: id}
	}
	v := &mesh.Reservation{ID: id, Name: fmt.Sprintf("reserved-%d", id), Hostname: "Reserved", User: user, CreatedAt: at, IPv4: mesh.AddrAt(netip.MustParsePrefix("100.127.0.0/16"), uint64(id))}
	if r.IntN(2) == 0 {
		v.User, v.Tags = 0, []string{"tag:web"}
		v.IPv6 = mesh.AddrAt(netip.MustParsePrefix("fd7a:115c:a1e0:7777::/64"), uint64(id))
	}
	return mesh.ReservationPut{Reservation: v}
}

func invitationEvent(r *rand.Rand, s *mesh.Snapshot, id mesh.InvitationID, user mesh.UserID, at mesh.Time) mesh.Event {
	if _, ok := s.Invitations.Get(id); ok && r.IntN(2) == 0 {
		return mesh.InvitationGone{ID: id}
	}
	i := &mesh.Invitation{ID: id, Prefix: fmt.Sprintf("invite%06d", id), User: user, Recovery: r.IntN(2) == 0, CreatedAt: at}
	if !i.Recovery {
		i.Expiry = at.Add(1e9)
	}
	binary.BigEndian.PutUint64(i.Hash[:], r.Uint64())
	return mesh.InvitationPut{Invitation: i}
}
