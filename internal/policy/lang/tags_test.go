package lang_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

const example = `{
	// Comments and trailing commas are fine.
	"groups": {
		"group:admins": ["Alice@", "bob"],
		"group:empty": [],
	},
	"tagOwners": {
		"tag:web":     ["group:admins", "carol@example.com"],
		"tag:db":      ["alice", "group:empty"],
		"tag:lab":     ["autogroup:member"],
		"tag:vault":   ["autogroup:admin"],
		"tag:ci":      [],
		"tag:preview": ["tag:ci"],
		"tag:branch":  ["tag:preview", "tag:branch"],
	},
	"acls": [{"action": "accept", "src": ["*"], "dst": ["*:*"]}],
}`

func parsed(t *testing.T, text string) *lang.Doc {
	t.Helper()
	if text == "" {
		return nil
	}
	doc, err := lang.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func user(name string) *mesh.User {
	if name == "" {
		return nil
	}
	return &mesh.User{ID: 1, Name: name}
}

func TestTagsGoToTheirOwnersAndToKeysThatCarryThem(t *testing.T) {
	for _, c := range []struct {
		doc, user string
		key       *mesh.PreAuthKey
		tag       string
		allowed   bool
	}{
		{example, "alice", nil, "tag:web", true}, // by group, ignoring case and "@"
		{example, "BOB", nil, "tag:web", true},
		{example, "carol@example.com", nil, "tag:web", true},
		{example, "carol", nil, "tag:web", false},
		{example, "alice", nil, "tag:db", true},
		{example, "bob", nil, "tag:db", false},
		{example, "bob", nil, "tag:lab", true},
		{example, "", nil, "tag:lab", false},
		{example, "alice", nil, "tag:ci", false},
		{example, "alice", nil, "tag:unknown", false},
		{example, "alice", &mesh.PreAuthKey{Tags: []string{"tag:unknown"}}, "tag:unknown", true}, // the key's own tag
		{example, "", &mesh.PreAuthKey{Tags: []string{"tag:ci"}}, "tag:ci", true},
		{example, "", &mesh.PreAuthKey{Tags: []string{"tag:ci"}}, "tag:preview", true},
		{example, "", &mesh.PreAuthKey{Tags: []string{"tag:ci"}}, "tag:branch", true}, // owned by a tag that the key's tag owns
		{example, "", &mesh.PreAuthKey{Tags: []string{"tag:preview"}}, "tag:ci", false},
		{example, "", &mesh.PreAuthKey{Tags: []string{"tag:branch"}}, "tag:preview", false},
		{example, "", &mesh.PreAuthKey{}, "tag:web", false},
		{example, "", nil, "tag:web", false},
		{"{}", "alice", nil, "tag:web", false},
		{"", "alice", nil, "tag:web", false}, // without a policy, only the key matters
		{"", "alice", &mesh.PreAuthKey{Tags: []string{"tag:web"}}, "tag:web", true},
		{"", "alice", &mesh.PreAuthKey{Tags: []string{"tag:web"}}, "tag:db", false},
	} {
		err := parsed(t, c.doc).MayTag(user(c.user), c.key, c.tag)
		if (err == nil) != c.allowed || err != nil && !errors.Is(err, lang.ErrTagDenied) {
			t.Errorf("%q with key %v asks for %s: %v, want allowed %v", c.user, c.key, c.tag, err, c.allowed)
		}
	}
}

func TestTagsOfAdministratorsGoToUsersWithTheAssignedRole(t *testing.T) {
	doc := parsed(t, example)
	for want, u := range map[bool]*mesh.User{true: {ID: 1, Name: "dora", Role: mesh.RoleAdmin}, false: {ID: 2, Name: "eve", Role: mesh.RoleOperator}} {
		if got := doc.MayTag(u, nil, "tag:vault") == nil; got != want {
			t.Errorf("%s: %v, want %v", u.Name, got, want)
		}
	}
	if doc.MayTag(&mesh.User{ID: 3, Name: "fay", Role: mesh.RoleAdmin, NeedsApproval: true}, nil, "tag:vault") == nil {
		t.Error("an administrator who waits for approval has the tag")
	}
}

func TestUsersAreNamedByTheirEmailAddressToo(t *testing.T) {
	doc := parsed(t, `{"groups": {"group:a": ["alice@example.com"]}, "tagOwners": {"tag:a": ["group:a"], "tag:b": ["Alice@Example.com"], "tag:c": ["example.com"]}}`)
	alice := &mesh.User{ID: 1, Name: "alice", Email: "Alice@example.com"}
	for tag, want := range map[string]bool{"tag:a": true, "tag:b": true, "tag:c": false} {
		if got := doc.MayTag(alice, nil, tag) == nil; got != want {
			t.Errorf("%s: %v, want %v", tag, got, want)
		}
	}
	if doc.MayTag(user("bob"), nil, "tag:b") == nil {
		t.Error("a user without an address has the tag of another")
	}
}

// A user whose name ends in "@" must not be mistaken for the one without it.
func TestOneAtSignAtTheEndIsNoPartOfAName(t *testing.T) {
	doc := parsed(t, `{"tagOwners": {"tag:a": ["eve@"], "tag:b": ["eve@@"]}}`)
	for name, want := range map[string][2]bool{"eve": {true, false}, "eve@": {false, true}} {
		got := [2]bool{doc.MayTag(user(name), nil, "tag:a") == nil, doc.MayTag(user(name), nil, "tag:b") == nil}
		if got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// Headscale accepts tags with colons. A destination must still have only one meaning.
func TestTagWithColonsIsNeverTakenForPorts(t *testing.T) {
	for _, tag := range []string{"tag:a", "tag:terra_form", "tag:terraform:tests", "tag:a:b:c-1", "tag:a.b;c", "tag:a:x80"} {
		if err := lang.CheckTag(tag); err != nil {
			t.Error(err)
			continue
		}
		for ports, want := range map[string]lang.PortRange{"80": {First: 80, Last: 80}, "*": {First: 0, Last: 65535}, "8000-8100": {First: 8000, Last: 8100}} {
			// Tags with one part fewer are declared too, so both readings would be
			// valid.
			owners, _ := json.Marshal(map[string][]string{"tag:a": {}, "tag:terraform": {}, "tag:a:b": {}, tag: {}})
			doc, problems := lang.Parse(fmt.Appendf(nil, `{"tagOwners": %s, "acls": [{"action": "accept", "src": ["*"], "dst": ["%s:%s"]}]}`, owners, tag, ports))
			if len(problems) > 0 {
				t.Errorf("%s:%s: %v", tag, ports, problems)
				continue
			}
			if d := doc.Rules[0].Dst[0]; d.Name != tag || d.Services[0].Ports[0] != want {
				t.Errorf("%s:%s is %+v", tag, ports, d)
			}
		}
		_, problems := lang.Parse(fmt.Appendf(nil, `{"tagOwners": {%q: []}, "acls": [{"action": "accept", "src": ["*"], "dst": [%q]}]}`, tag, tag))
		if len(problems) != 1 || !strings.Contains(problems[0].Text, "has no ports") {
			t.Errorf("%s without ports: %v", tag, problems)
		}
	}
	for _, tag := range []string{
		"tag:80", "tag:a:80", "tag:a:*", "tag:*", "tag:a:80-90", "tag:a:1b", "tag:a:", "tag:a::b", "tag::a", "tag:a,b", "tag:a b", "tag:a\n", "tag:ä", "tag:a@b", "tag:a/b", `tag:a"`,
		"tag:" + strings.Repeat("a", 64),
	} {
		if lang.CheckTag(tag) == nil {
			t.Errorf("%q is a tag", tag)
		}
	}
}

func TestAdministratorsMayUseTagsThatThePolicyKnows(t *testing.T) {
	for _, c := range []struct {
		doc, tag string
		known    bool
	}{
		{example, "tag:ci", true},
		{example, "tag:unknown", false},
		{example, "ci", false},
		{"", "tag:unknown", true},
		{"", "tag:", false},
		{"", "tag:1", false},
		{"{}", "tag:ci", false},
	} {
		if err := parsed(t, c.doc).KnowsTag(c.tag); (err == nil) != c.known {
			t.Errorf("%s: %v, want known %v", c.tag, err, c.known)
		}
	}
}
