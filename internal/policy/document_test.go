package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy"
)

const example = `{
	// Comments and trailing commas are fine.
	"groups": {
		"group:admins": ["Alice@", "bob"],
		"group:empty": [],
	},
	"tagOwners": {
		"tag:web":     ["group:admins", "carol@example.com"],
		"tag:db":      ["alice", "group:empty", "autogroup:admin"],
		"tag:ci":      [],
		"tag:preview": ["tag:ci"],
		"tag:branch":  ["tag:preview", "tag:branch"],
	},
	"acls": [{"action": "accept", "src": ["*"], "dst": ["*:*"]}],
	"unknown": null,
}`

func world(t *testing.T, text string) *policy.World {
	t.Helper()
	if text == "" {
		return &policy.World{Snapshot: mesh.Empty()}
	}
	doc, err := policy.ParseDoc([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &policy.World{Snapshot: mesh.Empty(), Doc: doc}
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
		{example, "alice", nil, "tag:web", true}, // by group, without regard to case and "@"
		{example, "BOB", nil, "tag:web", true},
		{example, "carol@example.com", nil, "tag:web", true},
		{example, "carol", nil, "tag:web", false},
		{example, "alice", nil, "tag:db", true},
		{example, "bob", nil, "tag:db", false},
		{example, "admin", nil, "tag:db", false}, // an autogroup names nobody
		{example, "alice", nil, "tag:ci", false},
		{example, "alice", nil, "tag:unknown", false},
		{example, "alice", &mesh.PreAuthKey{Tags: []string{"tag:unknown"}}, "tag:unknown", true}, // its own
		{example, "", &mesh.PreAuthKey{Tags: []string{"tag:ci"}}, "tag:ci", true},
		{example, "", &mesh.PreAuthKey{Tags: []string{"tag:ci"}}, "tag:preview", true},
		{example, "", &mesh.PreAuthKey{Tags: []string{"tag:ci"}}, "tag:branch", true}, // owned by what it owns
		{example, "", &mesh.PreAuthKey{Tags: []string{"tag:preview"}}, "tag:ci", false},
		{example, "", &mesh.PreAuthKey{Tags: []string{"tag:branch"}}, "tag:preview", false},
		{example, "", &mesh.PreAuthKey{}, "tag:web", false},
		{example, "", nil, "tag:web", false},
		{"{}", "alice", nil, "tag:web", false},
		{"", "alice", nil, "tag:web", false}, // without a policy the key alone counts
		{"", "alice", &mesh.PreAuthKey{Tags: []string{"tag:web"}}, "tag:web", true},
		{"", "alice", &mesh.PreAuthKey{Tags: []string{"tag:web"}}, "tag:db", false},
	} {
		err := world(t, c.doc).MayTag(user(c.user), c.key, c.tag)
		if (err == nil) != c.allowed || err != nil && !errors.Is(err, policy.ErrTagDenied) {
			t.Errorf("%q with key %v asks for %s: %v, want allowed %v", c.user, c.key, c.tag, err, c.allowed)
		}
	}
}

// A user whose name ends in "@" must not pass for the one without it.
func TestOneAtSignAtTheEndIsNoPartOfAName(t *testing.T) {
	w := world(t, `{"tagOwners": {"tag:a": ["eve@"], "tag:b": ["eve@@"]}}`)
	for name, want := range map[string][2]bool{"eve": {true, false}, "eve@": {false, true}} {
		got := [2]bool{w.MayTag(user(name), nil, "tag:a") == nil, w.MayTag(user(name), nil, "tag:b") == nil}
		if got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
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
		if err := world(t, c.doc).KnowsTag(c.tag); (err == nil) != c.known {
			t.Errorf("%s: %v, want known %v", c.tag, err, c.known)
		}
	}
}

func TestProblemsSayWhereTheyAre(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "line 1, column 1: parsing value: unexpected EOF",
		"[]":                    "line 1, column 1: the policy must be an object",
		"{\n  \"groups\": 7\n}": "line 2, column 13: groups must be an object",
		"{\n\"tagOwners\": {\"tag:a\": \"x\"}\n}":   "line 2, column 24: tag:a must be a list of names",
		`{"groups": {"admins": []}}`:                `line 1, column 13: "admins" is not a group: write group: and a name, such as group:admins`,
		`{"groups": {"group:a": ["group:b"]}}`:      `line 1, column 25: "group:b" is not a user: a group holds users and nothing else`,
		`{"groups": {"group:a": [1]}}`:              `line 1, column 25: group:a must hold names in quotes`,
		`{"groups": {}, "groups": {}}`:              `line 1, column 16: the policy has "groups" twice`,
		`{"tagOwners": {"tag:a": [], "tag:a": []}}`: `line 1, column 29: tagOwners has "tag:a" twice`,
		`{"tagOwners": {"web": []}}`: `line 1, column 16: "web" is not a tag: ` +
			`write tag: and a name of letters, digits and hyphens, such as tag:server`,
		`{"tagOwners": {"tag:a": ["*"]}}`:       `line 1, column 26: "*" cannot own a tag: name a user, a group: or a tag:`,
		`{"tagOwners": {"tag:a": ["group:a"]}}`: `line 1, column 26: tag:a is owned by group:a, which is not defined`,
		`{"tagOwners": {"tag:a": ["tag:b"]}}`:   `line 1, column 26: tag:a is owned by tag:b, which is not defined`,
		`{"tagOwners": {"tag:a": ["tag:b"], "tag:b": ["tag:a"]}}`: `line 1, column 46: ` +
			`tags own each other: tag:a is owned by tag:b is owned by tag:a`,
		"{\n\"groups\": 1,\n\"tagOwners\": 2}": "line 2, column 11: groups must be an object\nline 3, column 14: tagOwners must be an object",
		strings.Repeat(" ", 1<<20+1):           "the policy is larger than 1024 KiB",
		strings.Repeat("[", 1<<20):             "the policy has more than 100000 lists and objects",
	} {
		_, err := policy.ParseDoc([]byte(text))
		if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
			t.Errorf("%.60q (-want +got):\n%s", text, diff)
		}
	}
}

func FuzzParseDoc(f *testing.F) {
	for _, seed := range []string{example, "{}", "", "[", `{"tagOwners":{"tag:a":["tag:b"],"tag:b":["tag:a"]}}`, `{"groups":{"group:a":["\u0000"]}}`} {
		f.Add([]byte(seed), "tag:a")
	}
	f.Fuzz(func(t *testing.T, text []byte, tag string) {
		doc, err := policy.ParseDoc(text)
		if (doc == nil) == (err == nil) {
			t.Fatalf("document %v and error %v", doc, err)
		}
		if err != nil {
			return
		}
		w := &policy.World{Snapshot: mesh.Empty(), Doc: doc}
		if w.KnowsTag(tag) != nil && w.MayTag(user("alice"), &mesh.PreAuthKey{Tags: []string{"tag:other"}}, tag) == nil && tag != "tag:other" {
			t.Fatalf("somebody owns %q, which is not known", tag)
		}
	})
}
