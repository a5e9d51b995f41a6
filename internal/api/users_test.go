package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// newUser creates a user and returns its ID.
func (s *service) newUser(name string) string {
	s.t.Helper()
	return s.call("POST", "/api/v1/user", object{"name": name}).ok()["user"].(object)["id"].(string)
}

// names lists the names of the users that match a query.
func (s *service) names(query string) []string {
	s.t.Helper()
	found := []string{}
	for _, u := range s.call("GET", "/api/v1/user"+query, nil).ok()["users"].([]any) {
		found = append(found, u.(object)["name"].(string))
	}
	return found
}

func TestUserIsCreatedAsAsked(t *testing.T) {
	s := sqlite(t)
	got := s.call("POST", "/api/v1/user", object{
		"name": "alice", "displayName": "Алиса ⚓", "email": "alice@example.com", "pictureUrl": "https://example.com/a.png",
	}).ok()["user"].(object)
	want := object{
		"id": "1", "name": "alice", "createdAt": got["createdAt"], "displayName": "Алиса ⚓", "email": "alice@example.com",
		"providerId": "", "provider": "", "profilePicUrl": "https://example.com/a.png", "nodeCount": 0.0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{got}, s.call("GET", "/api/v1/user", nil).ok()["users"]); diff != "" {
		t.Errorf("list (-answer +list):\n%s", diff)
	}
	s.newUser("Bob")
	if diff := cmp.Diff([]string{"alice", "Bob"}, s.names("")); diff != "" {
		t.Errorf("list after another creation (-want +got):\n%s", diff)
	}
	if lines := s.log.lines(t, "user name has uppercase letters; lowercase is recommended"); len(lines) != 1 || lines[0]["user"] != "Bob" {
		t.Errorf("warnings of capitals: %v", lines)
	}
}

func TestUserThatCannotBeIsRefused(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	const rule = "it must begin with a letter, followed by letters, digits, '.', '_', '-' or '@'"
	for _, c := range []struct {
		body   any
		detail string
		path   string
	}{
		{nil, "name is required", "name"},
		{"{}", "name is required", "name"},
		{object{"name": ""}, "name is required", "name"},
		{object{"name": nil}, "name is required", "name"},
		{object{"name": "Bob Smith"}, `invalid user name "Bob Smith": ` + rule + `; try "bob-smith"`, "name"},
		{object{"name": "7of9"}, `invalid user name "7of9": ` + rule + `; try "of9"`, "name"},
		{object{"name": "ümlaut"}, `invalid user name "ümlaut": ` + rule + `; try "umlaut"`, "name"},
		{object{"name": "jöhn"}, `invalid user name "jöhn": ` + rule + `; try "john"`, "name"},
		{object{"name": "иван"}, `invalid user name "иван": ` + rule, "name"},
		{object{"name": "bob\n"}, `invalid user name "bob\n": ` + rule + `; try "bob"`, "name"},
		{object{"name": "bob\x00"}, `invalid user name "bob\x00": ` + rule + `; try "bob"`, "name"},
		{object{"name": strings.Repeat("a", 129)}, "a user name can have at most 128 characters", "name"},
		{object{"name": "Tagged-Devices"}, "tagged-devices is reserved: it stands for tagged nodes; choose another name", "name"},
		{object{"name": true}, "name must be a string", "name"},
		{object{"name": []string{"a"}}, "name must be a string", "name"},
		{object{"name": "bob", "displayName": "a\x00b"}, "displayName contains the unprintable character U+0000", "displayName"},
		{object{"name": "bob", "displayName": "\ufeffbob"}, "displayName contains the unprintable character U+FEFF", "displayName"},
		{object{"name": "bob", "displayName": "b\u202eob"}, "displayName contains the unprintable character U+202E", "displayName"},
		{object{"name": "bob", "displayName": "b\u2069"}, "displayName contains the unprintable character U+2069", "displayName"},
		{object{"name": "bob", "displayName": "b\u2029b"}, "displayName contains the unprintable character U+2029", "displayName"},
		{object{"name": "bob", "displayName": "b\ufffe"}, "displayName contains the unprintable character U+FFFE", "displayName"},
		{object{"name": "bob", "displayName": "b\U0001ffff"}, "displayName contains the unprintable character U+1FFFF", "displayName"},
		{object{"name": "bob", "email": "a\nb"}, "email contains the unprintable character U+000A", "email"},
		{object{"name": "bob", "pictureUrl": strings.Repeat("x", 513)}, "pictureUrl is longer than 512 bytes", "pictureUrl"},
		{"{\"name\":\"bob\",\"displayName\":\"a\xffb\"}", "the request body is not valid UTF-8", ""},
		{`{"name":"bob","displayName":"\ud800"}`, "displayName is not valid UTF-8", "displayName"},
		{`{"name":"bob"`, "the request body is not valid JSON: unexpected end of JSON input at byte 13", ""},
		{`{"name":"bob"}{}`, "the request body is not valid JSON: invalid character '{' after top-level value at byte 15", ""},
		{`[]`, "the request body must be a JSON object", ""},
		{`"alice"`, "the request body must be a JSON object", ""},
	} {
		s.call("POST", "/api/v1/user", c.body).fails(400, "Bad Request", c.detail, c.path)
	}
	for _, name := range []string{"alice", "ALICE"} {
		s.call("POST", "/api/v1/user", object{"name": name}).
			fails(409, "Conflict", `user "alice" already exists; user names are not case-sensitive`, "")
	}
	if diff := cmp.Diff([]string{"alice"}, s.names("")); diff != "" || s.ledger.World().Rev != 2 {
		t.Errorf("revision %d, users (-want +got):\n%s", s.ledger.World().Rev, diff)
	}
}

