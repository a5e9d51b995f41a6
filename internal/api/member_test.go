package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// member is a person with the role member, who has a node and a pre-auth key. Everything
// else in the fixture belongs to others.
type member struct {
	fixture
	user      mesh.UserID
	token     string
	node, key string // IDs
}

func (f fixture) member() member {
	f.t.Helper()
	m := member{fixture: f}
	session, token := f.signedIn(1)
	m.user, m.token = session.User, token
	key := f.call("POST", "/api/v1/preauthkey", object{"reusable": true, "description": "mine"}, m.token).ok()["preAuthKey"].(object)
	m.key = key["id"].(string)
	m.node = f.call("POST", "/api/v1/machine", machine(77, key["key"].(string)), noKey).ok()["node"].(object)["id"].(string)
	return m
}

// foreign returns everything that does not belong to the member.
func (m member) foreign() (all []any) {
	w := m.ledger.World()
	for u := range w.Users.All() {
		if u.ID != m.user {
			all = append(all, u)
		}
	}
	for n := range w.Nodes.All() {
		if n.Owner != m.user {
			all = append(all, n)
		}
	}
	for k := range w.PreAuthKeys.All() {
		if k.User != m.user {
			all = append(all, k)
		}
	}
	for h := range w.Webhooks.All() {
		all = append(all, h)
	}
	for v := range w.Settings.All() {
		all = append(all, v)
	}
	for l := range w.Logins.All() {
		all = append(all, l)
	}
	for g := range w.SSHGrants.All() {
		all = append(all, g)
	}
	for k := range w.APIKeys.All() {
		all = append(all, [2]any{k.ID, k.Expiry})
	}
	return append(all, w.Counters.User, w.Counters.API, w.Counters.Policy, w.Counters.Webhook)
}

// Every operation is called by a member with a request that would succeed for an
// administrator, on objects of others. A new operation is covered as soon as it has an
// example.
func TestMemberAgainstEveryOperation(t *testing.T) {
	engines(t, func(t *testing.T, s *service) {
		doc := readDocument(t)
		f, ops, calls := populated(t, s), doc.operations(), examples(doc)
		m := f.member()
		// Deletions come last.
		for _, name := range slices.SortedFunc(maps.Keys(ops), func(a, b string) int { return -strings.Compare(a, b) }) {
			role := ops[name]["x-role"].(string)
			if role == "public" {
				continue
			}
			method, path, _ := strings.Cut(name, " ")
			itself := regexp.MustCompile("^" + regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, `[^/]+`) + "$")
			var before []any
			s.dressed = func(r *http.Request) {
				if r.Method == method && itself.MatchString(r.URL.Path) {
					before = m.foreign()
					r.Header.Set("Authorization", strings.TrimPrefix(m.token, "Authorization: "))
				}
			}
			a := calls[name](f)
			s.dressed = nil
			if after := m.foreign(); !slices.Equal(after, before) {
				t.Errorf("%s: a member changed what belongs to others", name)
			}
			s.call("POST", "/api/v1/policy/revert", nil) // if a policy awaits confirmation
			_, own := ops[name]["x-member"]
			switch {
			case own || role == "any":
				m.shownOnlyOwn(name, a)
			case a.status != http.StatusForbidden:
				t.Errorf("%s: status %d, want 403\n%s", name, a.status, a.body)
			}
		}
	})
}

// shownOnlyOwn checks that a response has nothing of the objects of others, except what the
// request itself contained.
func (m member) shownOnlyOwn(name string, a *answer) {
	m.t.Helper()
	if !slices.Contains([]int{http.StatusOK, http.StatusForbidden, http.StatusNotFound}, a.status) {
		m.t.Errorf("%s: status %d\n%s", name, a.status, a.body)
	}
	alice, _ := m.ledger.World().Users.ByName("alice")
	secrets := []string{`"alice"`, "host-1\"", machineKey(1), "100.64.0.1\""}
	if alice == nil {
		m.t.Fatalf("%s: there is no other user left", name)
	}
	for _, secret := range secrets {
		if strings.Contains(string(a.body), secret) {
			m.t.Errorf("%s: the response to a member contains %s\n%s", name, secret, a.body)
		}
	}
}

