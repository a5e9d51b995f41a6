//go:build !race

package load

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// TestFigureSCIM limits how long nodes wait for changes while an identity provider pushes users and groups: half
// as many users as there are nodes, and one group for each 40 nodes, with rules that name the groups. Half of the
// users have nodes already, so that most requests change what all nodes know about their peers.
//
// The time is checked only if other programs leave half of the machine free.
func TestFigureSCIM(t *testing.T) {
	users, groups := *nodes/2, *nodes/40
	owners := users / 2
	s, _ := build(t).startFairlead(t)
	s.prepareSCIM(t, owners, groups)
	o := s.load(t, "scim", nil, "--api-key="+s.apiKey, "--register-first", "--quiet=1s", fmt.Sprintf("--scim-users=%d", users),
		fmt.Sprintf("--scim-groups=%d", groups), fmt.Sprintf("--scim-owners=%d", owners), "--rate=2")["scim"]

	lag := 1000.
	if o.OtherPercent > 100*float64(runtime.NumCPU())/2 {
		t.Logf("other programs use %.0f %% of a core: the time is not held", o.OtherPercent)
		lag = 0
	}
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-52s %10s %6s\n", fmt.Sprintf("%d nodes, %d users, %d groups, %d requests", *nodes, users, groups, o.Requests), "fairlead", "limit")
	for _, row := range []struct {
		name          string
		figure, limit float64 // 0 means no limit
	}{
		{"node is told of a member, 99 % within ms", o.MembershipP99, lag},
		{"node is told of a member, half within ms", o.MembershipP50, 0},
		{"node is told of an endpoint, 99 % within ms", o.LagP99, lag},
		{"node is told of an endpoint, half within ms", o.LagP50, 0},
		{"request, 99 % within ms", o.RequestP99, 0},
		{"CPU per request, ms", o.CPUPerRequest, 0},
		{"the whole push, s", o.Push, 0},
		{"other programs, % of a core", o.OtherPercent, 0},
	} {
		limit := ""
		if row.limit > 0 {
			limit = fmt.Sprintf("%6g", row.limit)
			if !(row.figure > 0 && row.figure <= row.limit) { // also fails if nothing was measured
				t.Errorf("%s: %.2f, more than %g", row.name, row.figure, row.limit)
			}
		}
		fmt.Fprintf(&table, "%-52s %10.2f %s\n", row.name, row.figure, limit)
	}
	t.Log(table.String())
	if o.Watched < groups || o.Requests < 2*users+groups {
		t.Errorf("only %d requests were made and %d memberships watched", o.Requests, o.Watched)
	}
}

// prepareSCIM creates the users who have nodes, a server for each group, and a policy: all nodes see each other,
// and each group can use more of its server. It replaces the auth keys by one for each of these users and servers.
func (s *target) prepareSCIM(t *testing.T, owners, groups int) {
	t.Helper()
	rules := []map[string]any{{"action": "accept", "src": []string{"*"}, "dst": []string{"*:443"}}}
	tags := map[string][]string{}
	for g := range groups {
		tag := fmt.Sprintf("tag:team-%02d", g)
		tags[tag] = []string{}
		s.pushGroup(t, fmt.Sprintf("team-%02d", g)) // the policy may name only groups that exist
		rules = append(rules, map[string]any{"action": "accept", "src": []string{fmt.Sprintf("group:team-%02d", g)}, "dst": []string{tag + ":22"}})
	}
	s.savePolicy(t, tags, rules)
	var keys []string
	for i := range owners {
		var made struct{ User struct{ ID string } }
		s.call(t, http.MethodPost, "/api/v1/user", map[string]any{"name": fmt.Sprintf("person-%04d", i)}, &made)
		keys = append(keys, s.key(t, map[string]any{"user": made.User.ID}))
	}
	for g := range groups {
		keys = append(keys, s.key(t, map[string]any{"aclTags": []string{fmt.Sprintf("tag:team-%02d", g)}}))
	}
	s.authKey = strings.Join(keys, ",")
}

func (s *target) pushGroup(t *testing.T, name string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/scim/v2/Groups", strings.NewReader(fmt.Sprintf(`{"displayName": %q}`, name)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.apiKey)
	res, err := new(http.Client).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		t.Fatalf("pushing a group: %s", res.Status)
	}
}