func TestUsersAreFoundByOneFilter(t *testing.T) {
	s := sqlite(t)
	for _, name := range []string{"alice", "bob", "carol"} {
		s.call("POST", "/api/v1/user", object{"name": name, "email": name + "@example.com"}).ok()
	}
	for query, want := range map[string][]string{
		"":                                 {"alice", "bob", "carol"},
		"?name=":                           {"alice", "bob", "carol"},
		"?name=BOB":                        {"bob"},
		"?email=carol@example.com":         {"carol"},
		"?id=1":                            {"alice"},
		"?name=bob&email=x&id=1":           {"bob"},
		"?email=carol@example.com&id=1":    {"carol"},
		"?name=nobody":                     {},
		"?id=99":                           {},
		"?id=alice":                        {},
		"?unknown=1":                       {"alice", "bob", "carol"},
		"?name=%00":                        {},
		"?name=%ff":                        {},
		"?email=" + strings.Repeat("x", 9): {},
	} {
		if diff := cmp.Diff(want, s.names(query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

func TestListsAreSortedByNumberNotByText(t *testing.T) {
	s := sqlite(t)
	var want []string
	for i := range 11 {
		want = append(want, fmt.Sprintf("u%d", i))
		s.newUser(want[i])
	}
	if diff := cmp.Diff(want, s.names("")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUserIsRenamedByNameOrID(t *testing.T) {
	s := sqlite(t)
	id := s.newUser("alice")
	s.newUser("bob")
	rename := func(ref, name string) *answer { return s.call("POST", "/api/v1/user/"+ref+"/rename/"+name, nil) }
	for _, c := range []struct{ ref, name string }{{id, "carol"}, {"CAROL", "Carol"}, {"carol", "carol"}, {"carol", "carol"}, {"carol", "a@b.c"}} {
		if got := rename(c.ref, c.name).ok()["user"].(object); got["name"] != c.name || got["id"] != id {
			t.Errorf("%v: %v", c, got)
		}
	}
	if n := len(s.log.lines(t, "user renamed")); n != 4 {
		t.Errorf("%d renames are logged, want 4: one was none", n)
	}
	rename("nobody", "dave").fails(404, "Not Found", `unknown user "nobody"; list users with: fairlead users list`, "")
	rename("99", "dave").fails(404, "Not Found", `unknown user "99"; list users with: fairlead users list`, "")
	rename(id, "BOB").fails(409, "Conflict", `user "bob" already exists; user names are not case-sensitive`, "")
	for _, name := range []string{"a%20b", "1a", "%00", "a%2Fb", "%ff", "-"} {
		if a := rename(id, name); a.status != 400 || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if diff := cmp.Diff([]string{"a@b.c", "bob"}, s.names("")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUserIsDeletedWithNodesAndKeys(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	s.newUser("bob")
	own := s.preAuthKey(object{"user": "alice", "reusable": true})
	tagged := s.preAuthKey(object{"user": "alice", "reusable": true, "aclTags": []string{"tag:web"}})
	other := s.preAuthKey(object{"user": "bob"})
	for n, key := range []string{own, own, tagged, other} {
		s.call("POST", "/api/v1/machine", machine(uint64(n), key), noKey).ok()
	}
	node := s.call("GET", "/api/v1/node/3", nil).ok()["node"].(object)
	if node["user"].(object)["name"] != "tagged-devices" || node["createdBy"].(object)["name"] != "alice" {
		t.Errorf("a tagged node: user %v, created by %v", node["user"], node["createdBy"])
	}
	if users := s.call("GET", "/api/v1/user?name=alice", nil).ok()["users"].([]any); users[0].(object)["nodeCount"] != 2.0 {
		t.Errorf("alice has %v nodes, want 2: tagged ones do not count", users[0].(object)["nodeCount"])
	}

	name := s.call("GET", "/api/v1/node/3", nil).ok()["node"].(object)["givenName"]
	want := object{"deletedNodes": 2.0, "taggedNodes": []any{object{"id": "3", "name": name, "tags": []any{"tag:web"}}}}
	for range 2 { // the second request is a replay
		got := s.call("DELETE", "/api/v1/user/ALICE", nil, "Idempotency-Key: gone").ok()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	s.call("DELETE", "/api/v1/user/1", nil).fails(404, "Not Found", `unknown user "1"; list users with: fairlead users list`, "")
	if diff := cmp.Diff([]string{"bob"}, s.names("")); diff != "" {
		t.Errorf("users (-want +got):\n%s", diff)
	}
	keys := s.call("GET", "/api/v1/preauthkey", nil).ok()["preAuthKeys"].([]any)
	if len(keys) != 1 || keys[0].(object)["user"].(object)["name"] != "bob" {
		t.Errorf("keys that stay: %v", keys)
	}
	node = s.call("GET", "/api/v1/node/3", nil).ok()["node"].(object)
	if node["createdBy"] != nil || node["preAuthKey"] != nil || node["user"].(object)["name"] != "tagged-devices" {
		t.Errorf("the node with tags: %v", node)
	}
	if nodes := s.call("GET", "/api/v1/node", nil).ok()["nodes"].([]any); len(nodes) != 2 {
		t.Errorf("%d nodes stay, want 2", len(nodes))
	}
	for _, key := range []string{own, tagged} {
		s.call("POST", "/api/v1/machine", machine(9, key), noKey).
			fails(401, "Node registration rejected", "Authentication failed: invalid key", "")
	}
	if id := s.newUser("alice"); id != "3" {
		t.Errorf("the id %s was handed out before", id)
	}
}

func TestTaggedNodesGoWithTheirUserWhenAsked(t *testing.T) {
	s := sqlite(t)
	node := uint64(0)
	register := func(user string) {
		node++
		key := s.preAuthKey(object{"user": user, "aclTags": []string{"tag:web"}})
		s.call("POST", "/api/v1/machine", machine(node, key), noKey).ok()
	}
	left := func() (ids []string) {
		for _, n := range s.call("GET", "/api/v1/node", nil).ok()["nodes"].([]any) {
			ids = append(ids, n.(object)["id"].(string))
		}
		return ids
	}
	for _, user := range []string{"alice", "bob", "carol"} {
		s.newUser(user)
		register(user)
	}
	want := object{"deletedNodes": 1.0, "taggedNodes": []any{}}
	for range 2 {
		got := s.call("DELETE", "/api/v1/user/alice?deleteTagged=true", nil, "Idempotency-Key: alice").ok()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff([]string{"2", "3"}, left()); diff != "" {
		t.Fatalf("nodes that stay (-want +got):\n%s", diff)
	}

	// A key that cannot see nodes learns that a node remains, but cannot delete it.
	users := s.limited(mesh.RoleOperator, "users", "preauthkeys")
	s.call("POST", "/api/v1/user/bulk", object{"ids": []string{"2"}, "action": "delete", "deleteTagged": true}, users).
		fails(403, "Forbidden", "Forbidden: deleting user bob also deletes their nodes, which requires the scope nodes; the API key has [users preauthkeys]", "")
	for range 2 {
		got := s.call("POST", "/api/v1/user/bulk", object{"ids": []string{"2", "2"}, "action": "delete"}, users, "Idempotency-Key: bob").ok()
		if diff := cmp.Diff([]any{object{"id": "2", "name": "", "tags": []any{}}}, got["taggedNodes"]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	s.call("POST", "/api/v1/user/bulk", object{"ids": []string{"3"}, "action": "delete", "deleteTagged": true}).ok()
	if diff := cmp.Diff([]string{"2"}, left()); diff != "" {
		t.Errorf("nodes that stay (-want +got):\n%s", diff)
	}
}

func TestListOfUsersFollowsEveryChange(t *testing.T) {
	s := sqlite(t)
	count := func() (total float64) {
		for _, u := range s.call("GET", "/api/v1/user", nil).ok()["users"].([]any) {
			total += 1 + 100*u.(object)["nodeCount"].(float64)
		}
		return total
	}
	expect := func(want float64) {
		t.Helper()
		if got := count(); got != want {
			t.Errorf("users plus 100 for each node: %v, want %v", got, want)
		}
	}
	expect(0)
	s.newUser("alice")
	expect(1)
	key := s.preAuthKey(object{"user": "alice", "reusable": true})
	expect(1)
	s.call("POST", "/api/v1/machine", machine(1, key), noKey).ok()
	expect(101)
	s.newUser("bob")
	expect(102)
	s.call("DELETE", "/api/v1/user/alice", nil).ok()
	expect(1)
}
