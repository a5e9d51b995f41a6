package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"reflect"
	"slices"

	"tailscale.com/types/key"

	"github.com/fairlead-mesh/fairlead/internal/ledger"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
	"github.com/fairlead-mesh/fairlead/internal/policy/explain"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

// Import is a whole mesh that was read from another server.
type Import struct {
	Users       []*mesh.User
	Nodes       []ImportedNode
	PreAuthKeys []*mesh.PreAuthKey
	APIKeys     []*mesh.APIKey
	// Policy is the text of the policy; empty means none. If PolicyElsewhere, it is in a file of the new server.
	Policy          string
	PolicyElsewhere bool
	// ProviderGroups says that people can sign in, so that the policy may use groups that no user has yet.
	ProviderGroups bool
	// Noise is the key by which clients know the server.
	Noise key.MachinePublic
	// KeepWayBack keeps the hashes of the other server when keys are used, until CloseWayBack.
	KeepWayBack bool
}

// ImportedNode is a node of another server.
type ImportedNode struct {
	*mesh.Node
	Host     Host
	Approved []netip.Prefix // routes
	// AskedTags lists tags that count if the policy lets the owner assign them.
	AskedTags []string
	Net       mesh.Net
	LastSeen  mesh.Time
}

// importRecord is the value of mesh.SettingImport: what the last import left behind.
type importRecord struct {
	At       mesh.Time     `json:"at"`
	Counters mesh.Counters `json:"counters"`
	// Access is a hash of the users and keys, so that a repeated import does not undo what
	// an administrator has decided since.
	Access string `json:"access"`
	// WayBack means that used keys keep the hashes of the other server.
	WayBack bool `json:"wayBack,omitempty"`
}

// lastImport returns the record of the last import, if there was one.
func lastImport(w *policy.World) (last importRecord, ok bool, err error) {
	v, ok := w.Settings.ByKey(mesh.SettingImport)
	if !ok {
		return last, false, nil
	}
	if err := json.Unmarshal([]byte(v.Value), &last); err != nil {
		return last, true, fmt.Errorf("the record of the last import is invalid: %w", err)
	}
	return last, true, nil
}

func wayBackOpen(w *policy.World) bool {
	last, _, err := lastImport(w)
	return err == nil && last.WayBack
}

// CloseWayBack forgets the hashes of another server of all keys that have been used here, and returns how many. From now on,
// keys lose them when they are first used.
func CloseWayBack(ctx context.Context, l *ledger.Ledger, a mesh.Actor) (forgotten int, err error) {
	_, err = l.Commit(ctx, a, func(w *policy.World, now mesh.Time) (evs []mesh.Event, err error) {
		forgotten = 0
		last, ok, err := lastImport(w)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			return nil, refuse(Conflict, "", "nothing was imported into this database")
		case !last.WayBack:
			return nil, refuse(Conflict, "", "the way back is not open: use --keep-way-back with the import to open it")
		}
		for k := range w.PreAuthKeys.All() {
			if used := *k; k.Bcrypt != "" && k.Hash != (mesh.Secret{}) {
				used.Bcrypt = ""
				evs = append(evs, mesh.PreAuthKeyPut{Key: &used})
			}
		}
		for k := range w.APIKeys.All() {
			if used := *k; k.Bcrypt != "" && k.Hash != (mesh.Secret{}) {
				used.Bcrypt = ""
				evs = append(evs, mesh.APIKeyPut{Key: &used})
			}
		}
		forgotten, last.WayBack = len(evs), false
		record, err := json.Marshal(last)
		if err != nil {
			return nil, err
		}
		return append(evs, w.SettingPutFor(mesh.SettingImport, string(record), "import", false, now)...), nil
	})
	return forgotten, err
}

