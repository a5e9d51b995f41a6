package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/control"
	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// limited creates an API key with this role and these scopes, and returns its Authorization header.
func (s *service) limited(role mesh.Role, scopes ...string) string {
	s.t.Helper()
	_, key, err := s.control.APIKeys.Create(s.t.Context(), mesh.Actor{Kind: mesh.ActorServer}, control.NewAPIKey{Access: mesh.Access{Role: role, Scopes: scopes}})
	if err != nil {
		s.t.Fatal(err)
	}
	return "Authorization: Bearer " + key
}

// leastRoles returns the lowest role that each operation of the document requires, or "" if it
// requires none.
func leastRoles(doc document) map[string]string {
	least := map[string]string{}
	for name, op := range doc.operations() {
		if role := op["x-role"].(string); role != "any" && role != "public" {
			least[name] = role
		} else {
			least[name] = ""
		}
	}
	return least
}

func TestEveryOperationAsksForItsRole(t *testing.T) {
	least := leastRoles(readDocument(t))
	s := sqlite(t).listen()
	ranks := []string{"", "read", "operator", "admin"}
	keys := map[string]string{}
	for _, role := range mesh.Roles() {
		keys[string(role)] = s.limited(role)
	}
	for _, op := range slices.Sorted(maps.Keys(least)) {
		for _, role := range mesh.Roles() {
			t.Run(fmt.Sprintf("%s/%s", role, op), func(t *testing.T) {
				a := s.unreadable(op, keys[string(role)])
				denied := a.status == http.StatusForbidden && strings.HasPrefix(a.decoded()["detail"].(string), "Forbidden: this operation requires the role ")
				if want := slices.Index(ranks, string(role)) < slices.Index(ranks, least[op]); denied != want {
					t.Errorf("a key of the role %s gets %d, want it refused: %v\n%s", role, a.status, want, a.body)
				}
			})
		}
	}
}

// unreadable calls an operation with malformed parameters and body, which are rejected only after
// the role and scope have been checked. With valid ones, an event stream would never end.
func (s *service) unreadable(operation, key string) *answer {
	method, path, _ := strings.Cut(operation, " ")
	return s.call(method, filled(path)+"?limit=x&kinds=x&after=x", `{"no such": "member"`, key, "Last-Event-ID: x")
}

func TestEveryOperationAsksForItsScope(t *testing.T) {
	s := sqlite(t).listen()
	nouns := mesh.Nouns()
	only, others := map[any]string{}, map[any]string{} // for each scope, a key with only this scope, and one with all others
	for i, noun := range nouns {
		var rest []string
		for _, other := range slices.Delete(slices.Clone(nouns), i, i+1) {
			rest = append(rest, string(other))
		}
		only[string(noun)], others[string(noun)] = s.limited(mesh.RoleAdmin, string(noun)), s.limited(mesh.RoleAdmin, rest...)
	}
	check := func(name, key, missing string) {
		t.Helper()
		a := s.unreadable(name, key)
		var got string
		if a.status == http.StatusForbidden {
			_, rest, _ := strings.Cut(a.decoded()["detail"].(string), "Forbidden: this operation requires the scope ")
			got, _, _ = strings.Cut(rest, ";")
		}
		if got != missing {
			t.Errorf("%s: the missing scope is %q, want %q\n%d %s", name, got, missing, a.status, a.body)
		}
	}
	for name, op := range readDocument(t).operations() {
		scope, ok := op["x-scope"]
		if !ok { // one of these keys would be refused if the operation required a scope
			check(name, only[string(nouns[0])], "")
			check(name, only[string(nouns[1])], "")
			continue
		}
		check(name, only[scope], "")
		check(name, others[scope], scope.(string))
	}
}

// The console relies on these rules to hide from operators what they may not do.
func TestOnlyAdministratorsChangeWhoMayDoWhat(t *testing.T) {
	guarded := []string{"preauthkeys", "apikeys", "policy", "webhooks"}
	// These only send an event to a receiver that an administrator chose.
	harmless := []string{"testWebhook", "redeliverEvent"}
	// These decide on the access of people, relays and all clients.
	severe := []string{"revokeSession", "setUserRole", "linkUser", "unlinkUser", "approveUser", "inviteUser", "deletePasskey", "createRelay", "deleteRelay", "rotateNoiseKey", "retireNoiseKey"}
	for name, op := range readDocument(t).operations() {
		id, role, scope := op["operationId"].(string), op["x-role"].(string), op["x-scope"]
		changes := op["x-replay"] != nil && role != "public"
		want := "operator"
		switch {
		case !changes && id != "debugProfile", role == "any":
			continue // covered by TestReadKeyChangesNothing, or by tests of their own
		case !changes, slices.Contains(severe, id), slices.Contains(guarded, scope.(string)) && !slices.Contains(harmless, id):
			want = "admin"
		}
		if role != want {
			t.Errorf("%s is for the role %s, want %s", name, role, want)
		}
	}
}

