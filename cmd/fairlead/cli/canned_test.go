package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/fairlead-mesh/fairlead/internal/api/openapi"
)

// canned responds to each operation with one fixed value that fills every column. It
// tests only how values are displayed.
type canned struct{}

func cannedServer() http.Handler { return openapi.Handler(canned{}) }

func reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

func alice() openapi.User {
	return openapi.User{
		ID: "1", Name: "alice", CreatedAt: new(at("2026-02-01T08:00:00.123456Z")), NodeCount: 2,
		DisplayName: "Alice <Admin>", Email: "alice@example.com",
	}
}

func preAuthKeys() []openapi.PreAuthKey {
	return []openapi.PreAuthKey{
		{
			ID: "1", Key: "flp_b81KzQx0LmN4_***", User: new(alice()), Used: true, Expired: true,
			Uses: 1, LastUsed: new(at("2026-02-01T09:10:00Z")), LastUsedFrom: "198.51.100.7",
			Expiration: at("2026-02-01T10:00:00Z"), CreatedAt: at("2026-02-01T09:00:00Z"), ACLTags: []string{},
		},
		{
			ID: "12", Key: "flp_0000aaaaZZZZ_***", Description: "web servers", Reusable: true, Ephemeral: true,
			Expiration: at("2026-03-02T09:30:00Z"), CreatedAt: at("2026-03-01T09:30:00Z"), ACLTags: []string{"tag:server", "tag:web"},
		},
	}
}

func (canned) ListUsers(w http.ResponseWriter, _ *http.Request, params openapi.ListUsersParams) {
	users := []openapi.User{alice(), {ID: "10", Name: "bob", CreatedAt: new(at("2026-02-03T10:00:00+01:00"))}}
	if params.Name != nil && *params.Name != "alice" || params.ID != nil {
		users = []openapi.User{}
	}
	reply(w, openapi.UserList{Users: users})
}

func (canned) CreateUser(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.UserResult{User: alice()})
}

func (canned) ShowUser(w http.ResponseWriter, _ *http.Request, id string) {
	if id != "alice" {
		http.NotFound(w, nil)
		return
	}
	reply(w, openapi.UserResult{User: alice()})
}

func (canned) DeleteUser(w http.ResponseWriter, _ *http.Request, _ string, _ openapi.DeleteUserParams) {
	reply(w, openapi.UserDeletion{DeletedNodes: 2, TaggedNodes: []openapi.TaggedNode{{ID: "7", Name: "web-1", Tags: []string{"tag:web"}}}})
}

func (canned) SuspendUser(w http.ResponseWriter, _ *http.Request, _ string, _ openapi.SuspendUserParams) {
	u, at := alice(), time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	by := "admin"
	u.SuspendedAt, u.SuspendedBy = &at, &by
	reply(w, openapi.UserSuspension{User: u, TaggedNodes: []openapi.TaggedNode{{ID: "7", Name: "web-1", Tags: []string{"tag:web"}}}})
}

func (canned) RestoreUser(w http.ResponseWriter, _ *http.Request, _ string, _ openapi.RestoreUserParams) {
	reply(w, openapi.UserResult{User: alice()})
}

func (canned) RenameUser(w http.ResponseWriter, _ *http.Request, _, _ string, _ openapi.RenameUserParams) {
	reply(w, openapi.UserResult{User: alice()})
}

func (canned) SetUserRole(w http.ResponseWriter, r *http.Request, _ string, _ openapi.SetUserRoleParams) {
	var in openapi.UserRoleChange
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	u := alice()
	u.Role, u.AssignedRole = &in.Role, &in.Role
	reply(w, openapi.UserResult{User: u})
}

func (canned) LinkUser(w http.ResponseWriter, _ *http.Request, _ string, _ openapi.LinkUserParams) {
	linked := alice()
	linked.Provider, linked.ProviderID = "oidc", "https://id.example.com/realms/company/7c1e4b2a"
	reply(w, openapi.UserResult{User: linked})
}

func (canned) ApproveUser(w http.ResponseWriter, _ *http.Request, _ string, _ openapi.ApproveUserParams) {
	reply(w, openapi.UserResult{User: alice()})
}

func (canned) UnlinkUser(w http.ResponseWriter, _ *http.Request, _ string, _ openapi.UnlinkUserParams) {
	reply(w, openapi.UserResult{User: alice()})
}

