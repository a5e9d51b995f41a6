package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-mesh/fairlead/internal/mesh"
)

// lists holds the paginated lists, each with the field that contains the elements.
var lists = map[string]string{
	"/api/v1/user": "users", "/api/v1/node": "nodes", "/api/v1/preauthkey": "preAuthKeys", "/api/v1/apikey": "apiKeys", "/api/v1/routes": "routes",
}

// ids returns the IDs of the elements of a list, and the cursor of the next page.
func (s *service) ids(path, query string) (ids []string, next string) {
	s.t.Helper()
	body := s.call("GET", path+query, nil).ok()
	for _, e := range body[lists[path]].([]any) {
		ids = append(ids, e.(object)["id"].(string))
	}
	next, _ = body["next"].(string)
	return ids, next
}

// pages reads a list page by page and calls between after each page.
func (s *service) pages(path, query string, limit int, between func()) (ids []string) {
	s.t.Helper()
	for next := ""; ; {
		page, after := s.ids(path, fmt.Sprintf("?limit=%d&cursor=%s%s", limit, next, query))
		if ids = append(ids, page...); len(page) > limit || len(page) < limit && after != "" {
			s.t.Errorf("%s: %d elements of %d, then %q", path, len(page), limit, after)
		}
		if next = after; next == "" {
			return ids
		}
		between()
	}
}

// furnished returns a service with at least seven objects of every listed kind. Its nodes
// cover every state that a filter can select.
func furnished(t *testing.T) *service {
	s := sqlite(t)
	for i := range 7 {
		name := fmt.Sprintf("user%d", i+1)
		s.newUser(name)
		s.newKey()
		body := object{"user": name, "reusable": i%2 == 0}
		if i == 3 {
			body["aclTags"] = []string{"tag:web"}
		}
		m := machine(uint64(i), s.preAuthKey(body))
		m["os"] = []string{"linux", "macOS", "windows"}[i%3]
		m["routableIPs"] = []string{fmt.Sprintf("10.%d.0.0/16", i)}
		s.register(m).ok()
	}
	for id := range mesh.NodeID(2) {
		s.move(id+1, true)
	}
	return s
}

func TestPagesTogetherAreTheWholeList(t *testing.T) {
	s := furnished(t)
	for path := range lists {
		all, next := s.ids(path, "")
		if len(all) < 7 || next != "" {
			t.Errorf("%s: %v, then %q", path, all, next)
		}
		for limit := 1; limit <= len(all)+1; limit++ {
			if diff := cmp.Diff(all, s.pages(path, "", limit, func() {})); diff != "" {
				t.Errorf("%s in pages of %d (-whole +pages):\n%s", path, limit, diff)
			}
		}
		if rest, _ := s.ids(path, "?cursor="+all[2]); !cmp.Equal(rest, all[3:]) {
			t.Errorf("%s after %s without a limit: %v", path, all[2], rest)
		}
	}
	if got, want := s.pages("/api/v1/node", "&os=linux", 1, func() {}), []string{"1", "4", "7"}; !cmp.Equal(got, want) {
		t.Errorf("pages of a filter: %v, want %v", got, want)
	}
}