// all returns the first group of every match.
func all(pattern, text string) (found []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// The page lists the paths that each scope opens. A path covers everything below it that has no
// entry of its own.
func TestPageOfTheAPITellsWhichScopeOpensWhat(t *testing.T) {
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| scope | gives access to these paths below `/api/v1` |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	nouns := map[string]string{}
	for line := range strings.Lines(table) {
		words := all("`([^`]+)`", line)
		for _, path := range words[1:] {
			nouns["/api/v1"+path] = words[0]
		}
	}
	for name, op := range readDocument(t).operations() {
		noun, limited := op["x-scope"].(string)
		if !limited {
			continue
		}
		_, path, _ := strings.Cut(name, " ")
		for nouns[path] == "" && path != "" {
			path = path[:strings.LastIndexByte(path, '/')]
		}
		if nouns[path] != noun {
			t.Errorf("%s: the page says %q, the document %q", name, nouns[path], noun)
		}
	}
}

// Every operation is called with a request that would succeed for an administrator, who also
// prepares what the request needs.
func TestReadKeyChangesNothing(t *testing.T) {
	s := sqlite(t)
	doc := readDocument(t)
	f, reader, least, calls := populated(t, s), s.limited(mesh.RoleRead), leastRoles(doc), examples(doc)
	for _, op := range slices.Sorted(maps.Keys(least)) {
		if least[op] == "" {
			continue
		}
		method, path, _ := strings.Cut(op, " ")
		itself := regexp.MustCompile("^" + regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, `[^/]+`) + "$")
		before := mesh.Revision(0)
		s.dressed = func(r *http.Request) {
			if r.Method == method && itself.MatchString(r.URL.Path) {
				before = s.ledger.World().Rev
				r.Header.Set("Authorization", strings.TrimPrefix(reader, "Authorization: "))
			}
		}
		a := calls[op](f)
		s.dressed = nil
		after := s.ledger.World().Rev
		s.call("POST", "/api/v1/policy/revert", nil) // if a policy awaits confirmation
		if before == 0 || after != before {
			t.Errorf("%s: a reader brought the service from revision %d to %d", op, before, after)
		}
		if want := map[bool]int{true: 200, false: 403}[least[op] == "read"]; a.status != want {
			t.Errorf("%s: status %d, want %d\n%s", op, a.status, want, a.body)
		}
	}
}

func TestScopesNarrowTheRole(t *testing.T) {
	s := sqlite(t).listen()
	f := populated(t, s)
	nodes, look := s.limited(mesh.RoleOperator, "nodes"), s.limited(mesh.RoleOperator, "nodes:read", "users")
	rename := "/api/v1/node/" + f.node + "/rename/other"
	s.call("GET", "/api/v1/node", nil, nodes).ok()
	s.call("POST", rename, nil, nodes).ok()
	s.call("GET", "/api/v1/node", nil, look).ok()
	s.call("GET", "/api/v1/whoami", nil, nodes).ok()
	s.call("GET", "/api/v1/user", nil, nodes).fails(403, "Forbidden", "Forbidden: this operation requires the scope users; the API key has [nodes]", "")
	s.call("POST", rename, nil, look).fails(403, "Forbidden", "Forbidden: this operation requires the scope nodes; the API key has [nodes:read users]", "")
	s.call("GET", "/api/v1/audit", nil, look).fails(403, "Forbidden", "Forbidden: this operation requires the scope history; the API key has [nodes:read users]", "")
	lines := s.log.lines(t, "forbidden")
	if len(lines) != 3 || lines[0]["role"] != "operator" || lines[0]["path"] != "/api/v1/user" {
		t.Errorf("logged: %v", lines)
	}
}