// accessOf returns a hash of users and keys, without what changes when a key is used.
func accessOf(users iter.Seq[*mesh.User], preAuth iter.Seq[*mesh.PreAuthKey], keys iter.Seq[*mesh.APIKey]) (string, error) {
	var all struct {
		Users   []*mesh.User
		PreAuth []mesh.PreAuthKey
		Keys    []mesh.APIKey
	}
	all.Users = slices.SortedFunc(users, func(a, b *mesh.User) int { return cmp.Compare(a.ID, b.ID) })
	for k := range preAuth {
		plain := *k
		plain.Hash, plain.Bcrypt = mesh.Secret{}, ""
		all.PreAuth = append(all.PreAuth, plain)
	}
	for k := range keys {
		plain := *k
		plain.Hash, plain.Bcrypt = mesh.Secret{}, ""
		all.Keys = append(all.Keys, plain)
	}
	slices.SortFunc(all.PreAuth, func(a, b mesh.PreAuthKey) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(all.Keys, func(a, b mesh.APIKey) int { return cmp.Compare(a.ID, b.ID) })
	text, err := json.Marshal(all)
	return fmt.Sprintf("%x", sha256.Sum256(text)), err
}

// Imported describes what an import changed.
type Imported struct{ Added, Changed, Deleted int }

// ImportMesh makes the mesh equal to an import in one commit. It refuses a mesh that contains anything but earlier
// imports, or that nodes have used since.
func ImportMesh(ctx context.Context, l *ledger.Ledger, a mesh.Actor, in Import) (done Imported, err error) {
	_, err = l.Commit(ctx, a, func(w *policy.World, now mesh.Time) (evs []mesh.Event, err error) {
		if err := mayImport(w, in); err != nil {
			return nil, err
		}
		evs, done, err = in.events(w, now)
		if err != nil {
			return nil, err
		}
		after := w.Counters
		for _, e := range evs {
			after.Count(e)
		}
		access, err := accessOf(slices.Values(in.Users), slices.Values(in.PreAuthKeys), slices.Values(in.APIKeys))
		if err != nil {
			return nil, err
		}
		record, err := json.Marshal(importRecord{now, after, access, in.KeepWayBack || wayBackOpen(w)})
		if err != nil {
			return nil, err
		}
		return append(evs, w.SettingPutFor(mesh.SettingImport, string(record), "import", false, now)...), nil
	})
	return done, err
}

// Check returns why an import into an empty mesh would fail. The error is a BadPolicy if the policy is invalid.
func (in Import) Check(reserved mesh.Reserved, now mesh.Time) error {
	w := policy.WorldOf(mesh.Empty(), nil)
	w.Reserved = reserved
	_, _, err := in.events(w, now)
	return err
}

// Digest returns a digest of what the import would create. Two servers with the same users, nodes, keys and policy have the same
// digest. It does not cover what changes by itself, or who added a tagged node, which Headscale does not store.
func (in Import) Digest(reserved mesh.Reserved) (string, error) {
	const never mesh.Time = 1
	in.PolicyElsewhere = false
	in.Nodes = slices.Clone(in.Nodes)
	for i := range in.Nodes {
		n := *in.Nodes[i].Node
		n.KeyExpired, n.CreatedBy = false, 0
		in.Nodes[i].Node, in.Nodes[i].Net, in.Nodes[i].LastSeen = &n, mesh.Net{}, 0
	}
	w := policy.WorldOf(mesh.Empty(), nil)
	w.Reserved = reserved
	evs, _, err := in.events(w, never)
	if err != nil {
		return "", err
	}
	s, _ := mesh.Apply(w.Snapshot, 1, evs...)
	return s.Digest(), nil
}

// World returns the mesh after an import into an empty database, with these settings and with all nodes online.
func (in Import) World(reserved mesh.Reserved, now mesh.Time, settings map[string]string) (*policy.World, error) {
	in.PolicyElsewhere = false
	empty := policy.WorldOf(mesh.Empty(), nil)
	empty.Reserved = reserved
	evs, _, err := in.events(empty, now)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		evs = append(evs, mesh.SettingPut{Setting: &mesh.Setting{ID: mesh.SettingID(len(evs) + 1), Key: key, Value: settings[key], Source: "config", UpdatedAt: now}})
	}
	for _, n := range in.Nodes {
		evs = append(evs, mesh.Online{ID: n.ID, Replica: "import", Conn: 1, At: now})
	}
	s, _ := mesh.Apply(empty.Snapshot, 1, mesh.Settle(empty.Snapshot, evs)...)
	w := policy.NewWorld(s, nil)
	w.Reserved = reserved
	return w, nil
}