func TestPagesLeaveNothingOutWhileObjectsComeAndGo(t *testing.T) {
	s := furnished(t)
	gone := []string{"2", "6", "7"} // the last node of a page, a node of a later page, and again the last node of a page
	joined := uint64(100)
	got := s.pages("/api/v1/node", "", 2, func() {
		if len(gone) > 0 {
			s.call("DELETE", "/api/v1/node/"+gone[0], nil).ok()
			gone = gone[1:]
		}
		joined++
		s.register(machine(joined, s.preAuthKey(object{"user": "user7"}))).ok()
	})
	if diff := cmp.Diff([]string{"1", "2", "3", "4", "5", "7", "8", "9", "10", "11"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPagesThatCannotBeAreRefusedWithTheMember(t *testing.T) {
	s := sqlite(t)
	const limit, cursor = "limit must be a number from 1 to 1000", "invalid cursor: use the value of next from the previous response"
	for path := range lists {
		for query, want := range map[string]struct{ member, detail string }{
			"?limit=0":                     {"limit", limit},
			"?limit=-1":                    {"limit", limit},
			"?limit=1001":                  {"limit", limit},
			"?limit=many":                  {"limit", "invalid value for parameter limit"},
			"?cursor=x":                    {"cursor", cursor},
			"?cursor=-1":                   {"cursor", cursor},
			"?limit=1&cursor=0":            {"cursor", cursor},
			"?cursor=99999999999999999999": {"cursor", cursor},
		} {
			s.call("GET", path+query, nil).fails(400, "Bad Request", want.detail, want.member)
		}
		s.call("GET", path+"?limit=1000&cursor=", nil).ok()
		if ids, next := s.ids(path, "?cursor=1000000"); len(ids) > 0 || next != "" {
			t.Errorf("%s beyond the end: %v, %q", path, ids, next)
		}
	}
}

func TestNodesAreFiltered(t *testing.T) {
	s := furnished(t)
	for query, want := range map[string]string{
		"user=user3": "3", "user=4": "", "tag=tag:web": "4", "tag=tag:none": "", "online=true": "1 2", "online=false": "3 4 5 6 7",
		"route=10.4.0.0/16": "5", "route=10.4.0.0/17": "", "os=MACOS": "2 5", "search=HOST-6": "7", "search=100.64.0.5": "5",
		"search=user2": "2", "search=user4": "", "search=tag:w": "4", "search=nowhere": "", "os=linux&online=true": "1",
		"user=&tag=&route=&os=&search=": "1 2 3 4 5 6 7",
	} {
		if ids, _ := s.ids("/api/v1/node", "?"+query); strings.Join(ids, " ") != want {
			t.Errorf("%s: %v, want %s", query, ids, want)
		}
	}
	s.call("GET", "/api/v1/node?route=here", nil).fails(400, "Bad Request", `invalid network "here": use CIDR notation such as 192.168.7.0/24`, "route")
	s.call("GET", "/api/v1/node?route=10.1.2.3/16", nil).fails(400, "Bad Request", "invalid network 10.1.2.3/16: host bits are set; use 10.1.0.0/16", "route")
	s.call("GET", "/api/v1/node?tag=web", nil).fails(400, "Bad Request",
		`invalid tag "web": use tag: followed by letters, digits and hyphens, such as tag:server`, "tag")
	s.call("GET", "/api/v1/node?online=perhaps", nil).fails(400, "Bad Request", "invalid value for parameter online", "online")
}

func TestKeysAreFilteredByWhetherTheyAreValid(t *testing.T) {
	s := furnished(t)
	s.call("POST", "/api/v1/preauthkey/expire", object{"id": "1"}).ok()
	s.call("POST", "/api/v1/apikey/expire", object{"id": "2"}).ok()
	for query, want := range map[string]string{
		"/api/v1/preauthkey?valid=true":             "3 5 7",
		"/api/v1/preauthkey?valid=false":            "1 2 4 6",
		"/api/v1/preauthkey?valid=true&user=user3":  "3",
		"/api/v1/preauthkey?valid=false&user=user3": "",
		"/api/v1/apikey?valid=true":                 "1 3 4 5 6 7 8",
		"/api/v1/apikey?valid=false":                "2",
	} {
		path, query, _ := strings.Cut(query, "?")
		if ids, _ := s.ids(path, "?"+query); strings.Join(ids, " ") != want {
			t.Errorf("%s?%s: %v, want %s", path, query, ids, want)
		}
	}
}

func TestListOfNodesFollowsEveryChange(t *testing.T) {
	s := furnished(t)
	same := func(what string) {
		t.Helper()
		for _, n := range s.call("GET", "/api/v1/node", nil).ok()["nodes"].([]any) {
			shown := s.call("GET", "/api/v1/node/"+n.(object)["id"].(string), nil).ok()["node"].(object)
			delete(shown, "host") // lists contain it only on request
			if diff := cmp.Diff(any(shown), n); diff != "" {
				t.Errorf("%s (-shown +listed):\n%s", what, diff)
			}
		}
	}
	same("at first")
	for _, c := range []struct{ method, path string }{
		{"POST", "/api/v1/user/user1/rename/ada"},
		{"POST", "/api/v1/node/2/rename/web"},
		{"DELETE", "/api/v1/preauthkey?id=3"},
		{"DELETE", "/api/v1/user/user4"},
		{"DELETE", "/api/v1/user/user5"},
		{"POST", "/api/v1/node/6/expire"},
	} {
		s.call(c.method, c.path, nil).ok()
		same(c.method + " " + c.path)
	}
	s.call("POST", "/api/v1/preauthkey/expire", object{"id": "6"}).ok()
	s.register(machine(50, s.preAuthKey(object{"user": "user7"}))).ok() // gives the user one more node
	s.moveAt(1, false, time.Now())
	same("at last")
}
