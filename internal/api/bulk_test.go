package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// several changes nodes with one bulk request. For each it returns its tags, "gone" if
// it was deleted, or why the change failed.
func (s *service) several(action string, tags []string, ids ...string) (became []string) {
	s.t.Helper()
	body := object{"ids": ids, "action": action}
	if tags != nil {
		body["tags"] = tags
	}
	for i, r := range s.call("POST", "/api/v1/node/bulk", body).ok()["results"].([]any) {
		r := r.(object)
		node, there := r["node"].(object)
		switch {
		case r["id"] != ids[i]:
			s.t.Errorf("result %d is about %v, not %s", i, r["id"], ids[i])
		case r["ok"] != true:
			e := r["error"].(object)
			became = append(became, fmt.Sprintf("%v: %s", e["code"], e["message"]))
		case there:
			became = append(became, fmt.Sprint(node["tags"]))
		default:
			became = append(became, "gone")
		}
	}
	return became
}

func TestEachOfManyNodesIsDecidedByItself(t *testing.T) {
	s := sqlite(t)
	key := s.preAuthKey(object{"user": s.newUser("alice"), "reusable": true})
	for n := range uint64(3) {
		s.register(machine(n+1, key)).ok()
	}
	const absent, last = `5: unknown node "99"; list nodes with: fairlead nodes list`, "3: cannot remove the last tag of a node; delete the node and let it join again with a pre-auth key of a user"
	for _, c := range []struct {
		action string
		tags   []string
		ids    []string
		want   []string
	}{
		{"setTags", []string{"tag:b"}, []string{"1", "99", "2"}, []string{"[tag:b]", absent, "[tag:b]"}},
		{"addTags", []string{"tag:a", "tag:b"}, []string{"1", "3"}, []string{"[tag:a tag:b]", "[tag:a tag:b]"}},
		{"removeTags", []string{"tag:b"}, []string{"1", "2", "3"}, []string{"[tag:a]", last, "[tag:a]"}},
		{"expire", nil, []string{"1", "1", "2"}, []string{"[tag:a]", "[tag:a]", "[tag:b]"}},
		{"approveRoutes", nil, []string{"1"}, []string{"[tag:a]"}},
		{"delete", nil, []string{"1", "1", "99", "3"}, []string{"gone", "gone", absent, "gone"}},
	} {
		if diff := cmp.Diff(c.want, s.several(c.action, c.tags, c.ids...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.action, diff)
		}
	}
	if nodes := s.call("GET", "/api/v1/node", nil).ok()["nodes"].([]any); len(nodes) != 1 || nodes[0].(object)["expired"] != true {
		t.Errorf("%v", nodes)
	}
}

func TestManyNodesExpireWhenOneWould(t *testing.T) {
	const later = "2090-01-01T00:00:00Z"
	for name, c := range map[string]struct {
		body            object
		expiry, expired any
	}{
		"at a time": {object{"expiry": later}, later, false},
		"never":     {object{"disableExpiry": true}, nil, false},
		"unset":     {object{"expiry": nil, "disable_expiry": false}, "", true},
		"long ago":  {object{"expiry": "2001-01-01T00:00:00Z"}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := crowded(t, 1)
			s.several("expire", nil, "1")
			one := s.call("POST", "/api/v1/node/3/expire", c.body).ok()["node"].(object)
			c.body["ids"], c.body["action"] = []string{"1", "2"}, "expire"
			for _, r := range s.call("POST", "/api/v1/node/bulk", c.body).ok()["results"].([]any) {
				for _, n := range []object{r.(object)["node"].(object), one} {
					if at := n["expiry"]; n["expired"] != c.expired || c.expired == false && at != c.expiry {
						t.Errorf("node %v: expiry %v, expired %v", n["id"], at, n["expired"])
					}
				}
			}
		})
	}
}

func TestMisspeltExpiryExpiresNobody(t *testing.T) {
	s := crowded(t, 1)
	rev := s.ledger.World().Rev
	const unknown = `unknown field "disableExpiri": nothing was changed; known fields are `
	s.call("POST", "/api/v1/node/1/expire", object{"disableExpiri": true}).fails(400, "Bad Request", unknown+"disableExpiry, expiry", "disableExpiri")
	bulk := func(action string, more object) *answer {
		more["ids"], more["action"] = []string{"1"}, action
		return s.call("POST", "/api/v1/node/bulk", more)
	}
	bulk("expire", object{"disableExpiri": true}).fails(400, "Bad Request", unknown+"action, disableExpiry, expiry, ids, tags", "disableExpiri")
	bulk("expire", object{"disableExpiry": true, "expiry": "2090-01-01T00:00:00Z"}).fails(400, "Bad Request", "specify only one of expiry and disableExpiry", "disableExpiry")
	bulk("delete", object{"disableExpiry": true}).fails(400, "Bad Request", `expiry and disableExpiry are valid only with "action": "expire"`, "action")
	if now := s.ledger.World().Rev; now != rev {
		t.Errorf("revision %d, was %d", now, rev)
	}
}

func TestRoutesOfManyNodesAreApproved(t *testing.T) {
	s := sqlite(t)
	routers(s, 3, "10.1.0.0/16", "0.0.0.0/0", "::/0")
	s.several("approveRoutes", nil, "1", "3")
	for id, want := range map[string]int{"1": 3, "2": 0, "3": 3} {
		if got := s.call("GET", "/api/v1/node/"+id, nil).ok()["node"].(object)["approvedRoutes"].([]any); len(got) != want {
			t.Errorf("node %s has %v", id, got)
		}
	}
	if n := len(s.log.lines(t, "route enabled")); n != 6 {
		t.Errorf("%d routes enabled", n)
	}
}