// mayImport refuses a mesh that is in use.
func mayImport(w *policy.World, in Import) error {
	if v, ok := w.Settings.ByKey(mesh.SettingNoise); ok {
		var known struct{ Public key.MachinePublic }
		if err := json.Unmarshal([]byte(v.Value), &known); err != nil || known.Public != in.Noise {
			return refuse(Conflict, "", "a server with another private key has used this database, and clients of the imported server would not accept it; import into a new database")
		}
	}
	last, again, err := lastImport(w)
	if err != nil {
		return err
	}
	if !again {
		if n := w.Users.Len() + w.Nodes.Len() + w.PreAuthKeys.Len() + w.APIKeys.Len() + w.Webhooks.Len(); n > 0 {
			return refuse(Conflict, "", "the database already contains %d users, %d nodes, %d pre-auth keys and %d API keys; import into a new database",
				w.Users.Len(), w.Nodes.Len(), w.PreAuthKeys.Len(), w.APIKeys.Len())
		}
		return nil
	}
	c := w.Counters
	if c.User != last.Counters.User || c.Node != last.Counters.Node || c.PreAuth != last.Counters.PreAuth || c.API != last.Counters.API || w.Webhooks.Len() > 0 {
		return refuse(Conflict, "", "users, nodes or keys have been created since the last import; import into a new database")
	}
	access, err := accessOf(w.Users.All(), w.PreAuthKeys.All(), w.APIKeys.All())
	if err != nil {
		return err
	}
	if access != last.Access {
		return refuse(Conflict, "", "users or keys have been changed since the last import, and another import would undo that; import into a new database")
	}
	for n := range w.Nodes.All() {
		if n.UpdatedAt > last.At || n.Presence.LastSeen > last.At {
			return refuse(Conflict, "", "node %s (%s) has used this server since the last import; import into a new database", n.ID, n.Name)
		}
	}
	return nil
}

// events returns the events that make a world equal to the import.
func (in Import) events(w *policy.World, now mesh.Time) (evs []mesh.Event, done Imported, err error) {
	add := func(known, same bool, e mesh.Event) {
		switch {
		case known && same:
			return
		case known:
			done.Changed++
		default:
			done.Added++
		}
		evs = append(evs, e)
	}
	keep := map[string]bool{}
	for _, u := range in.Users {
		keep["user "+u.ID.String()] = true
		old, known := w.Users.Get(u.ID)
		add(known, known && reflect.DeepEqual(old, u), mesh.UserPut{User: u})
	}
	for _, k := range in.PreAuthKeys {
		keep["preauth "+k.ID.String()] = true
		old, known := w.PreAuthKeys.Get(k.ID)
		same := *k
		if known {
			same.LastUse = old.LastUse
		}
		add(known, known && reflect.DeepEqual(*old, same), mesh.PreAuthKeyPut{Key: k})
	}
	for _, k := range in.APIKeys {
		keep["api "+k.ID.String()] = true
		old, known := w.APIKeys.Get(k.ID)
		same := *k
		if known {
			same.LastUse = old.LastUse
		}
		add(known, known && reflect.DeepEqual(*old, same), mesh.APIKeyPut{Key: k})
	}
	doc, put, err := in.policy(w, now, evs)
	if err != nil {
		return nil, done, err
	}
	evs = append(evs, put...)
	nodes, err := in.nodes(w, now, doc, func(n *mesh.Node, known, same bool, all ...mesh.Event) {
		keep["node "+n.ID.String()] = true
		add(known, same, all[0])
		if !known || !same {
			evs = append(evs, all[1:]...)
		}
	})
	if err != nil {
		return nil, done, err
	}
	gone := in.gone(w, keep)
	done.Deleted = len(gone)
	evs = append(gone, append(evs, nodes...)...)
	return evs, done, in.runTests(w, doc, evs)
}

// gone returns the events that delete what an earlier import added and the other server no longer has.
func (in Import) gone(w *policy.World, keep map[string]bool) (evs []mesh.Event) {
	for n := range w.Nodes.All() {
		if !keep["node "+n.ID.String()] {
			evs = append(evs, mesh.NodeGone{ID: n.ID})
		}
	}
	for k := range w.PreAuthKeys.All() {
		if !keep["preauth "+k.ID.String()] {
			evs = append(evs, mesh.PreAuthKeyGone{ID: k.ID})
		}
	}
	for k := range w.APIKeys.All() {
		if !keep["api "+k.ID.String()] {
			evs = append(evs, mesh.APIKeyGone{ID: k.ID})
		}
	}
	for u := range w.Users.All() {
		if !keep["user "+u.ID.String()] {
			evs = append(evs, mesh.UserGone{ID: u.ID})
		}
	}
	return evs
}

// policy parses the policy, and returns the event that saves it if it is not in force yet.
func (in Import) policy(w *policy.World, now mesh.Time, users []mesh.Event) (*lang.Doc, []mesh.Event, error) {
	if in.Policy == "" {
		return nil, nil, nil
	}
	doc, err := ReadPolicy(in.Policy)
	if err != nil {
		return nil, nil, err
	}
	s, _ := mesh.Apply(w.Snapshot, w.Rev+1, users...)
	problems := append(doc.CheckGroups(s, in.ProviderGroups), doc.CheckApprovers(w.Reserved)...)
	if len(problems) > 0 {
		return nil, nil, &BadPolicy{Problems: problems}
	}
	current, ok := w.Policy()
	if in.PolicyElsewhere || ok && current.Text == in.Policy {
		return doc, nil, nil
	}
	p := &mesh.Policy{Version: w.Counters.Policy + 1, Text: in.Policy, Source: policyFromAPI, Author: "import", Reason: "imported from Headscale", SavedAt: now}
	return doc, []mesh.Event{mesh.PolicyPut{Policy: p}}, nil
}