func (canned) ListPreAuthKeys(w http.ResponseWriter, _ *http.Request, _ openapi.ListPreAuthKeysParams) {
	reply(w, openapi.PreAuthKeyList{PreAuthKeys: preAuthKeys()})
}

func (canned) CreatePreAuthKey(w http.ResponseWriter, _ *http.Request) {
	created := preAuthKeys()[1]
	created.Key = "flp_0000aaaaZZZZ_the-secret"
	reply(w, openapi.PreAuthKeyResult{PreAuthKey: created, Warnings: []string{"tag:mail is not defined in the policy's tagOwners"}})
}

func (canned) ExpirePreAuthKey(w http.ResponseWriter, _ *http.Request) { reply(w, openapi.Empty{}) }

func (canned) DeletePreAuthKey(w http.ResponseWriter, _ *http.Request, _ openapi.DeletePreAuthKeyParams) {
	reply(w, openapi.Empty{})
}

func (canned) ListAPIKeys(w http.ResponseWriter, _ *http.Request, _ openapi.ListAPIKeysParams) {
	reply(w, openapi.APIKeyList{APIKeys: []openapi.APIKey{
		{ID: "1", Prefix: "flk_7Qd0XhVb2mTa_***", Role: openapi.RoleOperator, Scopes: []string{"nodes", "routes:read"}, Expiration: at("2026-05-30T09:30:00Z"), CreatedAt: at("2026-03-01T09:30:00Z")},
		{
			ID: "2", Prefix: "flk_7Qd0ZZZZ0000_***", Role: openapi.RoleAdmin, Scopes: []string{}, Expiration: at("2026-02-28T00:00:00Z"), CreatedAt: at("2026-01-01T00:00:00Z"),
			LastSeen: new(at("2026-02-27T23:59:59Z")), LastUsedFrom: "198.51.100.7", Expired: true, Comment: "nightly backup",
		},
	}})
}

func (canned) CreateAPIKey(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.APIKeyResult{
		APIKey: "flk_7Qd0XhVb2mTa_the-secret", ID: "1", Prefix: "flk_7Qd0XhVb2mTa_***", Role: openapi.RoleAdmin, Scopes: []string{}, Expiration: at("2026-05-30T09:30:00Z"),
	})
}

func (canned) Whoami(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.Caller{
		Kind: "key", Name: "flk_7Qd0XhVb2mTa_***", Role: "read", Scopes: []string{"nodes"}, Expiration: new(at("2026-05-30T09:30:00Z")),
	})
}

func (canned) ExpireAPIKeys(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.APIKeyExpiry{Expired: []string{"flk_7Qd0XhVb2mTa_***", "flk_7Qd0ZZZZ0000_***"}})
}

func (canned) DeleteAPIKey(w http.ResponseWriter, _ *http.Request, _ string, _ openapi.DeleteAPIKeyParams) {
	reply(w, openapi.Empty{})
}

func (canned) InviteUser(w http.ResponseWriter, _ *http.Request, _ openapi.UserRef) {
	reply(w, openapi.InvitationResult{ID: "1", Link: "https://mesh.example.com/passkey/invite/fli_7Qd0XhVb2mTa_the-secret", Expiration: at("2026-03-08T09:30:00Z")})
}

func (canned) ListPasskeys(w http.ResponseWriter, _ *http.Request, _ openapi.ListPasskeysParams) {
	reply(w, openapi.PasskeyList{Passkeys: []openapi.Passkey{
		{ID: "1", User: alice(), Syncable: true, CreatedAt: at("2026-02-01T09:30:00Z"), LastUsed: new(at("2026-02-28T08:00:00Z"))},
		{ID: "2", User: alice(), CreatedAt: at("2026-02-02T09:30:00Z")},
	}})
}

func cannedReservation() openapi.Reservation {
	return openapi.Reservation{ID: "1", Name: "build-server", Hostname: "BUILD-SERVER", User: "alice", Tags: []string{}, Ipv4: "100.64.12.7", Ipv6: "fd7a:115c:a1e0::c07", CreatedAt: at("2026-03-01T09:30:00Z")}
}

func (canned) CreateReservation(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.ReservationResult{Reservation: cannedReservation()})
}

