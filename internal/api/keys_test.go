package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// preAuthKey creates a pre-auth key and returns its text.
func (s *service) preAuthKey(body object) string {
	s.t.Helper()
	return s.call("POST", "/api/v1/preauthkey", body).ok()["preAuthKey"].(object)["key"].(string)
}

// masked returns a key as it is shown after its creation.
func masked(key string) string { return key[:len("flk_")+12] + "_***" }

// prefixOf returns the public part of a key.
func prefixOf(key string) string { return key[len("flk_") : len("flk_")+12] }

func moment(t *testing.T, v any) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, v.(string))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestPreAuthKeyIsShownOnceAndMaskedAfter(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	until := time.Now().Add(24 * time.Hour).Truncate(time.Microsecond).UTC()
	made := s.call("POST", "/api/v1/preauthkey", object{
		"user": "alice", "description": "web servers", "reusable": true, "ephemeral": true, "aclTags": []string{"tag:web", "tag:db", "tag:web"}, "expiration": until,
	}).ok()["preAuthKey"].(object)
	text := made["key"].(string)
	want := object{
		"id": "1", "key": text, "user": made["user"], "description": "web servers", "reusable": true, "ephemeral": true, "preApproved": false, "used": false, "expired": false,
		"uses": 0.0, "lastUsed": nil, "lastUsedFrom": "", "expiration": until.Format(time.RFC3339Nano), "createdAt": made["createdAt"], "aclTags": []any{"tag:db", "tag:web"},
	}
	if diff := cmp.Diff(want, made); diff != "" || made["user"].(object)["name"] != "alice" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	want["key"] = masked(text)
	if diff := cmp.Diff([]any{want}, s.call("GET", "/api/v1/preauthkey", nil).ok()["preAuthKeys"]); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

func TestPreAuthKeyDescriptionIsOneShortLine(t *testing.T) {
	s := sqlite(t)
	for text, want := range map[string]int{
		"": http.StatusOK, strings.Repeat("x", 200): http.StatusOK, strings.Repeat("x", 201): http.StatusBadRequest, "two\nlines": http.StatusBadRequest,
	} {
		got := s.call("POST", "/api/v1/preauthkey", object{"aclTags": []string{"tag:web"}, "description": text})
		if got.status != want {
			t.Errorf("%.20q: %d, want %d", text, got.status, want)
		}
	}
}

// Headscale allows this too. No rule can name such a tag, so on its own it allows nothing.
func TestPreAuthKeyMayHaveTagsThatThePolicyDoesNotDeclare(t *testing.T) {
	s := sqlite(t)
	s.setPolicy(`{"tagOwners": {"tag:web": []}, "acls": [{"action": "accept", "src": ["tag:web"], "dst": ["tag:web:*"]}]}`).ok()
	made := s.call("POST", "/api/v1/preauthkey", object{"aclTags": []string{"tag:web", "tag:mail"}}).ok()
	if warnings := made["warnings"].([]any); len(warnings) != 1 || !strings.Contains(warnings[0].(string), "tag:mail is not defined in the policy's tagOwners") {
		t.Errorf("%v", warnings)
	}
	mail := s.register(machine(1, s.preAuthKey(object{"aclTags": []string{"tag:mail"}}))).ok()["node"].(object)
	web := s.register(machine(2, made["preAuthKey"].(object)["key"].(string))).ok()["node"].(object)
	if diff := cmp.Diff([]any{[]any{"tag:mail"}, []any{"tag:mail", "tag:web"}}, []any{mail["tags"], web["tags"]}); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	for _, c := range []struct{ from, to object }{{mail, web}, {web, mail}} {
		path := fmt.Sprintf("/api/v1/policy/why?from=%s&to=%s&port=22", c.from["givenName"], c.to["givenName"])
		if why := s.call("GET", path, nil).ok(); why["allowed"] != false {
			t.Errorf("%s: %v", path, why)
		}
	}
	// Existing nodes can only get tags that the policy declares.
	s.call("POST", "/api/v1/node/"+web["id"].(string)+"/tags", object{"tags": []string{"tag:mail"}}).
		fails(400, "Bad Request", "unknown tag: tag:mail is not defined in the policy's tagOwners; add it there first", "tags")
}

func TestPreAuthKeyNeedsAUserOrTags(t *testing.T) {
	s := sqlite(t)
	if made := s.call("POST", "/api/v1/preauthkey", object{"aclTags": []string{"tag:web"}}).ok()["preAuthKey"].(object); made["user"] != nil {
		t.Errorf("a key of tags alone has the user %v", made["user"])
	}
	for _, c := range []struct {
		status int
		body   object
		title  string
		detail string
		path   string
	}{
		{400, object{}, "Bad Request", "a pre-auth key requires a user or tags", "user"},
		{400, object{"aclTags": []string{}}, "Bad Request", "a pre-auth key requires a user or tags", "user"},
		{404, object{"user": "nobody"}, "Not Found", `unknown user "nobody"; list users with: fairlead users list`, ""},
		{404, object{"user": 7}, "Not Found", `unknown user "7"; list users with: fairlead users list`, ""},
		{400, object{"aclTags": []string{"tag:a", "web"}}, "Bad Request", `invalid tag "web": use tag: followed by letters, digits and hyphens, such as tag:server`, "aclTags[1]"},
		{400, object{"aclTags": []any{"tag:a", true}}, "Bad Request", "aclTags[1] must be a string", "aclTags[1]"},
		{400, object{"aclTags": "tag:a"}, "Bad Request", "aclTags must be a list", "aclTags"},
		{400, object{"reusable": "yes"}, "Bad Request", "reusable must be true or false", "reusable"},
		{400, object{"ephemeral": 1}, "Bad Request", "ephemeral must be true or false", "ephemeral"},
		{400, object{"user": object{}}, "Bad Request", "user must be a string", "user"},
		{400, object{"expiration": "tomorrow"}, "Bad Request", "expiration must be a time such as 2027-01-31T12:00:00Z", "expiration"},
		{400, object{"expiration": 1}, "Bad Request", "expiration must be a time such as 2027-01-31T12:00:00Z", "expiration"},
	} {
		s.call("POST", "/api/v1/preauthkey", c.body).fails(c.status, c.title, c.detail, c.path)
	}
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf("tag:t%d", i)
	}
	s.call("POST", "/api/v1/preauthkey", object{"aclTags": many}).fails(400, "Bad Request", "at most 64 tags are allowed", "aclTags")
}