// runTests runs the tests of the policy on the imported mesh.
func (in Import) runTests(w *policy.World, doc *lang.Doc, evs []mesh.Event) error {
	if !hasTests(doc) {
		return nil
	}
	s, _ := mesh.Apply(w.Snapshot, w.Rev+1, evs...)
	if failures := explain.RunTests(policy.WorldOf(s, doc)); len(failures) > 0 {
		return &BadPolicy{Failures: failures}
	}
	return nil
}

// nodes calls add for each node, with its events.
func (in Import) nodes(w *policy.World, now mesh.Time, doc *lang.Doc, add func(n *mesh.Node, known, same bool, all ...mesh.Event)) ([]mesh.Event, error) {
	users := map[mesh.UserID]*mesh.User{}
	for _, u := range in.Users {
		users[u.ID] = u
	}
	last := w.Counters.Route
	for _, imported := range in.Nodes {
		n := *imported.Node
		n.UpdatedAt = now
		imported.Host.Hostname = n.Hostname
		h := imported.Host.bounded()
		n.Hostname, n.OS, n.Arch, n.ClientVersion, n.Host, n.RoutableIPs = h.Hostname, h.OS, h.Arch, h.ClientVersion, h.Object, h.RoutableIPs
		if tags := imported.allowedTags(doc, users[n.Owner]); len(tags) > 0 {
			n.Tags, n.CreatedBy, n.Owner = tags, n.Owner, 0
		}
		old, known := w.Nodes.Get(n.ID)
		if known {
			n.AllRoutes, n.Primary, n.SuspendedAt = old.AllRoutes, old.Primary, old.SuspendedAt
		}
		n.AllRoutes = imported.approve(n.AllRoutes, &last, now)
		n.KeepRoutes(last, now, mesh.AutoApproval{Approves: func(netip.Prefix) bool { return false }, Forbids: forbidden(w)})
		for _, r := range n.AllRoutes {
			last = max(last, r.ID)
		}
		same := n
		if known {
			same.UpdatedAt, same.Net, same.Presence, same.Note = old.UpdatedAt, old.Net, old.Presence, old.Note
		}
		add(&n, known, known && reflect.DeepEqual(*old, same), mesh.NodePut{Node: &n}, mesh.NodeNet{ID: n.ID, Net: imported.Net}, mesh.Offline{ID: n.ID, At: min(imported.LastSeen, now)})
	}
	return []mesh.Event{mesh.AddressCursor{V4: in.lastAddr(true), V6: in.lastAddr(false)}}, nil
}

// lastAddr returns the greatest address in use, after which new nodes get theirs.
func (in Import) lastAddr(v4 bool) (last netip.Addr) {
	for _, n := range in.Nodes {
		a := n.IPv6
		if v4 {
			a = n.IPv4
		}
		if a.IsValid() && (!last.IsValid() || last.Less(a)) {
			last = a
		}
	}
	return last
}

// allowedTags returns the requested tags, if the policy allows all of them.
func (n ImportedNode) allowedTags(doc *lang.Doc, owner *mesh.User) []string {
	tags, err := checkTags("tags", n.AskedTags)
	if err != nil {
		return nil
	}
	for _, tag := range tags {
		if doc.MayTag(owner, nil, tag) != nil {
			return nil
		}
	}
	return tags
}

// approve returns routes with exactly the approvals of the import.
func (n ImportedNode) approve(known []mesh.Route, last *mesh.RouteID, now mesh.Time) []mesh.Route {
	var old mesh.Node
	old.AllRoutes = known
	var node mesh.Node
	for _, p := range sortedRoutes(append([]netip.Prefix(nil), n.Approved...)) {
		r, ok := old.Route(p)
		if !ok {
			*last++
			r = mesh.Route{ID: *last, Prefix: p, CreatedAt: now, UpdatedAt: now}
		}
		r.Enabled, r.Decided = true, true
		node.AddRoute(r)
	}
	for _, r := range known {
		if _, approved := node.Route(r.Prefix); !approved {
			r.Enabled, r.Decided = false, false
			node.AddRoute(r)
		}
	}
	return node.AllRoutes
}