func (canned) ListReservations(w http.ResponseWriter, _ *http.Request, _ openapi.ListReservationsParams) {
	reply(w, openapi.ReservationList{Reservations: []openapi.Reservation{cannedReservation(), {ID: "2", Name: "db-1", Hostname: "db-1", Tags: []string{"tag:db"}, CreatedAt: at("2026-03-01T09:31:00Z")}}})
}

func (canned) DeleteReservation(w http.ResponseWriter, _ *http.Request, _ string) {
	reply(w, openapi.Empty{})
}

func (canned) DeletePasskey(w http.ResponseWriter, _ *http.Request, _ string) {
	reply(w, openapi.Empty{})
}

func nodes() []openapi.Node {
	laptop := openapi.Node{
		ID: "1", Name: "Alices-Laptop", GivenName: "alices-laptop", Hostname: "Alices-Laptop", User: new(alice()), CreatedBy: new(alice()),
		MachineKey: "mkey:01", NodeKey: "nodekey:02", DiscoKey: "discokey:03", IPAddresses: []string{"100.64.0.1", "fd7a:115c:a1e0::1"},
		OS: "linux", Arch: "amd64", ClientVersion: "1.92.3", Online: true, LastSeen: at("2026-03-01T09:29:00Z"),
		RegisterMethod: openapi.RegisterMethodAuthKey, PreAuthKey: new(preAuthKeys()[0]),
		CreatedAt: at("2026-02-01T09:10:00Z"), UpdatedAt: at("2026-02-02T00:00:00Z"),
		ApprovedRoutes: []string{}, AvailableRoutes: []string{}, SubnetRoutes: []string{}, RoutePreferences: map[string]int{},
		Tags: []string{}, ForcedTags: []string{}, ValidTags: []string{}, InvalidTags: []string{},
	}
	server := laptop
	server.ID, server.GivenName, server.Online, server.Expired, server.Expiry = "2", "web-1", false, true, new(at("2026-02-28T00:00:00Z"))
	server.User = &openapi.User{ID: "2147455555", Name: "tagged-devices"}
	server.Tags = []string{"tag:server", "tag:web"}
	return []openapi.Node{laptop, server}
}

func (canned) ListNodes(w http.ResponseWriter, _ *http.Request, _ openapi.ListNodesParams) {
	reply(w, openapi.NodeList{Nodes: nodes()})
}

func (canned) ShowNode(w http.ResponseWriter, _ *http.Request, _ string) {
	node, near, far := nodes()[1], openapi.RelayRegion{ID: 900, Code: "fra", Name: "Frankfurt"}, openapi.RelayRegion{ID: 12}
	node.Host = &openapi.NodeHost{
		OS: "linux", OSVersion: "6.12.0", Distro: "debian", DistroVersion: "13", Arch: "amd64", ClientVersion: "1.92.3",
		Endpoints: []string{"198.51.100.7:41641", "192.168.7.3:41641"}, Relay: &near,
		Latencies: []openapi.RelayLatency{{Region: far, Milliseconds: 80}, {Region: near, Milliseconds: 12.5}},
		Nat:       openapi.NodeNAT{UDP: new(true), MappingVaries: new(false), PortMapping: []string{"pcp", "upnp"}},
		Health: []openapi.HealthMessage{{
			Source: "warn-ip-forwarding-off", Message: "IP forwarding is off", Since: at("2026-03-01T09:00:00Z"),
		}},
		ReportedAt: new(at("2026-03-01T09:29:00Z")),
	}
	reply(w, openapi.NodeResult{Node: node})
}

func oneNode(w http.ResponseWriter) { reply(w, openapi.NodeResult{Node: nodes()[1]}) }

func (canned) RenameNode(w http.ResponseWriter, _ *http.Request, _, _ string, _ openapi.RenameNodeParams) {
	oneNode(w)
}

func (canned) ResetNodeName(w http.ResponseWriter, _ *http.Request, _ string, _ openapi.ResetNodeNameParams) {
	oneNode(w)
}

func (canned) TagNode(w http.ResponseWriter, _ *http.Request, _ string, _ openapi.TagNodeParams) {
	oneNode(w)
}

func (canned) SetNodeAddresses(w http.ResponseWriter, _ *http.Request, _ string, _ openapi.SetNodeAddressesParams) {
	oneNode(w)
}