func TestEveryKeyEnds(t *testing.T) {
	s := sqlite(t)
	for path, lifetime := range map[string]time.Duration{"/api/v1/preauthkey": time.Hour, "/api/v1/apikey": 90 * 24 * time.Hour} {
		expiration := func(body object) time.Time {
			t.Helper()
			body["aclTags"] = []string{"tag:a"}
			made := s.call("POST", path, body).ok()
			if key, ok := made["preAuthKey"].(object); ok {
				made = key
			}
			return moment(t, made["expiration"])
		}
		for _, unset := range []object{{}, {"expiration": nil}, {"expiration": ""}, {"expiration": "0001-01-01T00:00:00Z"}, {"expiration": "1970-01-01T00:00:00Z"}} {
			if left := time.Until(expiration(unset)); left > lifetime || left < lifetime-time.Minute {
				t.Errorf("%s %v: ends in %v, want %v", path, unset, left, lifetime)
			}
		}
		if got := expiration(object{"expiration": "2100-06-01T14:00:00+02:00"}); !got.Equal(time.Date(2100, 6, 1, 12, 0, 0, 0, time.UTC)) {
			t.Errorf("%s: %v", path, got)
		}
		body := object{"aclTags": []string{"tag:a"}, "expiration": "2020-01-01T00:00:00Z"}
		s.call("POST", path, body).
			fails(400, "Bad Request", "the expiration 2020-01-01T00:00:00Z is in the past", "expiration")
		body["expiration"] = "9999-12-31T23:59:59-01:00"
		s.call("POST", path, body).fails(400, "Bad Request", "expiration must not be after the year 9999", "expiration")
		s.call("GET", path, nil).ok()
	}
}