func TestMemberUsesOwnObjects(t *testing.T) {
	f := populated(t, sqlite(t))
	m := f.member()
	me := m.call("GET", "/api/v1/whoami", nil, m.token).ok()
	if me["role"] != "member" || me["user"].(object)["id"] != m.user.String() {
		t.Errorf("caller: %v", me)
	}
	ids := func(list string, path string) (found []string) {
		for _, e := range m.call("GET", path, nil, m.token).ok()[list].([]any) {
			found = append(found, e.(object)["id"].(string))
		}
		return found
	}
	for path, c := range map[string]struct{ list, want string }{
		"/api/v1/node":                         {"nodes", m.node},
		"/api/v1/node?host=true&limit=5":       {"nodes", m.node},
		"/api/v1/node?user=" + m.user.String(): {"nodes", m.node},
		"/api/v1/node?preAuthKey=" + m.key:     {"nodes", m.node},
		"/api/v1/node?search=host":             {"nodes", m.node},
		"/api/v1/node?search=alice":            {"nodes", ""},
		"/api/v1/preauthkey":                   {"preAuthKeys", m.key},
		"/api/v1/preauthkey?user=" + f.user:    {"preAuthKeys", ""},
		"/api/v1/preauthkey?user=4711":         {"preAuthKeys", ""},
		"/api/v1/user":                         {"users", m.user.String()},
		"/api/v1/user?limit=1":                 {"users", m.user.String()},
		"/api/v1/user?name=alice":              {"users", ""},
		"/api/v1/user?id=" + f.user:            {"users", ""},
		"/api/v1/user?name=person1&limit=3":    {"users", m.user.String()},
	} {
		if got := strings.Join(ids(c.list, path), " "); got != c.want {
			t.Errorf("%s lists %q, want %q", path, got, c.want)
		}
	}
	node := "/api/v1/node/" + m.node
	m.call("GET", "/api/v1/user/"+m.user.String(), nil, m.token).ok()
	m.call("POST", node+"/rename/laptop", nil, m.token).ok()
	m.call("GET", "/api/v1/node/laptop", nil, m.token).ok()
	m.call("POST", node+"/rename", nil, m.token).ok()
	reach := m.call("POST", "/api/v1/policy/access", object{}, m.token).ok()
	if from := reach["from"].([]any); len(from) != 1 || from[0].(object)["id"] != m.node || len(reach["rules"].([]any)) != 0 || len(reach["cells"].([]any)) != 1 {
		t.Errorf("reaches: %v", reach)
	}
	m.call("POST", node+"/expire", nil, m.token).ok()
	bulk := m.call("POST", "/api/v1/node/bulk", object{"ids": []string{m.node, f.node}, "action": "delete"}, m.token).ok()["results"].([]any)
	if bulk[0].(object)["ok"] != true || bulk[1].(object)["ok"] != false {
		t.Errorf("bulk: %v", bulk)
	}
	m.call("POST", "/api/v1/preauthkey/expire", object{"id": m.key}, m.token).ok()
	m.call("DELETE", "/api/v1/preauthkey?id="+m.key, nil, m.token).ok()
}