func (canned) SetNodeNote(w http.ResponseWriter, r *http.Request, _ string, _ openapi.SetNodeNoteParams) {
	var in openapi.SetNodeNoteJSONBody
	node := nodes()[1]
	if err := json.NewDecoder(r.Body).Decode(&in); err == nil && *in.Text != "" {
		node.Note = &openapi.NodeNote{Text: *in.Text, Author: "local:root", Time: node.CreatedAt}
	}
	reply(w, openapi.NodeResult{Node: node})
}

func (canned) SetNodeApproval(w http.ResponseWriter, r *http.Request, _ string, _ openapi.SetNodeApprovalParams) {
	var in openapi.SetNodeApprovalJSONBody
	node := nodes()[1]
	if err := json.NewDecoder(r.Body).Decode(&in); err == nil {
		node.NeedsApproval = !*in.Approved
	}
	reply(w, openapi.NodeResult{Node: node})
}

func (canned) DeleteNode(w http.ResponseWriter, _ *http.Request, _ string, _ openapi.DeleteNodeParams) {
	reply(w, openapi.Empty{})
}

func (canned) MoveNode(w http.ResponseWriter, _ *http.Request, _ string, _ openapi.MoveNodeParams) {
	oneNode(w)
}

func (canned) ExpireNode(w http.ResponseWriter, r *http.Request, _ string, _ openapi.ExpireNodeParams) {
	var change openapi.NodeExpiryChange
	if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	node := nodes()[1]
	node.Expiry = change.Expiry
	node.Expired = node.Expiry != nil && node.Expiry.Before(at("2026-03-01T09:30:00Z"))
	reply(w, openapi.NodeResult{Node: node})
}

func (canned) ExpireNodes(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.NodesExpiry{Expired: 12, AlreadyExpired: 1})
}

func login() openapi.Login {
	return openapi.Login{ID: "3", MachineKey: "mkey:01", NodeKey: "nodekey:02", User: new(alice()), Until: at("2026-03-01T09:45:00Z")}
}

func (canned) ListPendingLogins(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.PendingLoginList{Logins: []openapi.PendingLogin{
		{Code: "7K3M-9QXD", MachineKey: "mkey:03", NodeKey: "nodekey:04", Hostname: "Bobs Phone", OS: "iOS", Address: "192.0.2.7", Tags: []string{"tag:phone", "tag:web"}, Since: at("2026-03-01T09:28:00Z")},
		{Code: "0123-4567", MachineKey: "mkey:05", NodeKey: "nodekey:06", Hostname: "tv", Address: "2001:db8::9", Tags: []string{}, Since: at("2026-03-01T09:27:00Z")},
	}})
}

func (canned) ApproveLogin(w http.ResponseWriter, r *http.Request) {
	approval := openapi.LoginApproval{Login: login()}
	if body, _ := io.ReadAll(r.Body); !strings.Contains(string(body), "https://") { // a device identified by its link is not connected, so there is no node yet
		approval.Node = &nodes()[0]
	}
	reply(w, approval)
}

func (canned) RejectLogin(w http.ResponseWriter, _ *http.Request) { reply(w, openapi.Empty{}) }

func sshSession() openapi.SSHSession {
	return openapi.SSHSession{SourceID: "1", SourceName: "alices-laptop", SourceUser: "alice", TargetID: "2", TargetName: "web-1", SSHUser: "root"}
}

func (canned) ListPendingSSH(w http.ResponseWriter, _ *http.Request) {
	byTag := openapi.SSHSession{SourceID: "7", SourceName: "ci-7", SourceUser: "tagged-devices", TargetID: "2", TargetName: "web-1", SSHUser: "deploy"}
	reply(w, openapi.PendingSSHList{Sessions: []openapi.PendingSSH{
		{Code: "7K3M-9QXD", Session: sshSession(), Since: at("2026-03-01T09:28:00Z")},
		{Code: "0123-4567", Session: byTag, Since: at("2026-03-01T09:27:00Z")},
	}})
}

func (canned) ApproveSSH(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.SSHApproval{Grant: openapi.SSHGrant{
		ID: "4", Session: sshSession(), By: "local", GrantedAt: at("2026-03-01T09:30:00Z"), Until: at("2026-03-01T21:30:00Z"),
	}})
}