func TestPreAuthKeyIsNamedInManyWays(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	s.newUser("bob")
	expired := func(id string) bool {
		for _, k := range s.call("GET", "/api/v1/preauthkey", nil).ok()["preAuthKeys"].([]any) {
			if k.(object)["id"] == id {
				return k.(object)["expired"].(bool)
			}
		}
		t.Fatalf("no key %s", id)
		return false
	}
	for _, body := range []func(id, key string) object{
		func(id, _ string) object { return object{"id": id} },
		func(id, _ string) object { return object{"key": id} },
		func(_, key string) object { return object{"key": prefixOf(key)} },
		func(_, key string) object { return object{"key": masked(key)} },
		func(_, key string) object { return object{"key": key} },
		func(_, key string) object { return object{"user": "alice", "key": key} },
		func(id, _ string) object { return object{"user": 1, "id": id} },
	} {
		made := s.call("POST", "/api/v1/preauthkey", object{"user": "alice"}).ok()["preAuthKey"].(object)
		id, key := made["id"].(string), made["key"].(string)
		if expired(id) {
			t.Fatal("expired at birth")
		}
		s.call("POST", "/api/v1/preauthkey/expire", body(id, key)).ok()
		if !expired(id) {
			t.Errorf("%v did not expire the key", body(id, key))
		}
		rev := s.ledger.World().Rev
		s.call("POST", "/api/v1/preauthkey/expire", body(id, key)).ok()
		if s.ledger.World().Rev != rev {
			t.Error("expiring again changed something")
		}
		s.call("POST", "/api/v1/preauthkey/expire", object{"user": "bob", "key": key}).
			fails(404, "Not Found", "unknown pre-auth key; list pre-auth keys with: fairlead preauthkeys list", "")
	}
	if n := len(s.log.lines(t, "pre-auth key expired")); n != 7 {
		t.Errorf("%d expirations are logged, want 7", n)
	}
	for _, c := range []struct {
		body   object
		detail string
	}{
		{object{}, "specify the key by id or key"},
		{object{"user": "alice"}, "specify the key by id or key"},
		{object{"id": "1", "key": "2"}, "specify only one of id or key"},
	} {
		s.call("POST", "/api/v1/preauthkey/expire", c.body).fails(400, "Bad Request", c.detail, "")
	}
	for _, ref := range []string{"99", "0", "-1", "nothing", s.key, "flp_", "\x00"} {
		s.call("POST", "/api/v1/preauthkey/expire", object{"key": ref}).
			fails(404, "Not Found", "unknown pre-auth key; list pre-auth keys with: fairlead preauthkeys list", "")
	}
	s.call("POST", "/api/v1/preauthkey/expire", object{"id": "1", "user": "nobody"}).
		fails(404, "Not Found", `unknown user "nobody"; list users with: fairlead users list`, "")
}