func TestNobodyHandsOutMoreThanHeHas(t *testing.T) {
	s := sqlite(t).listen()
	keeper := s.limited(mesh.RoleAdmin, "apikeys", "nodes:read")
	const words = "Forbidden: a new API key cannot have more permissions than the key that creates it; choose from the scopes [apikeys nodes:read]"
	s.call("POST", "/api/v1/apikey", object{}, keeper).fails(403, "Forbidden", words, "")
	s.call("POST", "/api/v1/apikey", object{"scopes": []string{"nodes"}}, keeper).fails(403, "Forbidden", words, "")
	s.call("POST", "/api/v1/apikey", object{"role": "read", "scopes": []string{"nodes:read", "users"}}, keeper).fails(403, "Forbidden", words, "")
	made := s.call("POST", "/api/v1/apikey", object{"role": "read", "scopes": []string{"nodes:read", "apikeys:read", "nodes:read"}}, keeper).ok()
	if diff := cmp.Diff([]any{"apikeys:read", "nodes:read"}, made["scopes"]); diff != "" || made["role"] != "read" {
		t.Errorf("made %v (-want +got):\n%s", made, diff)
	}
	s.call("POST", "/api/v1/apikey", object{"role": "owner"}).fails(400, "Bad Request", `unknown role "owner": use read, operator or admin`, "role")
	a := s.call("POST", "/api/v1/apikey", object{"scopes": []string{"nodes:write"}})
	if a.status != 400 || !strings.HasPrefix(a.decoded()["detail"].(string), `unknown scope "nodes:write": use users, `) {
		t.Errorf("%d: %s", a.status, a.body)
	}
}

func TestDeletingAUserNeedsTheScopesOfWhatGoesToo(t *testing.T) {
	s := sqlite(t)
	f := populated(t, s)
	eve := s.call("POST", "/api/v1/user", object{"name": "eve"}).ok()["user"].(object)["id"].(string)
	users, nodes := s.limited(mesh.RoleOperator, "users"), s.limited(mesh.RoleOperator, "nodes", "users")
	const words = "Forbidden: deleting user alice also deletes their %s, which requires the scope %s; the API key has %s"
	many := object{"ids": []string{eve, f.user}, "action": "delete"}
	for key, detail := range map[string]string{
		users: fmt.Sprintf(words, "nodes", "nodes", "[users]"),
		nodes: fmt.Sprintf(words, "pre-auth keys", "preauthkeys", "[nodes users]"),
	} {
		s.call("DELETE", "/api/v1/user/alice", nil, key).fails(403, "Forbidden", detail, "")
		s.call("POST", "/api/v1/user/bulk", many, key).fails(403, "Forbidden", detail, "")
	}
	if n := s.ledger.World().Users.Len(); n != 2 {
		t.Fatalf("%d users are left", n)
	}
	if lines := s.log.lines(t, "forbidden"); len(lines) != 4 {
		t.Errorf("logged: %v", lines)
	}
	s.call("DELETE", "/api/v1/user/eve", nil, users).ok()
	s.call("DELETE", "/api/v1/user/alice", nil, s.limited(mesh.RoleOperator)).ok()
}

// The policy names users. A key that cannot change the policy must therefore not be able to give a
// name in the policy to another user, or to leave it without a user.
func TestUserWhomThePolicyMentionsNeedsThePolicyScope(t *testing.T) {
	s := sqlite(t)
	user := func(name, email string) object { return object{"name": name, "email": email} }
	for name, email := range map[string]string{"boss": "", "carol": "carol@example.com", "mallory": "", "Erin": "", "fred": ""} {
		s.call("POST", "/api/v1/user", user(name, email)).ok()
	}
	id := func(name string) string {
		return s.call("GET", "/api/v1/user/"+name, nil).ok()["user"].(object)["id"].(string)
	}
	const text = `{"groups": {"group:admin": ["Boss@"]}, "tagOwners": {"tag:web": ["ERIN"]}, "acls": [{"action": "accept", "src": ["group:admin"], "dst": ["*:*"]}],
		"grants": [{"src": ["ghost"], "dst": ["*"], "ip": ["*"]}], "autoApprovers": {"exitNode": ["carol@example.com"]},
		"ssh": [{"action": "accept", "src": ["shelly"], "dst": ["tag:web"], "users": ["root"]}]}`
	s.call("PUT", "/api/v1/policy", object{"policy": text}).ok()
	refused := func(name, method, path string, body object) {
		t.Helper()
		words := "Forbidden: the policy mentions the user " + name + ", so this changes who it applies to: use an API key that can change the policy (role admin, scope policy), or the local socket"
		for _, key := range []string{s.limited(mesh.RoleOperator), s.limited(mesh.RoleOperator, "users", "policy"), s.limited(mesh.RoleAdmin, "users", "policy:read")} {
			if body == nil {
				s.call(method, path, nil, key).fails(403, "Forbidden", words, "")
			} else {
				s.call(method, path, body, key).fails(403, "Forbidden", words, "")
			}
		}
	}
	before := s.ledger.World().Rev
	refused("boss", "POST", "/api/v1/user/boss/rename/former-boss", nil)
	refused("ghost", "POST", "/api/v1/user/mallory/rename/GHOST", nil)
	refused("ghost", "POST", "/api/v1/user", user("Ghost", ""))
	refused("shelly", "POST", "/api/v1/user", user("shelly", ""))
	refused("ghost", "POST", "/api/v1/user", user("somebody", "ghost"))
	refused("erin", "DELETE", "/api/v1/user/erin", nil)
	refused("carol@example.com", "DELETE", "/api/v1/user/carol", nil)
	refused("boss", "POST", "/api/v1/user/bulk", object{"ids": []string{id("mallory"), id("boss")}, "action": "delete"})
	made := 24 // API keys created in the meantime
	if now := s.ledger.World().Rev; int(now-before) != made {
		t.Errorf("%d commits, want only the %d keys", now-before, made)
	}

	operator := s.limited(mesh.RoleOperator, "users")
	s.call("POST", "/api/v1/user/carol/rename/caroline", nil, operator).ok() // the policy refers to her by e-mail address
	s.call("POST", "/api/v1/user/Erin/rename/erin", nil, operator).ok()      // the same name, as names ignore case
	s.call("POST", "/api/v1/user", user("gina", ""), operator).ok()
	s.call("DELETE", "/api/v1/user/mallory", nil, operator).ok()

	// While a policy awaits confirmation, the one it would revert to counts too.
	s.call("PUT", "/api/v1/policy", object{"policy": `{"acls": [{"action": "accept", "src": ["fred"], "dst": ["*:*"]}]}`, "confirmWithin": "1h"}).ok()
	refused("boss", "POST", "/api/v1/user/boss/rename/former-boss", nil)
	refused("fred", "DELETE", "/api/v1/user/fred", nil)
	s.call("POST", "/api/v1/policy/confirm", object{}).ok()
	s.call("POST", "/api/v1/user/boss/rename/former-boss", nil, operator).ok()
	s.call("DELETE", "/api/v1/user/fred", nil, s.limited(mesh.RoleAdmin, "users", "policy")).ok()
}