func (canned) RejectSSH(w http.ResponseWriter, _ *http.Request) { reply(w, openapi.Empty{}) }

func (canned) RegisterLogin(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) }
func (canned) BackfillNodeIPs(w http.ResponseWriter, _ *http.Request, _ openapi.BackfillNodeIPsParams) {
	reply(w, openapi.NodeIPChanges{Changes: []string{}})
}

func (canned) RegisterNode(w http.ResponseWriter, _ *http.Request, _ openapi.RegisterNodeParams) {
	http.NotFound(w, nil)
}
func (canned) EnrolMachine(w http.ResponseWriter, _ *http.Request) { oneNode(w) }

func (canned) OpenapiDocument(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "openapi: 3.0.3\ninfo:\n  title: Fairlead\n")
}
func (canned) DocsPage(w http.ResponseWriter, _ *http.Request)       { http.NotFound(w, nil) }
func (canned) DatabaseHealth(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) }

func (canned) Health(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.Health{Status: openapi.HealthStatusPass, Checks: map[string][]openapi.HealthCheck{
		"database": {{Status: openapi.HealthCheckStatusPass}},
		"relay":    {{Status: openapi.HealthCheckStatusWarn, Output: "no relay is configured; set derp.server.enabled"}},
	}})
}

func (c canned) Ready(w http.ResponseWriter, r *http.Request, _ openapi.ReadyParams) { c.Health(w, r) }

func (canned) ShowServer(w http.ResponseWriter, _ *http.Request) {
	since, middle := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC), 18.4
	reply(w, openapi.ServerState{
		URL: "https://mesh.example.com", Version: openapi.Version{ProductVersion: "0.1.1"}, Replica: "r1", StartedAt: since, Database: openapi.DatabasePostgres,
		Checks: []openapi.ServerCheck{
			{Part: "database", Status: openapi.ServerCheckPass, Since: since, Output: []string{}},
			{Part: "policy", Status: openapi.ServerCheckWarn, Since: since, Output: []string{"test on line 21: alice should reach tag:db:5432"}},
		},
		Relays: []openapi.ServerRelay{
			{Region: openapi.RelayRegion{ID: 900, Code: "fra", Name: "Frankfurt"}, Embedded: true, Homes: 12, Measured: 14, MedianMilliseconds: &middle},
			{Region: openapi.RelayRegion{ID: 901, Code: "nyc", Name: "New York"}},
		},
		Replicas: []openapi.ServerReplica{
			{ID: "r1", Version: "0.1.1", Revision: "4711", Nodes: 12, AgeMillis: 840},
			{ID: "r2", Version: "0.1.1", Revision: "4711", Draining: true, AgeMillis: 840},
		},
	})
}

func (canned) ShowCluster(w http.ResponseWriter, _ *http.Request) {
	since, timeline := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC), int64(3)
	reply(w, openapi.Cluster{
		Replica: "r1",
		Replicas: []openapi.ClusterReplica{
			{Name: "mesh-1", ID: "r1", State: openapi.ReplicaActive, Version: "0.1.1", Revision: "4711", Nodes: 12, URL: "http://10.0.0.11:8080", StartedAt: &since, ReportedAt: since},
			{Name: "mesh-2", ID: "r2", State: openapi.ReplicaDraining, Version: "0.1.1", Revision: "4700", LagMillis: 7500, ReportedAt: since},
			{Name: "mesh-3", ID: "r3", State: openapi.ReplicaStopped, Version: "0.1.0", Revision: "4600", StartedAt: &since, ReportedAt: since.Add(time.Hour)},
		},
		Database: openapi.ClusterDatabase{
			Engine: openapi.EnginePostgres, Version: "17.2", Host: "db-1:5432", Role: openapi.DatabasePrimary, Timeline: &timeline, SynchronousCommit: "on", SynchronousStandbyNames: "*", StandbysVisible: true,
			Standbys: []openapi.ClusterStandby{
				{Name: "standby1", Address: "10.0.0.22", State: "streaming", Sync: "sync", LagBytes: 5000, LagMillis: 2},
				{Name: "standby2", State: "catchup", Sync: "async", LagBytes: 3 << 30},
			},
		},
		Relays: relays(), Problems: []string{}, Notes: []string{"the replicas run different versions, as during an upgrade"},
	})
}