func TestPreAuthKeysAreDeletedAndListedByUser(t *testing.T) {
	s := sqlite(t)
	s.newUser("alice")
	s.newUser("bob")
	keys := []string{s.preAuthKey(object{"user": "alice"}), s.preAuthKey(object{"user": "bob"}), s.preAuthKey(object{"user": "alice"})}
	list := func(query string) []string {
		found := []string{}
		for _, k := range s.call("GET", "/api/v1/preauthkey"+query, nil).ok()["preAuthKeys"].([]any) {
			found = append(found, k.(object)["key"].(string))
		}
		return found
	}
	for query, want := range map[string][]string{
		"": {masked(keys[0]), masked(keys[1]), masked(keys[2])}, "?user=alice": {masked(keys[0]), masked(keys[2])}, "?user=2": {masked(keys[1])},
	} {
		if diff := cmp.Diff(want, list(query)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
	if keys := s.call("GET", "/api/v1/preauthkey?user=9999", nil).ok()["preAuthKeys"].([]any); len(keys) != 0 {
		t.Errorf("keys of a user who is not there: %v", keys)
	}
	s.call("GET", "/api/v1/preauthkey?user=nobody", nil).fails(404, "Not Found", `unknown user "nobody"; list users with: fairlead users list`, "")
	s.call("DELETE", "/api/v1/preauthkey", nil).fails(400, "Bad Request", "missing parameter id", "id")
	for _, ref := range []string{"1", masked(keys[1]), keys[2]} {
		s.call("DELETE", "/api/v1/preauthkey?id="+ref, nil).ok()
		s.call("DELETE", "/api/v1/preauthkey?id="+ref, nil).
			fails(404, "Not Found", "unknown pre-auth key; list pre-auth keys with: fairlead preauthkeys list", "")
	}
	if len(list("")) != 0 {
		t.Errorf("keys stay: %v", list(""))
	}
}

func TestAPIKeyIsShownOnceAndMaskedAfter(t *testing.T) {
	s := sqlite(t)
	made := s.call("POST", "/api/v1/apikey", object{"comment": "backup"}).ok()
	text := made["apiKey"].(string)
	want := object{"apiKey": text, "id": "2", "prefix": masked(text), "role": "admin", "scopes": []any{}, "expiration": made["expiration"]}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	list := s.call("GET", "/api/v1/apikey", nil).ok()["apiKeys"].([]any)
	listed := list[1].(object)
	want = object{
		"id": "2", "prefix": masked(text), "role": "admin", "scopes": []any{}, "comment": "backup", "expiration": made["expiration"], "createdAt": listed["createdAt"], "lastSeen": nil, "lastUsedFrom": "", "expired": false,
	}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	s.call("GET", "/api/v1/user", nil, "Authorization: Bearer "+text).ok()
	s.call("POST", "/api/v1/apikey/expire", object{"prefix": masked(text)}).ok()
	s.call("GET", "/api/v1/user", nil, "Authorization: Bearer "+text).fails(401, "Unauthorized", invalid, "")
	list = s.call("GET", "/api/v1/apikey", nil).ok()["apiKeys"].([]any)
	if len(list) != 2 || list[0].(object)["expired"] != false || list[1].(object)["expired"] != true {
		t.Errorf("%v", list)
	}
}

func TestAPIKeysExpireByIDKeyOrPrefix(t *testing.T) {
	s := sqlite(t)
	expire := func(body object) *answer { return s.call("POST", "/api/v1/apikey/expire", body) }
	for _, body := range []func(id, key string) object{
		func(id, _ string) object { return object{"id": id} },
		func(id, _ string) object { return object{"key": id} },
		func(_, key string) object { return object{"key": key} },
		func(_, key string) object { return object{"prefix": prefixOf(key)} },
		func(_, key string) object { return object{"prefix": masked(key)} },
		func(_, key string) object { return object{"prefix": prefixOf(key)[:8]} },
	} {
		id, key := s.newKey()
		for range 2 { // expiring a key again changes nothing and gives the same response
			if diff := cmp.Diff([]any{masked(key)}, expire(body(id, key)).ok()["expired"]); diff != "" {
				t.Errorf("%v (-want +got):\n%s", body(id, key), diff)
			}
		}
		s.call("GET", "/api/v1/user", nil, "Authorization: Bearer "+key).fails(401, "Unauthorized", invalid, "")
	}
	if n := len(s.log.lines(t, "API key expired")); n != 6 {
		t.Errorf("%d expirations are logged, want 6", n)
	}
	for _, prefix := range []string{"a", "abc", "flk_", "flk_abc_***"} {
		expire(object{"prefix": prefix}).fails(400, "Bad Request", "specify at least 4 characters of the prefix", "prefix")
	}
	const unknown = "unknown API key; list API keys with: fairlead apikeys list"
	for _, body := range []object{{"id": "99"}, {"key": "nothing"}, {"prefix": "nothing"}, {"key": prefixOf(s.key)[:8]}, {"key": "flp_" + prefixOf(s.key) + "_***"}} {
		expire(body).fails(404, "Not Found", unknown, "")
	}
	expire(object{}).fails(400, "Bad Request", "specify the key by id, key or prefix", "")
	expire(object{"id": "1", "prefix": "abcd"}).fails(400, "Bad Request", "specify only one of id, key or prefix", "")
	s.call("GET", "/api/v1/user", nil).ok()
}

func TestAPIKeyIsDeletedByPrefixOrID(t *testing.T) {
	s := sqlite(t)
	for _, path := range []func(id, key string) string{
		func(id, _ string) string { return id },
		func(_, key string) string { return prefixOf(key) },
		func(_, key string) string { return masked(key) },
		func(_, key string) string { return key },
		func(id, _ string) string { return "ignored?id=" + id },
	} {
		id, key := s.newKey()
		s.call("DELETE", "/api/v1/apikey/"+path(id, key), nil).ok()
		s.call("GET", "/api/v1/user", nil, "Authorization: Bearer "+key).fails(401, "Unauthorized", invalid, "")
		s.call("DELETE", "/api/v1/apikey/"+path(id, key), nil).
			fails(404, "Not Found", "unknown API key; list API keys with: fairlead apikeys list", "")
	}
	if list := s.call("GET", "/api/v1/apikey", nil).ok()["apiKeys"].([]any); len(list) != 1 {
		t.Errorf("%v", list)
	}
}

func TestOldFormsOfRequestsAreTaken(t *testing.T) {
	s := sqlite(t)
	user := s.call("POST", "/api/v1/user", `{"name":"alice","display_name":"Alice","picture_url":"https://example.com/a.png","role":"admin","nested":{"a":[1]}}`).ok()["user"].(object)
	if user["displayName"] != "Alice" || user["profilePicUrl"] != "https://example.com/a.png" {
		t.Errorf("snake_case: %v", user)
	}
	key := s.call("POST", "/api/v1/preauthkey", `{"user":1,"reusable":true,"ephemeral":null,"expiration":null,"acl_tags":null}`).ok()["preAuthKey"].(object)
	if key["user"].(object)["name"] != "alice" || key["reusable"] != true || key["ephemeral"] != false {
		t.Errorf("a user by number: %v", key)
	}
	if got := s.call("POST", "/api/v1/preauthkey", `{"acl_tags":["tag:a"],"aclTags":["tag:b"]}`).ok()["preAuthKey"].(object)["aclTags"]; !cmp.Equal(got, []any{"tag:b"}) {
		t.Errorf("of both spellings the new one counts: %v", got)
	}
	node := s.call("POST", "/api/v1/machine", strings.NewReplacer("KEY", key["key"].(string), "MACHINE", machineKey(1), "NODE", nodeKey(1)).Replace(
		`{"pre_auth_key":"KEY","machine_key":"MACHINE","node_key":"NODE","hostname":"a","client_version":"1.2","routable_ips":["10.0.0.0/8"],"os":null}`), noKey).ok()["node"].(object)
	if node["clientVersion"] != "1.2" || !cmp.Equal(node["availableRoutes"], []any{"10.0.0.0/8"}) {
		t.Errorf("snake_case: %v", node)
	}
	s.call("POST", "/api/v1/preauthkey/expire", `{"user":1,"key":1}`).ok()
	s.call("POST", "/api/v1/preauthkey/expire", `{"id":2}`).ok()
	id, _ := s.newKey()
	s.call("POST", "/api/v1/apikey/expire", fmt.Sprintf(`{"id":%s}`, id)).ok()
}