// A request for somebody else's object gets the same response as one for an object that
// does not exist, whatever it is named by.
//
// long: it has a row for each way to name an object
func TestForeignObjectLooksMissingToMembers(t *testing.T) {
	f := populated(t, sqlite(t))
	tagged := f.call("POST", "/api/v1/preauthkey", object{"user": "person1", "aclTags": []string{"tag:web"}})
	if tagged.status == http.StatusOK {
		t.Fatal("person1 exists before the test adds it")
	}
	m := f.member()
	taggedKey := f.call("POST", "/api/v1/preauthkey", object{"user": "person1", "aclTags": []string{"tag:web"}}).ok()["preAuthKey"].(object)["id"].(string)
	w := f.ledger.World()
	foreignNode, _ := w.Nodes.Get(1)
	foreignKey, _ := w.PreAuthKeys.Get(1)
	f.call("POST", "/api/v1/node/"+f.node+"/expire", object{"disableExpiry": true}).ok()
	stale := `If-Match: "0000000000000000"`
	nodes := map[string]string{f.node: "4711", foreignNode.Name: "nobody", foreignNode.IPv4.String(): "100.99.99.99", foreignNode.IPv6.String(): "fd7a:115c:a1e0::99"}
	keys := map[string]string{f.preAuth: "4711", taggedKey: "4711", foreignKey.Prefix: "AAAAAAAAAAAA", "flp_" + foreignKey.Prefix + "_***": "flp_AAAAAAAAAAAA_***"}
	users := map[string]string{f.user: "4711", "alice": "nobody", "Alice": "Nobody"}
	type request struct {
		method, path string
		body         any
		header       string
	}
	check := func(refs map[string]string, of func(ref string) request) {
		t.Helper()
		for foreign, missing := range refs {
			var got [2]string
			for i, ref := range []string{foreign, missing} {
				r := of(ref)
				a := m.call(r.method, r.path, r.body, m.token, r.header)
				got[i] = strings.ReplaceAll(fmt.Sprintf("%d %s %s", a.status, a.header.Get("ETag"), a.body), ref, "REF")
				if a.status != http.StatusNotFound {
					r = of(foreign)
					if a.status != http.StatusOK || strings.Contains(string(a.body), `"ok":true`) {
						t.Errorf("%s %s: status %d\n%s", r.method, r.path, a.status, a.body)
					}
				}
			}
			if diff := cmp.Diff(got[1], got[0]); diff != "" {
				r := of(foreign)
				t.Errorf("%s %s %v (-missing +foreign):\n%s", r.method, r.path, r.body, diff)
			}
		}
	}
	for _, header := range []string{"X-Test: plain", stale, "Idempotency-Key: k"} {
		for _, c := range []struct {
			method, rest string
			body         any
		}{
			{"GET", "", nil}, {"DELETE", "", nil}, {"POST", "/expire", nil}, {"POST", "/rename", nil}, {"POST", "/rename/mine", nil},
		} {
			check(nodes, func(ref string) request {
				return request{c.method, "/api/v1/node/" + ref + c.rest, c.body, strings.ReplaceAll(header, ": k", ": "+c.method+c.rest+ref)}
			})
		}
	}
	check(nodes, func(ref string) request {
		return request{"POST", "/api/v1/node/expire", object{"nodes": []string{ref}}, noHeader}
	})
	check(nodes, func(ref string) request {
		return request{"POST", "/api/v1/policy/access", object{"from": []string{ref}}, noHeader}
	})
	for _, action := range []string{"expire", "delete"} {
		check(map[string]string{f.node: "4711"}, func(ref string) request {
			return request{"POST", "/api/v1/node/bulk", object{"ids": []string{ref}, "action": action}, noHeader}
		})
		check(map[string]string{f.preAuth: "4711", taggedKey: "4712"}, func(ref string) request {
			return request{"POST", "/api/v1/preauthkey/bulk", object{"ids": []string{ref}, "action": action}, noHeader}
		})
	}
	check(keys, func(ref string) request {
		return request{"POST", "/api/v1/preauthkey/expire", object{"id": ref}, noHeader}
	})
	check(keys, func(ref string) request {
		return request{"DELETE", "/api/v1/preauthkey?id=" + ref, nil, noHeader}
	})
	check(keys, func(ref string) request {
		return request{"GET", "/api/v1/node?preAuthKey=" + ref, nil, noHeader}
	})
	check(users, func(ref string) request { return request{"GET", "/api/v1/user/" + ref, nil, noHeader} })
	check(users, func(ref string) request { return request{"GET", "/api/v1/node?user=" + ref, nil, noHeader} })
	check(users, func(ref string) request {
		return request{"POST", "/api/v1/preauthkey", object{"user": ref}, noHeader}
	})
	check(users, func(ref string) request {
		return request{"POST", "/api/v1/preauthkey/expire", object{"id": m.key, "user": ref}, noHeader}
	})
	if n, _ := f.ledger.World().Nodes.Get(1); n == nil || n.KeyExpired || n.Name != foreignNode.Name {
		t.Errorf("the foreign node is now %+v", n)
	}
}

// noHeader is a header without effect.
const noHeader = "X-Test: none"