func (canned) DrainReplica(w http.ResponseWriter, r *http.Request) {
	var in openapi.DrainRequest
	_ = json.NewDecoder(r.Body).Decode(&in)
	reply(w, openapi.Drain{Replica: "r2", Draining: in.Draining})
}

func noiseKey() openapi.NoiseKeyStatus {
	return openapi.NoiseKeyStatus{
		PublicKey: "mkey:02", PreviousKey: new("mkey:01"), RotatedAt: new(at("2026-03-01T09:30:00Z")), Replicas: []string{},
		Nodes: []openapi.NoiseKeyNode{{ID: "7", Name: "laptop", Online: true, LastSeen: new(at("2026-03-01T09:29:00Z"))}, {ID: "9", Name: "tv"}},
	}
}

func (canned) ShowNoiseKey(w http.ResponseWriter, _ *http.Request) { reply(w, noiseKey()) }

func (canned) RotateNoiseKey(w http.ResponseWriter, _ *http.Request) { reply(w, noiseKey()) }

func (canned) RetireNoiseKey(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.NoiseKeyStatus{PublicKey: "mkey:02", Nodes: []openapi.NoiseKeyNode{}, Replicas: []string{}})
}

func (canned) Version(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.Version{
		Version: "0.28.0", Product: "Fairlead", ProductVersion: "0.1.1", Commit: "4d5e6f70", BuildTime: "2026-03-02T08:00:00Z",
		Go: openapi.GoVersion{Version: "go1.26.9", OS: "linux", Arch: "amd64"},
	})
}

func (canned) DebugProfile(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.Profiles{Goroutines: "goroutine profile: total 41\n", Heap: "heap profile: 12\n"})
}

func (canned) DebugDigest(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.Digest{Replica: "r1", Revision: "4711", Digest: "9b74c989", Replicas: []openapi.ReplicaDigest{
		{ID: "r1", Version: "0.1.1", Revision: "4710", DigestRevision: "4700", Digest: "1f3870be", AgeMillis: 840},
		{ID: "r2", Version: "0.1.1", Revision: "4711", DigestRevision: "4700", Digest: "1f3870be", AgeMillis: 1900},
	}})
}

func cannedSession() openapi.Session {
	return openapi.Session{
		ID: "1", Prefix: "fls_7Qd0XhVb2mTa_***", User: openapi.User{ID: "1", Name: "alice"}, Client: openapi.SessionCLI, Description: "laptop", Current: true,
		Expiration: at("2026-03-02T09:30:00Z"), CreatedAt: at("2026-03-01T09:30:00Z"), LastSeen: new(at("2026-03-01T12:00:00Z")), LastUsedFrom: "198.51.100.7",
	}
}

func (canned) ListSessions(w http.ResponseWriter, _ *http.Request, _ openapi.ListSessionsParams) {
	reply(w, openapi.SessionList{Sessions: []openapi.Session{cannedSession()}})
}

func (canned) ListMySessions(w http.ResponseWriter, _ *http.Request, _ openapi.ListMySessionsParams) {
	reply(w, openapi.SessionList{Sessions: []openapi.Session{cannedSession()}})
}

func (canned) RevokeSession(w http.ResponseWriter, _ *http.Request, _ string) {
	reply(w, openapi.Empty{})
}

func (canned) RevokeMySession(w http.ResponseWriter, _ *http.Request, _ string) {
	reply(w, openapi.Empty{})
}

func (canned) CreateSession(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.SessionResult{Token: "fls_7Qd0XhVb2mTa_the-secret", Session: cannedSession()})
}

func (canned) ShowSignIn(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.SignIn{URL: "https://mesh.example.com/oidc/session", Providers: []openapi.SignInProvider{{ID: "0", Name: "id.example.com"}}})
}

func (canned) StartDeviceSignIn(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.DeviceSignIn{DeviceCode: "the-device", UserCode: "7K3M-9QXD", URL: "https://mesh.example.com/oidc/device/the-device", ExpiresIn: 600, Interval: 1})
}

func (canned) PollDeviceSignIn(w http.ResponseWriter, _ *http.Request) {
	reply(w, openapi.DeviceSignInResult{Token: "fls_7Qd0XhVb2mTa_the-secret", Session: new(cannedSession())})
}
