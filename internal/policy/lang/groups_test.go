package lang_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
	"github.com/fairlead-mesh/fairlead/internal/policy/lang"
)

func people(groups ...[]string) *mesh.Snapshot {
	d := mesh.Empty().Edit()
	for i, g := range groups {
		id := mesh.UserID(i + 1)
		d.Apply(1, mesh.UserPut{User: &mesh.User{ID: id, Name: fmt.Sprintf("user%d", id), Groups: g}})
	}
	return d.Freeze()
}

// pushed returns a snapshot with groups that the provider has pushed and that have no members.
func pushed(names ...string) *mesh.Snapshot {
	d := mesh.Empty().Edit()
	for i, name := range names {
		d.Apply(1, mesh.GroupPut{Group: &mesh.Group{ID: mesh.GroupID(i + 1), Name: name}})
	}
	return d.Freeze()
}

func TestGroupsAreCheckedAgainstThoseOfTheProvider(t *testing.T) {
	const text = `{
  "groups": {"group:ops": ["user1"],
    "group:dev": []},
  "acls": [{"action": "accept", "src": ["group:qa", "group:op"], "dst": ["group:dev:*"]}],
}`
	const both = "is defined here, but the identity provider also has a group with this name: remove or rename one of them"
	const nobody = "is not defined in groups, and no user has it at the identity provider"
	for name, c := range map[string]struct {
		people             *mesh.Snapshot
		expected           bool
		problems, warnings []string
	}{
		"no provider": {people(nil), false, []string{
			"line 4, column 41: group:qa is not defined: add it to groups",
			"line 4, column 53: group:op is not defined: add it to groups; did you mean group:ops?",
		}, []string{
			"line 4, column 41: group:qa " + nobody,
			"line 4, column 53: group:op " + nobody + "; did you mean group:ops?",
		}},
		"nobody has signed in": {people(nil), true, nil, []string{
			"line 4, column 41: group:qa " + nobody,
			"line 4, column 53: group:op " + nobody + "; did you mean group:ops?",
		}},
		"a member": {people(nil, []string{"other", "qa"}), false, nil, []string{"line 4, column 53: group:op " + nobody + "; did you mean group:ops?"}},
		"pushed without members": {pushed("qa", "dev"), false, []string{"line 3, column 5: group:dev " + both}, []string{
			"line 4, column 53: group:op " + nobody + "; did you mean group:ops?", "unknown user user1",
		}},
		"all known": {people([]string{"op"}, []string{"qa"}), true, nil, nil},
		"in both":   {people([]string{"dev", "op", "ops", "qa"}), true, []string{"line 3, column 5: group:dev " + both, "line 2, column 14: group:ops " + both}, nil},
	} {
		doc, problems := lang.Parse([]byte(text))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		texts := func(list []lang.Problem) (all []string) {
			for _, p := range list {
				all = append(all, p.String())
			}
			return all
		}
		if diff := cmp.Diff(c.problems, texts(doc.CheckGroups(c.people, c.expected))); diff != "" {
			t.Errorf("%s: problems (-want +got)\n%s", name, diff)
		}
		if diff := cmp.Diff(c.warnings, texts(doc.WarningsFor(c.people))); diff != "" {
			t.Errorf("%s: warnings (-want +got)\n%s", name, diff)
		}
	}
}

func TestOwnersOfTagsMayBeGroupsOfTheProvider(t *testing.T) {
	doc, problems := lang.Parse([]byte(`{"groups": {"group:ops": ["bob"]}, "tagOwners": {"tag:web": ["group:dev"], "tag:db": ["group:ops"]}}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	ann := &mesh.User{ID: 1, Name: "ann", Groups: []string{"dev", "ops"}}
	if err := doc.MayTag(ann, nil, "tag:web"); err != nil {
		t.Error(err)
	}
	if doc.MayTag(ann, nil, "tag:db") == nil {
		t.Error("the provider's group of the same name counts, too")
	}
	if doc.MayTag(&mesh.User{ID: 2, Name: "dev", Groups: []string{"qa"}}, nil, "tag:web") == nil {
		t.Error("somebody else may use the tag")
	}
}

func TestAdministratorsWithoutAnyoneAreAWarning(t *testing.T) {
	doc := parsed(t, "{\n\"acls\": [{\"action\": \"accept\", \"src\": [\"autogroup:admin\"], \"dst\": [\"*:*\"]}]}")
	for role, want := range map[mesh.Role]int{mesh.RoleOperator: 1, mesh.RoleAdmin: 0} {
		s, _ := mesh.Apply(mesh.Empty(), 1, mesh.UserPut{User: &mesh.User{ID: 1, Name: "ann", Role: role}})
		got := doc.WarningsFor(s)
		if len(got) != want || want > 0 && (got[0].Line != 2 || !strings.Contains(got[0].Text, "autogroup:admin is empty")) {
			t.Errorf("with the role %s: %v", role, got)
		}
	}
}