func TestMemberCannotGetMoreThanSigningInGives(t *testing.T) {
	f := populated(t, sqlite(t))
	m := f.member()
	node := "/api/v1/node/" + m.node
	const extend = "Forbidden: members can expire their devices, but not extend the expiry; sign in again on the device, or ask an administrator"
	f.call("POST", node+"/expire", object{"expiry": "2030-01-01T00:00:00Z"}).ok()
	for _, body := range []object{{"disableExpiry": true}, {"expiry": "2031-01-01T00:00:00Z"}} {
		m.call("POST", node+"/expire", body, m.token).fails(403, "Forbidden", extend, "")
		bulk := maps.Clone(body)
		bulk["ids"], bulk["action"] = []string{m.node}, "expire"
		m.call("POST", "/api/v1/node/bulk", bulk, m.token).fails(403, "Forbidden", extend, "")
	}
	m.call("POST", node+"/expire", object{"expiry": "2029-01-01T00:00:00Z"}, m.token).ok()
	m.call("POST", node+"/expire", nil, m.token).ok()
	m.call("POST", node+"/expire", object{"expiry": "2029-01-01T00:00:00Z"}, m.token).fails(403, "Forbidden", extend, "")
	m.call("POST", "/api/v1/preauthkey", object{"aclTags": []string{"tag:web"}}, m.token).fails(403, "Forbidden",
		"Forbidden: members can create pre-auth keys only for their own devices, without tags and without approval in advance", "")
	m.call("POST", "/api/v1/preauthkey", object{"expiration": time.Now().Add(25 * time.Hour)}, m.token).fails(403, "Forbidden",
		"Forbidden: a pre-auth key of a member can be valid for at most 24 hours", "")
	m.call("POST", "/api/v1/node/bulk", object{"ids": []string{m.node}, "action": "addTags", "tags": []string{"tag:web"}}, m.token).fails(403, "Forbidden",
		"Forbidden: members can only expire and delete their devices", "")
	m.call("POST", node+"/rename/host-1", nil, m.token).fails(409, "Conflict", `the name "host-1" is taken; choose another name`, "")
	m.call("POST", "/api/v1/policy/access", object{"to": []string{"host-1"}}, m.token).fails(403, "Forbidden",
		"Forbidden: members can ask only what their own devices can reach: send neither policy nor to", "")
	m.call("GET", "/api/v1/events", nil, m.token).fails(403, "Forbidden", "Forbidden: this operation requires the role read; user person1 has member", "")
}

// Everybody has the rights of a member, too. Somebody who sees the objects of others is told
// why they cannot be changed.
func TestHigherRolesKeepTheRightsOfMembers(t *testing.T) {
	for _, role := range []mesh.Role{mesh.RoleRead, mesh.RoleOperator} {
		f := populated(t, sqlite(t))
		m := f.member()
		m.call("PUT", "/api/v1/user/"+m.user.String()+"/role", object{"role": string(role)}).ok()
		if nodes := m.call("GET", "/api/v1/node", nil, m.token).ok()["nodes"].([]any); len(nodes) != 2 {
			t.Errorf("%s sees %d nodes", role, len(nodes))
		}
		m.call("POST", "/api/v1/node/"+m.node+"/rename/laptop", nil, m.token).ok()
		m.call("POST", "/api/v1/preauthkey/expire", object{"id": m.key}, m.token).ok()
		m.call("POST", "/api/v1/preauthkey/expire", object{"id": f.preAuth}, m.token).fails(403, "Forbidden",
			"Forbidden: this operation requires the role admin; user person1 has "+string(role)+"; without it, you can do this only with your own devices and pre-auth keys", "")
		m.call("POST", "/api/v1/preauthkey", object{"user": "alice"}, m.token).fails(403, "Forbidden",
			"Forbidden: this operation requires the role admin; user person1 has "+string(role)+"; without it, you can do this only with your own devices and pre-auth keys", "")
		if a := m.call("POST", "/api/v1/node/"+f.node+"/rename/x", nil, m.token); a.status != map[mesh.Role]int{mesh.RoleRead: 403, mesh.RoleOperator: 200}[role] {
			t.Errorf("%s renames a node of somebody else: %d %s", role, a.status, a.body)
		}
	}
}