func TestWebhookNeedsAReaderOfHistory(t *testing.T) {
	s := sqlite(t)
	const words = "Forbidden: this operation requires the scope history; the API key has [webhooks]"
	blind, reader := s.limited(mesh.RoleAdmin, "webhooks"), s.limited(mesh.RoleAdmin, "history:read", "webhooks")
	hook := object{"url": "http://127.0.0.1:9/", "events": []string{"node.*"}}
	s.call("POST", "/api/v1/webhooks", hook, blind).fails(403, "Forbidden", words, "")
	path := "/api/v1/webhooks/" + s.call("POST", "/api/v1/webhooks", hook, reader).ok()["webhook"].(object)["id"].(string)
	s.call("PATCH", path, object{"url": "http://127.0.0.1:8/"}, blind).fails(403, "Forbidden", words, "")
	s.call("PATCH", path, object{"events": []string{"user.*"}}, blind).fails(403, "Forbidden", words, "")
	s.call("PATCH", path, object{"enabled": false}, blind).ok()
	s.call("PATCH", path, object{"events": []string{"user.*"}}, reader).ok()
}

func TestNobodyEndsAKeyThatOpensMore(t *testing.T) {
	s := sqlite(t)
	keeper := s.limited(mesh.RoleAdmin, "apikeys", "nodes")
	end := func(id, by string) []*answer {
		return []*answer{s.call("POST", "/api/v1/apikey/expire", object{"id": id}, by), s.call("DELETE", "/api/v1/apikey/"+id, nil, by)}
	}
	for _, a := range end("1", keeper) {
		a.fails(403, "Forbidden", "Forbidden: an API key cannot revoke a key with more permissions; use a key with at least the permissions of "+prefixOf(s.key)+", or the local socket", "")
	}
	s.call("POST", "/api/v1/apikey/expire", object{"prefix": prefixOf(s.key)[:4]}, keeper)
	s.call("GET", "/api/v1/whoami", nil).ok()
	s.limited(mesh.RoleRead, "nodes")
	for _, a := range end("3", keeper) {
		a.ok()
	}
	s.direct(s.local, "DELETE", "/api/v1/apikey/1", nil, noKey).ok()
}

func TestKeyWithoutRoleInTheRequestIsAdmin(t *testing.T) {
	s := sqlite(t).listen()
	key := s.call("POST", "/api/v1/apikey", object{"expiration": nil}).ok()["apiKey"].(string)
	me := s.call("GET", "/api/v1/whoami", nil, "Authorization: Bearer "+key).ok()
	if me["role"] != "admin" || me["kind"] != "key" || !strings.HasSuffix(me["name"].(string), "_***") || me["expiration"] == nil {
		t.Errorf("caller: %v", me)
	}
	local := s.direct(s.local, "GET", "/api/v1/whoami", nil, noKey).ok()
	if local["kind"] != "local" || local["name"] != "ada" || local["role"] != "admin" || local["expiration"] != nil {
		t.Errorf("caller on the local socket: %v", local)
	}
}