func TestManyKeysAndUsersAreChangedAtOnce(t *testing.T) {
	s := sqlite(t)
	alice, bob := s.newUser("alice"), s.newUser("bob")
	for range 3 {
		s.preAuthKey(object{"user": "alice"})
	}
	call := func(path, action string, ids ...string) (done []any) {
		for _, r := range s.call("POST", path, object{"ids": ids, "action": action}).ok()["results"].([]any) {
			done = append(done, r.(object)["ok"])
		}
		return done
	}
	for _, c := range []struct {
		got  []any
		want []any
	}{
		{call("/api/v1/preauthkey/bulk", "expire", "1", "99", "2", "1"), []any{true, false, true, true}},
		{call("/api/v1/preauthkey/bulk", "delete", "1", "1", "99"), []any{true, true, false}},
		{call("/api/v1/user/bulk", "delete", alice, "99", bob), []any{true, false, true}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Error(diff)
		}
	}
	if w := s.ledger.World(); w.Users.Len() != 0 || len(slices.Collect(w.PreAuthKeys.All())) != 0 {
		t.Error("something is left")
	}
}

func TestBulkCallThatIsWrongChangesNothing(t *testing.T) {
	s := crowded(t, 1)
	rev := s.ledger.World().Rev
	long := strings.Split(strings.Repeat("1,", 1000)+"1", ",")
	for _, c := range []struct {
		path, action string
		ids, tags    []string
		detail, at   string
	}{
		{"node", "expire", nil, nil, "ids must list 1 to 1000 objects", "ids"},
		{"node", "expire", long, nil, "ids must have at most 1000 elements", "ids"},
		{"node", "expire", []string{"1", "web"}, nil, `invalid id "web"`, "ids[1]"},
		{"node", "explode", []string{"1"}, nil, "action must be expire, delete, addTags, removeTags, setTags, approveRoutes, approve or withdrawApproval", "action"},
		{"node", "", []string{"1"}, nil, "action is required", "action"},
		{"node", "addTags", []string{"1"}, nil, "specify at least one tag", "tags"},
		{"node", "delete", []string{"1"}, []string{"tag:a"}, "tags are valid only with the actions addTags, removeTags and setTags", "tags"},
		{"preauthkey", "addTags", []string{"1"}, nil, "action must be expire or delete", "action"},
		{"user", "expire", []string{"1"}, nil, "action must be delete", "action"},
	} {
		body := object{"ids": c.ids, "action": c.action}
		if c.tags != nil {
			body["tags"] = c.tags
		}
		s.call("POST", "/api/v1/"+c.path+"/bulk", body).fails(400, "Bad Request", c.detail, c.at)
	}
	if now := s.ledger.World().Rev; now != rev {
		t.Errorf("revision %d, was %d", now, rev)
	}
}

func TestAThousandNodesAreOneChangeThatIsRemembered(t *testing.T) {
	s := crowded(t, 1)
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = fmt.Sprint(i + 500) // half of them do not exist
	}
	rev := s.ledger.World().Rev
	var first string
	for range 2 {
		a := s.call("POST", "/api/v1/node/bulk", object{"ids": ids, "action": "delete"}, "Idempotency-Key: k")
		a.ok()
		done := 0
		for _, r := range a.decoded()["results"].([]any) {
			if r := r.(object); r["ok"] == true {
				done++
			} else if r["error"].(object)["code"] != 5.0 {
				t.Fatal(r)
			}
		}
		if done != 501 || s.ledger.World().Rev != rev+1 || s.ledger.World().Nodes.Len() != 499 {
			t.Fatalf("%d done, revision %d, %d nodes", done, s.ledger.World().Rev, s.ledger.World().Nodes.Len())
		}
		if diff := cmp.Diff(first, string(a.body)); first != "" && diff != "" {
			t.Error(diff)
		}
		first = string(a.body)
	}
}

func TestRoutesOfManyNodesNeedTheirScope(t *testing.T) {
	s := sqlite(t)
	routers(s, 1, "10.1.0.0/16")
	key := s.limited(mesh.RoleOperator, "nodes")
	s.call("POST", "/api/v1/node/bulk", object{"ids": []string{"1"}, "action": "approveRoutes"}, key).
		fails(403, "Forbidden", "Forbidden: this operation requires the scope routes; the API key has [nodes]", "")
	s.call("POST", "/api/v1/node/bulk", object{"ids": []string{"1"}, "action": "expire"}, key).ok()
}

func TestManyTagsAreCountedOnceAndRefusedAlike(t *testing.T) {
	s := crowded(t, 1)
	tags := make([]string, 64)
	for i := range tags {
		tags[i] = fmt.Sprintf("tag:t%02d", i)
	}
	add := func(tags ...string) *answer {
		return s.call("POST", "/api/v1/node/bulk", object{"ids": []string{"1"}, "action": "addTags", "tags": tags}, "Idempotency-Key: "+fmt.Sprint(len(tags), tags[0]))
	}
	add(tags...).ok()
	for i, again := range [][]string{tags[:1], slices.Concat(tags, tags)} {
		if r := add(again...).ok()["results"].([]any)[0].(object); r["ok"] != true {
			t.Errorf("tags that it has (%d): %v", i, r["error"])
		}
	}
	first, second := add("tag:one-more"), add("tag:one-more")
	if diff := cmp.Diff(first.decoded(), second.decoded()); diff != "" || second.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the first answer and its replay (-first +second):\n%s", diff)
	}
	if e := first.ok()["results"].([]any)[0].(object)["error"]; e == nil || e.(object)["message"] != "at most 64 tags are allowed" {
		t.Errorf("the 65th tag: %v", e)
	}
}