// A node that was moved to somebody else is gone for its former owner, also in responses to
// repeated requests.
func TestMemberSeesNothingOfAMovedNode(t *testing.T) {
	f := populated(t, sqlite(t))
	m := f.member()
	node := "/api/v1/node/" + m.node
	f.call("PUT", node+"/note", object{"text": "suspicious"}).ok()
	shown := m.call("GET", node, nil, m.token).ok()["node"].(object)
	if shown["note"] != nil || shown["preAuthKey"].(object)["id"] != m.key {
		t.Errorf("the member sees the note %v, and the key %v", shown["note"], shown["preAuthKey"])
	}
	once := []string{m.token, "Idempotency-Key: rename"}
	m.call("POST", node+"/rename/laptop", nil, once...).ok()
	m.call("POST", "/api/v1/node/bulk", object{"ids": []string{m.node}, "action": "expire"}, m.token, "Idempotency-Key: bulk").ok()
	f.call("POST", node+"/user", object{"user": "alice"}).ok()
	m.call("GET", node, nil, m.token).fails(404, "Not Found", fmt.Sprintf("unknown node %q; list nodes with: fairlead nodes list", m.node), "")
	if a := m.call("POST", node+"/rename/laptop", nil, once...); a.status != http.StatusGone || strings.Contains(string(a.body), "alice") {
		t.Errorf("the repeated request: %d %s", a.status, a.body)
	}
	a := m.call("POST", "/api/v1/node/bulk", object{"ids": []string{m.node}, "action": "expire"}, m.token, "Idempotency-Key: bulk")
	if a.status != http.StatusOK || strings.Contains(string(a.body), "laptop") {
		t.Errorf("the repeated bulk request: %d %s", a.status, a.body)
	}
	// The other way round: the new owner does not see the key that the node joined with.
	f.call("POST", "/api/v1/node/"+f.node+"/user", object{"user": "person1"}).ok()
	if got := m.call("GET", "/api/v1/node/"+f.node, nil, m.token).ok()["node"].(object)["preAuthKey"]; got != nil {
		t.Errorf("the member sees somebody else's key: %v", got)
	}
}

// A key never allows more than its owner.
func TestKeyFollowsTheRoleOfItsOwner(t *testing.T) {
	s := sqlite(t)
	populated(t, s)
	session, token := s.signedIn(1)
	user := "/api/v1/user/" + session.User.String()
	s.call("POST", "/api/v1/apikey", nil, token).fails(403, "Forbidden", "Forbidden: this operation requires the role admin; user person1 has member", "")
	s.person("zoe", mesh.RoleAdmin)
	s.call("PUT", user+"/role", object{"role": "admin"}).ok()
	made := s.call("POST", "/api/v1/apikey", object{"comment": "mine"}, token).ok()
	key := "Authorization: Bearer " + made["apiKey"].(string)
	second := s.call("POST", "/api/v1/apikey", object{"role": "read", "scopes": []string{"nodes"}}, key).ok()
	scoped := "Authorization: Bearer " + second["apiKey"].(string)
	for _, k := range s.call("GET", "/api/v1/apikey", nil).ok()["apiKeys"].([]any) {
		k := k.(object)
		owned := k["id"] == made["id"] || k["id"] == second["id"]
		if owner, ok := k["user"].(object); ok != owned || ok && owner["name"] != "person1" {
			t.Errorf("key %v belongs to %v", k["id"], k["user"])
		}
	}
	s.call("GET", "/api/v1/audit", nil, key).ok()
	stream := s.consume(key)
	s.call("PUT", user+"/role", object{"role": "operator"}).ok()
	s.call("PUT", "/api/v1/policy", object{"policy": allowAll}, key).fails(403, "Forbidden", "Forbidden: this operation requires the role admin; the API key has operator", "")
	s.call("PUT", user+"/role", object{"role": "default"}).ok()
	s.call("GET", "/api/v1/audit", nil, key).fails(403, "Forbidden", "Forbidden: this operation requires the role read; the API key has member", "")
	for ok := true; ok; { // until the server ends the stream
		_, ok = stream.next()
	}
	if nodes := s.call("GET", "/api/v1/node", nil, key).ok()["nodes"].([]any); len(nodes) != 0 {
		t.Errorf("the member sees %v", nodes)
	}
	s.call("GET", "/api/v1/node", nil, scoped).ok()
	s.call("GET", "/api/v1/preauthkey", nil, scoped).fails(403, "Forbidden", "Forbidden: this operation requires the scope preauthkeys; the API key has [nodes]", "")
	s.call("POST", "/api/v1/node/1/rename/x", nil, key).fails(404, "Not Found", `unknown node "1"; list nodes with: fairlead nodes list`, "")
	s.call("POST", "/api/v1/node/1/rename/x", nil, scoped).fails(403, "Forbidden", "Forbidden: this operation requires the role operator; the API key has member", "")
	s.call("POST", user+"/suspend", nil).ok()
	s.call("GET", "/api/v1/whoami", nil, key).fails(401, "Unauthorized", "Authentication failed: invalid API key", "")
	s.call("POST", user+"/restore", nil).ok()
	s.call("GET", "/api/v1/whoami", nil, key).ok()
	s.call("DELETE", user, nil).ok()
	s.call("GET", "/api/v1/whoami", nil, key).fails(401, "Unauthorized", "Authentication failed: invalid API key", "")
}
